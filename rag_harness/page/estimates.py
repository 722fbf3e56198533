"""Means with intervals, and the experiments, colours and gates of the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, TypeVar

from rag_harness.evaluation.measures.judged import CATEGORIES
from rag_harness.page.charts import Curve, Estimate, Histogram, IntervalBar, Lines, fill_number, interval_bar
from rag_harness.page.content import NONE, Figure, Table, Tone, interval_said
from rag_harness.page.run import Run
from rag_harness.runs.gates import Gate, Reference
from rag_harness.runs.gates.evidence import decisive_ends, interval_of_mean
from rag_harness.runs.gates.verdict import value_said
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import joined_names

STUDY = ("context_precision", "faithfulness", "answer_relevancy", "g_mean")
PLAIN = ("recall@5", "evidence_recall", "mrr@10", "token_f1")
QUALITY = ("g_mean", "factuality", "answer_correctness", "token_f1", "recall@5")
"""Measures that represent the quality of an experiment. The first that a run has is used."""


def estimate(table: SuiteTable, measure: str) -> Estimate | None:
    """Return the mean of a measure with its 95 % interval; no interval for a single case, None without a value."""
    values = table.values(measure, {}) if measure in table.columns else {}
    return _estimate(values, table.interval(measure) if len(values) > 1 else None)


def right_declines(table: SuiteTable) -> Mapping[str, float]:
    """Return for each question that the documents do not answer whether the experiment says so: 1 or 0."""
    if not {"abstention_rate", "false_abstention_rate"} <= {*table.columns}:
        return {}
    answerable = table.values("false_abstention_rate", {})
    declined = table.values("abstention_rate", {})
    return {case: value for case, value in declined.items() if case not in answerable}


def right_declines_estimate(table: SuiteTable) -> Estimate | None:
    """Return their share with its 95 % interval."""
    values = right_declines(table)
    alike = table.clusters_of(values)
    return _estimate(values, interval_of_mean([*values.values()], "share", alike) if len(values) > 1 else None)


def _estimate(values: Mapping[str, float], interval: tuple[float, float] | None) -> Estimate | None:
    if not values:
        return None
    return with_interval(sum(values.values()) / len(values), interval)


def with_interval(value: float, interval: tuple[float, float] | None) -> Estimate:
    """Return a value with its interval; an end that is infinite is open."""
    if interval is None:
        return Estimate(value)
    low, high = interval
    # The mean of equal values may differ from both ends by rounding.
    return Estimate(value, min(low, value) if isfinite(low) else None, max(high, value) if isfinite(high) else None)


def estimate_in_words(found: Estimate | None, unit: str = "share") -> str:
    """Return an estimate as text: value and interval."""
    if found is None:
        return NONE
    if found.low is None and found.high is None:
        return value_said(found.value, unit)
    return f"{value_said(found.value, unit)} {interval_said(found.low, found.high, unit)}"


MOST_COLOURS = 8
"""More colours cannot be told apart. More experiments have one colour, and each has a chart or a row of its own."""
_MOST_DRAWN = 16
_Split = TypeVar("_Split", Curve, Histogram, Lines)


def colours_of(run: Run) -> Mapping[str, int]:
    """Return the number of each experiment's colour and shape."""
    has_own = len(run.experiments) <= MOST_COLOURS
    return {name: place if has_own else 0 for place, name in enumerate(run.experiments)}


def drawn_of(run: Run, found: Iterable[str], most: int = _MOST_DRAWN) -> list[str]:
    """Return the experiments among ``found`` that are drawn, in their order: the best ``most`` where there are more.

    The best are those with the highest mean of the first measure of quality that one of them has.
    """
    names = list(found)
    if len(names) <= most:
        return names
    measure = _quality(run, names)
    ranked = sorted(names, key=lambda name: -_mean(run.tables[name], measure))
    return [name for name in names if name in ranked[:most]]


