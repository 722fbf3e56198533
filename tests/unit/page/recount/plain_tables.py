"""Tables of counts, means, quantiles and shares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from statistics import fmean

from tests.unit.page.recount import chance
from tests.unit.page.recount.fits import problem
from tests.unit.page.recount.formulas import SCORED, has_kind, is_measured, kind_of, unmeasured, values_of
from tests.unit.page.recount.page_tables import Shown, ShownTable
from tests.unit.page.recount.rows import RunFiles, Suite

NONE = "–"
_STAGES = {
    "total": "total_time_ms",
    "retrieve": "retrieval_time_ms",
    "rerank": "rerank_time_ms",
    "model call": "llm_time_ms",
    "first token": "ttft_ms",
}


def trials(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount what became of the trials."""
    for row in table.rows:
        suite = files.suites[row[0].text]
        asked = {*suite.asked, *suite.record["not_run"], *suite.record["settled"]}
        resumed = suite.record["resumed"]
        counts = {
            "cases": len(suite.cases),
            "selected": len(asked),
            "answered": len(suite.answered),
            "errors": len(suite.rows) - len(suite.answered),
            "lost": len(suite.lost),
            "not run": len(suite.record["not_run"]),
            "not needed": len(suite.record["settled"]),
            "resumed": len(suite.rows if resumed == "all" else {*resumed} & {*suite.rows}),
            "replayed": sum(bool(line.get("timings_recorded")) for line in suite.rows.values()),
        }
        yield from (problem(cell.text, "{}", counts[name]) for name, cell in _numbers(table, row))


