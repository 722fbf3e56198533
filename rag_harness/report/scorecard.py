"""The study's scorecard: means of judged measures with intervals, and categories of answers. 100 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from rag_harness.judges.calibration.repeats import repeatability
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.measures.judged.categories import kinds_shown
from rag_harness.models.families import maker_of
from rag_harness.report.money import money
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import SHORT_MEASURE_NAMES, is_no_llm, judges_said, table
from rag_harness.results.manifest import SuiteRecord
from rag_harness.settings.prices import Prices
from rag_harness.stats import quantile
from rag_harness.types import GOLDEN

_FIRST = ("context_precision", "faithfulness", "answer_relevancy", "g_mean", "hri")
_WIDTH = 100
_ACROSS = 6
"""Most measures in one table. Those of the study are in the first table."""


def scorecard_lines(
    tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord], prices: Prices | None = None
) -> list[str]:
    """Return the lines; none where nothing was judged. ``suites`` name the judges and their costs."""
    judged = {name: suite for name, suite in sorted(tables.items()) if name != GOLDEN and judged_in_order(suite)}
    if not judged:
        return []
    authors = dict.fromkeys(author[:2] for name in judged for author in suites[name].authors)
    whose = " and ".join(judges_said(suites[name] for name in judged))
    answering = {model for suite in judged.values() for model in suite.totals.models}
    kin = [line for _, model in authors for line in one_family(model, answering)]
    took = _took([suites[name] for name in judged], [model for _, model in authors], prices)
    return [
        f"judged by {whose}",
        *kin,
        *took,
        *_means(judged),
        *_categories(judged),
        *_again(judged),
        *_unmeasured(judged),
    ]


def _took(records: Sequence[SuiteRecord], models: Sequence[str], prices: Prices | None) -> list[str]:
    """Say what calls of the judge's model have cost, where it has one."""
    spent: Counter[str] = Counter()
    for record in records:
        spent.update(record.judging)
    if not spent["calls"]:
        return []
    # The tokens of all judges are counted together, so their cost is known where one model was asked.
    asked = {model for model in models if not is_no_llm(model)} or set(models)
    model = asked.pop() if len(asked) == 1 else ""
    cost = prices.cost(model, spent["prompt_tokens"], spent["completion_tokens"]) if prices and model else None
    replayed = f", {spent['recorded']} of them replayed" if spent["recorded"] else ""
    tokens = f"{spent['prompt_tokens']:,} tokens in, {spent['completion_tokens']:,} out"
    return [f"judging took {spent['calls']} calls{replayed}; {tokens}" + (f"; {money(cost)}" if cost else "")]


def one_family(judge: str, answering: Iterable[str]) -> list[str]:
    """Return a warning where the judge and an answering model are from one maker."""
    same = [model for model in sorted(answering) if model and maker_of(model) and maker_of(model) == maker_of(judge)]
    if not same:
        return []
    return [f"The judge {judge} and {same[0]}, which answered, are one family: a judge favours its own."]


def judged_in_order(suite: SuiteTable) -> list[str]:
    """Return the judged measures and composites of a suite, the study's first."""
    composed = {"g_mean", "hri", "hri_gold"}
    found = [
        name for name, column in suite.columns.items() if isinstance(column.measure, JudgedMeasure) or name in composed
    ]
    return [*(name for name in _FIRST if name in found), *(name for name in found if name not in _FIRST)]


def _means(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    names = list(dict.fromkeys(name for suite in judged.values() for name in judged_in_order(suite)))
    columns = [column for name in names for column in ([name, "p95"] if name.startswith("hri") else [name])]
    first = ["experiment", *judged]
    cells = [
        [SHORT_MEASURE_NAMES.get(column, column), *(_cell(suite, columns, n) for suite in judged.values())]
        for n, column in enumerate(columns)
    ]
    for shown in _blocks(first, cells):
        yield from table(list(zip(first, *shown, strict=True)))


def _blocks(first: Sequence[str], columns: Iterable[Sequence[str]]) -> list[list[Sequence[str]]]:
    """Divide the columns into as many tables as needed, so that none is too wide."""
    blocks: list[list[Sequence[str]]] = []
    left = 0
    for column in columns:
        width = max(map(len, column)) + 2
        if width > left or len(blocks[-1]) == _ACROSS:
            blocks.append([])
            left = _WIDTH - max(map(len, first))
        blocks[-1].append(column)
        left -= width
    return blocks


def _cell(suite: SuiteTable, columns: Sequence[str], n: int) -> str:
    is_tail = columns[n] == "p95"
    name = columns[n - 1] if is_tail else columns[n]
    values = list(suite.values(name, {}).values()) if name in suite.columns else []
    if not values:
        return "-"
    if is_tail:
        return f"{quantile(sorted(values), 0.95):.2f}"
    mean = f"{sum(values) / len(values):.2f}"
    if len(values) == 1:
        return mean  # one case gives no interval
    found = suite.interval(name)
    return f"{mean} ±{(found[1] - found[0]) / 2:.2f}" if found else mean


def _categories(judged: Mapping[str, SuiteTable]) -> list[str]:
    """Return a line for each category, in per cent of the answers, with a column for each experiment."""
    shares = {name: suite.shares() for name, suite in judged.items()}
    if not any(shares.values()):
        return []
    rows = [
        [kind, *(f"{share[kind]:.1%}" if share else "-" for share in shares.values())]
        for kind in kinds_shown(kind for share in shares.values() for kind in share if share[kind])
    ]
    return table([["answers", *shares], *rows])


def _again(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say whether a judge that was asked again agrees with itself."""
    for measure in dict.fromkeys(name for suite in judged.values() for name in suite.said_again):
        values: dict[Hashable, list[float | None]] = {}
        for name, suite in judged.items():
            first = suite.values(measure, {}) if measure in suite.columns else {}
            for case, more in suite.said_again.get(measure, {}).items():
                values[name, case] = [first.get(case), *more]
        yield f"{measure}: {repeatability(values).line()}"


def _unmeasured(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say which measurable cases have no score, and why. Composites are left out: their parts say it."""
    for name, suite in judged.items():
        for measure in judged_in_order(suite):
            is_part = isinstance(suite.columns[measure].measure, JudgedMeasure)
            failures = suite.failures(measure, {})
            if failures and is_part:
                said = ", ".join(f"{n} of {suite.selected_of({})} have {why}" for why, n in failures.most_common(1))
                more = f", {len(failures) - 1} more reasons" if len(failures) > 1 else ""
                yield from wrap(f"{name}: {measure}: {said}{more}", _WIDTH, subsequent_indent="  ")