def left_out(run: Run, found: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Return a note about experiments that have data and are not drawn; nothing where all are drawn."""
    if len(drawn) == len(found):
        return []
    measure = _quality(run, found)
    chosen = f"with the highest {measure}" if measure else "that come first"
    return [f"Drawn are the {len(drawn)} of {len(found)} experiments {chosen}. The table below has all of them."]


def together_or_apart(
    chart: _Split, draw: Callable[[_Split], str], table: Table, notes: Sequence[str], axes: str = ""
) -> Figure:
    """Return the figure of all series in one drawing; where they are more than there are colours, a small one for each.

    ``axes`` says what the axes are, for small drawings have no room for it; "" where the notes say so.
    """
    if len(chart.series) <= MOST_COLOURS:
        return Figure(chart.title, [draw(chart)], table, notes)
    drawings = [draw(each) for each in chart.apart()]
    return Figure(chart.title, drawings, table, [axes, *notes] if axes else notes, layout="small")


def equal_notes(groups: Iterable[Sequence[str]]) -> list[str]:
    """Return a note for each group of equal experiments."""
    return [
        f"{joined_names(group)} have the same value of every measure on every case, and are drawn once."
        for group in groups
        if len(group) > 1
    ]


def _mean(table: SuiteTable, measure: str) -> float:
    found = table.aggregate([measure])[measure] if measure in table.columns else None
    return -inf if found is None else found


def _quality(run: Run, names: Iterable[str]) -> str:
    tables = [run.tables[name] for name in names]
    return next((measure for measure in QUALITY if any(table.has(measure) for table in tables)), "")


_BLUE, _ORANGE, _GREEN, _PINK, _, _OCHRE, _VIOLET, _GREY = range(8)
_SOLID, _RISING, _FALLING, _LEVEL, _UPRIGHT, _CROSSED, _, _SQUARED = range(8)

_FILLS: Mapping[str, tuple[int, int]] = {
    "Clean Pass": (_GREEN, _SOLID),
    "Hallucination": (_ORANGE, _CROSSED),
    "Retrieval Failure": (_BLUE, _FALLING),
    "Irrelevant": (_PINK, _LEVEL),
    "Total Failure": (_VIOLET, _SQUARED),
    "Unclassified": (_GREY, _SOLID),
    "Correct Abstention": (_GREEN, _RISING),
    "Wrong Abstention": (_OCHRE, _UPRIGHT),
    "Answered Unanswerable": (_ORANGE, _FALLING),
    "Unmeasured": (_GREY, _LEVEL),
}
"""Right answers and right abstentions are green; what no document says is orange; what nobody could judge is grey."""


def kind_fill(kind: str) -> int:
    """Return the number of a kind's colour and pattern in charts."""
    return fill_number(*_FILLS[kind])


def kind_class(kind: str) -> str:
    """Return the class of ``charts.css`` with the same colour and pattern; "" for other than a kind of answer."""
    return f"kind-{kind.lower().replace(' ', '-')}" if kind in CATEGORIES else ""


_MARGIN = 1.05
_UNITS = {"ms": "ms", "usd": "US dollars", "tokens": "tokens"}


def gate_bar(said: Mapping[str, Any], gate: Gate, tone: Tone, ident: str) -> str:
    """Return the bar of a gate with the verdict ``said``; empty without an interval.

    For a comparison the bar shows the difference and its threshold; its scale has 0 in the middle, signs, and the name
    of the other suite. A share or a score is drawn from 0 to 1, a value without an upper limit from 0, with its unit.
    """
    interval, value, threshold = decisive_ends(said), said.get("value"), said.get("threshold")
    if interval is None or value is None or threshold is None:
        return ""
    unit = said.get("unit", "share")
    other = gate.right if isinstance(gate.right, Reference) else None
    if other:
        # The interval is the difference's, and the threshold is the other's value plus the offset.
        value, threshold = value - threshold + other.offset, other.offset
    low, high = interval
    ends = min(low, value) if isfinite(low) else None, max(high, value) if isfinite(high) else None
    bar = IntervalBar(
        ident=ident,
        title=str(gate),
        value=Estimate(value, *ends),
        span=_span([value, threshold, *(end for end in ends if end is not None)], gate, unit),
        threshold=threshold,
        better="high" if ">" in gate.op else "low",
        tone=tone or "mute",
        is_signed=other is not None,
        unit=f"difference to {other.name}" if other else _UNITS.get(unit, ""),
    )
    return interval_bar(bar)


def _span(numbers: list[float], gate: Gate, unit: str) -> tuple[float, float]:
    if isinstance(gate.right, Reference):
        reach = max(map(abs, numbers)) * _MARGIN or 1.0
        return -reach, reach
    if unit in ("share", "score") and min(numbers) >= 0 and max(numbers) <= 1:
        return 0.0, 1.0
    return min(0.0, *numbers) * _MARGIN, max(0.0, *numbers) * _MARGIN or 1.0