def scorecard(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount means with their intervals, and the tails of risks."""
    for row in table.rows:
        measure, is_tail = measure_of(row[0].text), ", p95" in row[0].text
        for name, cell in _numbers(table, row):
            suite = files.suites[name]
            values = list(values_of(suite, measure).values()) if is_measured(suite, measure) else []
            if not values:
                yield empty(cell, suite)
            elif is_tail:
                yield from _tail(cell, values)
            else:
                yield from mean_said(cell, values, measure)


def mean_said(cell: Shown, values: list[float], measure: str) -> Iterator[str]:
    """Recount a mean with half the width of its interval, and the interval in the hint."""
    if len(values) == 1:
        yield problem(cell.text, "{} (1 case)", values[0])
        return
    interval = chance.mean_interval(values, span_of(measure, values))
    (low_0, low_1), (high_0, high_1) = map(chance.pair, interval)
    if "±" in cell.text:
        yield problem(cell.text, "{} ±{}", fmean(values), ((high_0 - low_1) / 2, (high_1 - low_0) / 2))
    else:
        yield problem(cell.text, "{} [{}, {}]", fmean(values), *interval)
    yield problem(cell.hint, "n = {}; 95 % interval [{}, {}]", len(values), *interval)


def span_of(measure: str, values: list[float], least: float = 0.0) -> tuple[float, float] | None:
    """Return the range of a share, where all values lie in it."""
    return (least, 1.0) if measure not in SCORED and min(values) >= least and max(values) <= 1 else None


def _tail(cell: Shown, values: list[float]) -> Iterator[str]:
    ends = ["…" if abs(end) == inf else end for end in chance.quantile_interval(values, 0.95)]
    yield problem(cell.text, "{} [{}, {}]", chance.quantile(values, 0.95), *ends)
    yield problem(cell.hint, "n = {}; 95 % interval", len(values))


def empty(cell: Shown, suite: Suite) -> str:
    """Check a cell that says why there is no value."""
    if cell.text != NONE:
        return f"{cell.text!r}, where no case has a value"
    found = re.findall(r"(\d+) of (\d+) have", cell.hint)
    wrong = any(int(of) != len(suite.asked) for _, of in found) or sum(int(n) for n, _ in found) > len(suite.asked)
    return f"{cell.hint!r} of {len(suite.asked)}" if wrong else ""


def measures_without(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount how often a measure could have had a value and has none."""
    shown = Counter[tuple[str, str]]()
    for row in table.rows:
        name, measure, count, of, why = (cell.text for cell in row)
        suite = files.suites[name]
        reasons = unmeasured(suite, measure_of(measure))
        shown[name, measure_of(measure)] += 1
        yield problem(count, "{}", sum(reasons.values()))
        yield problem(of, "{}", len(suite.asked))
        said = {text: int(n) for text, n in re.findall(r"(?:^|; )(.+?) \((\d+)\)", why)}
        yield "" if said == dict(Counter(reasons).most_common(3)) else f"{why!r}, where it is {reasons}"
    judged = {(name, m) for name, suite in files.suites.items() for m in suite.record["judged"] if unmeasured(suite, m)}
    yield "" if judged == set(shown) else f"of {judged ^ set(shown)} one side alone knows"


def categories(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount kinds of answers; those that are not shown must be nobody's."""
    kinds = {name: Counter(kind_of(suite, case) for case in suite.answered) for name, suite in files.suites.items()}
    judged = {name for name, suite in files.suites.items() if any(has_kind(suite, case) for case in suite.answered)}
    for row in table.rows:
        for name, cell in _numbers(table, row):
            if name not in judged:
                yield problem(cell.text, NONE)
            elif row[0].text == "answers":
                yield problem(cell.text, "{}", len(files.suites[name].answered))
            else:
                yield problem(cell.text, "{}%", 100 * kinds[name][row[0].text] / len(files.suites[name].answered))
    known = {row[0].text for row in table.rows}
    yield "".join(f"{name} has {kinds[name]}" for name in judged if not set(kinds[name]) <= known)


def costs(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount tokens, calls and money."""
    for row in table.rows:
        for name, cell in _numbers(table, row):
            yield _cost(row[0].text, files.suites[name], cell.text)


def _cost(what: str, suite: Suite, text: str) -> str:
    rows, usage = list(suite.rows.values()), [row["usage"] for row in suite.rows.values()]
    prompt, completion = (sum(each[f"{kind}_tokens"] for each in usage) for kind in ("prompt", "completion"))
    known = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    if what.startswith("cost"):
        return (
            problem(text, "${}", sum(known) / (len(rows) if what == "cost a trial" else 1))
            if known
            else problem(text, NONE)
        )
    counts = {
        "answers": len(suite.answered),
        "model calls": sum(each["calls"] for each in usage),
        "tokens in": prompt,
        "tokens out": completion,
        "tokens, all": prompt + completion,
    }
    return problem(text, "{}", counts[what])


def times(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount quantiles of times."""
    for row in table.rows:
        field = _STAGES[row[0].text]
        for name, cell in _numbers(table, row):
            taken = [line[field] for line in files.suites[name].rows.values() if line[field] is not None]
            if not any(taken):
                yield problem(cell.text, NONE)
                continue
            yield problem(cell.text, "{} / {} / {}", *(chance.quantile(taken, share) for share in (0.5, 0.95, 0.99)))
            yield problem(cell.hint, "n = {}", len(taken))


def causes(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount why trials failed."""
    counts = {
        name: Counter(line["cause"] for line in files.causes if line["experiment"] == name) for name in table.head
    }
    for row in table.rows:
        for name, cell in _numbers(table, row):
            count, total = counts[name][row[0].text], counts[name].total()
            if row[0].text == "explained":
                yield problem(cell.text, "{} of {}", total, len(files.suites[name].answered))
            else:
                yield problem(cell.text, "{} ({}%)", count, 100 * count / total)


def errors(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount trials without an answer."""
    total = sum(len(suite.rows) - len(suite.answered) for suite in files.suites.values())
    yield problem(table.caption, "{} trial" + "s" * (total != 1) + " without an answer", total)


def measure_of(title: str) -> str:
    """Return the measure of a title such as ``hri (HRI), p95 ↓``."""
    return re.split(r"[ ,]", title)[0]


def _numbers(table: ShownTable, row: list[Shown]) -> list[tuple[str, Shown]]:
    return list(zip(table.head[1:], row[1:], strict=True))


Check = Callable[[RunFiles, ShownTable], Iterator[str]]
