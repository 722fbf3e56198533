"""The tables below the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isinf
from statistics import fmean

import scipy.stats

from tests.unit.page.recount import chance
from tests.unit.page.recount.compared_tables import named
from tests.unit.page.recount.fits import problem
from tests.unit.page.recount.formulas import is_measured, kind_of, values_of
from tests.unit.page.recount.page_tables import Shown, ShownTable
from tests.unit.page.recount.plain_tables import NONE, empty, measure_of, span_of
from tests.unit.page.recount.rows import RunFiles, Suite


def compared(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount means with their intervals, and how often experiments decline what they should, and should not."""
    for row in table.rows:
        suite = files.suites[row[0].text]
        for title, cell in zip(table.head[1:], row[1:], strict=True):
            if title == "right declines ↑":
                measure = "abstention_rate"
                values = [n for case, n in values_of(suite, measure).items() if not suite.cases[case]["answerable"]]
            else:
                measure = {"wrong declines ↓": "false_abstention_rate"}.get(title, measure_of(title))
                values = _values(suite, measure)
            if not values:
                yield empty(cell, suite)
                continue
            yield _mean(cell.text, values, measure)
            yield problem(cell.hint, "n = {}", len(values))


def _mean(text: str, values: list[float], measure: str) -> str:
    if len(values) == 1 or (span_of(measure, values) is None and min(values) == max(values)):
        return problem(text, "{}", values[0])  # without a range, equal values allow no interval
    return problem(text, "{} [{}, {}]", fmean(values), *chance.mean_interval(values, span_of(measure, values)))


def _values(suite: Suite, measure: str) -> list[float]:
    return list(values_of(suite, measure).values()) if is_measured(suite, measure) else []


def kinds(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount kinds of answers."""
    for name in table.head[1:]:
        found = Counter(kind_of(files.suites[name], case) for case in files.suites[name].answered)
        for row in table.rows:
            yield problem(row[table.head.index(name)].text, "{}", found.pop(row[0].text, 0))
        yield f"kinds of {name} that are not shown: {found}" if found else ""


def against_time(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount median times beside the quality."""
    for name, shown, quality in _cells(table):
        times = [row["total_time_ms"] for row in files.suites[name].rows.values() if not row["timings_recorded"]]
        yield problem(
            shown, "{} ms [{}, {}]", chance.quantile(times, 0.5), *_open(chance.quantile_interval(times, 0.5))
        )
        yield _mean(quality, _values(files.suites[name], named(table.head[2])), named(table.head[2]))


def against_cost(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount costs of a trial beside the quality."""
    for name, shown, quality in _cells(table):
        rows = files.suites[name].rows.values()
        yield problem(shown, "${}", sum(row["cost_usd"] or 0 for row in rows) / len(rows))
        yield _mean(quality, _values(files.suites[name], named(table.head[2])), named(table.head[2]))


def risk(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount quantiles of the risk; which risk it is, the first column of numbers tells."""
    measure = "hri" if any(_values(suite, "hri") for suite in files.suites.values()) else "hri_gold"
    for name, n, mean, median, p95, p99, largest in _cells(table):
        values = _values(files.suites[name], measure)
        yield problem(f"{n} {mean} {largest}", "{} {} {}", len(values), fmean(values), max(values))
        for text, share in ((median, 0.5), (p95, 0.95), (p99, 0.99)):
            ends = _open(chance.quantile_interval(values, share))
            yield problem(text, "{} [{}, {}]", chance.quantile(values, share), *ends)


def ranks(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount how often the first relevant page is among the first k."""
    for name, *shares, n in _cells(table):
        values = _values(files.suites[name], "mrr@10")
        at = [round(1 / value) if value else 0 for value in values]
        yield problem(n, "{}", len(at))
        for title, text in zip(table.head[1:-1], shares, strict=True):
            count = sum(0 < rank <= int(title.removeprefix("k = ")) for rank in at)
            found = scipy.stats.binomtest(count, len(at)).proportion_ci(0.95, "exact")
            yield problem(text, "{} [{}, {}]", count / len(at), float(found.low), float(found.high))


def slices(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount means of slices."""
    for name, where, n, *shown in _cells(table):
        suite, (label, _, wanted) = files.suites[name], where.partition(": ")
        inside = {case for case in suite.asked if _labels(suite, case).get(label) == wanted}
        yield problem(n, "{}", len(inside))
        for title, text in zip(table.head[3:], shown, strict=True):
            measure = named(title)
            found = values_of(suite, measure) if is_measured(suite, measure) else {}
            values = [value for case, value in found.items() if case in inside]
            yield problem(text, "{}", fmean(values)) if values else problem(text, NONE)


def _labels(suite: Suite, case: str) -> Mapping[str, str]:
    return {"query_type": suite.cases[case]["query_type"], **suite.cases[case]["labels"]}


def risk_coverage(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount the share of wrong answers among the surest."""
    for name, n, area, *shares in _cells(table):
        stated = _stated(files.suites[name])
        wrong, right = ([sure for sure, is_wrong in stated if is_wrong == side] for side in (1, 0))
        yield problem(n, "{}", len(stated))
        if wrong and right:
            yield problem(area, "{}", scipy.stats.mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong)))
        for title, text in zip(table.head[3:], shares, strict=True):
            yield problem(text, "{}%", 100 * _risk_at(stated, float(title.split()[-1].rstrip("%")) / 100))


def reliability(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount how often answers are right by the confidence that they state."""
    for name, stated, mean, right, between, n in _cells(table):
        low, high = map(float, stated.split(" to "))
        every = _stated(files.suites[name])
        held = [(sure, wrong) for sure, wrong in every if low - 1e-9 <= sure < high - 1e-9 or sure == high == 1]
        if not held:
            yield f"no answer of {name} states {stated}"
            continue
        count = sum(not wrong for _, wrong in held)
        found = scipy.stats.binomtest(count, len(held)).proportion_ci(0.95, "exact")
        yield problem(f"{mean} {n}", "{} {}", fmean(sure for sure, _ in held), len(held))
        yield problem(right, "{}", count / len(held))
        yield problem(between, "[{}, {}]", float(found.low), float(found.high))


def _stated(suite: Suite) -> list[tuple[float, int]]:
    """Return confidence, and 1 where the answer is wrong, of each answer that is one."""
    values, found = values_of(suite, "correct"), list[tuple[float, int]]()
    for case in suite.answered:
        row = suite.rows[case]
        if row["confidence"] is not None and not row["abstained"] and case in values:
            found.append((row["confidence"], int(not values[case])))
    return found


def _risk_at(stated: list[tuple[float, int]], share: float) -> float:
    """Return the share of wrong ones among the surest; equally sure ones share their errors."""
    by_sure = {sure: fmean(wrong for other, wrong in stated if other == sure) for sure, _ in stated}
    surest = sorted((sure for sure, _ in stated), reverse=True)
    most = next(n for n in range(1, len(surest) + 1) if n / len(surest) >= share - 1e-9)
    return fmean(by_sure[sure] for sure in surest[:most])


def _open(ends: tuple[float, float]) -> list[float | str]:
    return ["…" if isinf(end) else end for end in ends]


def _cells(table: ShownTable) -> Iterator[list[str]]:
    yield from ([_text(cell) for cell in row] for row in table.rows)


def _text(cell: Shown) -> str:
    return cell.text
