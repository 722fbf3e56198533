"""Lines about experiments: the figures of one, a table of several."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.gates.units import bounds, value_said
from rag_harness.measures.correct import CORRECT
from rag_harness.report.brief.brief import Brief
from rag_harness.report.brief.writer import TIE, Line, LineWriter
from rag_harness.report.by_turn import FEW_TURNS, Drift, by_turn, drift_of, has_turns, turns_said
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import table
from rag_harness.report.wording import short
from rag_harness.report.wrong import verdicts_of

_WIDEST_NAME, _FEW_ROWS = 24, 8
_FEW_MEASURES = 4
_VERDICTS = ("wrong, 95 %", "declined", "wrongly")
"""Columns of answers that are wrong, that decline, and that do so wrongly."""
_MEASURES = (
    "recall@5",
    "evidence_recall",
    "factuality",
    "hri",
    "g_mean",
    "answer_correctness",
    "expectations",
    "token_f1",
    "faithfulness",
    "answer_relevancy",
)
_SPELT = {"hri": "hallucination risk"}
"""Measures whose names nobody can guess."""
_SHORT = {
    "hri": "risk",
    "evidence_recall": "evidence",
    "expectations": "expected",
    "answer_correctness": "claims",
    "answer_relevancy": "relevancy",
    "faithfulness": "faithful",
}


def main_measure(found: SuiteTable) -> str:
    """Return the first measure that says something of an experiment."""
    return next((name for name in (CORRECT, *_MEASURES) if _tells(found, name)), "recall@5")


def quality_lines(found: SuiteTable, writer: LineWriter) -> Iterator[Line]:
    """Yield the main measures of one experiment with their intervals."""
    said = []
    for name in [each for each in _MEASURES if _tells(found, each)][:_FEW_MEASURES]:
        unit, between = found.columns[name].measure.unit, found.interval(name)
        mean = value_said(found.aggregate([name])[name] or 0.0, unit)
        interval = f" {bounds(*between, unit)}" if between else ""
        said.append(f"{_SPELT.get(name, name)} {mean}{interval}".replace(" ", TIE))
    if said:
        yield from writer.labelled("quality", f"{TIE} ".join(said))


def _tells(found: SuiteTable, name: str) -> bool:
    """Whether a measure has values. What few questions demand stands in the report, which says how many they are."""
    return found.has(name) and (name != "expectations" or 2 * len(found.values(name, {})) >= len(found.ids))


def turn_lines(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return the first measure of each experiment that has conversations, by turn, and its drift."""
    found = []
    for name, each in brief.tables.items():
        measure = next((measure for measure in _MEASURES if _tells(each, measure)), "") if has_turns(each) else ""
        if measure:
            drift = drift_of(each, measure)
            slope = f" {drift.slope:+.2f} a turn{_between(drift)}".replace(" ", TIE) if drift else ""
            said = f"{short(name)}  {measure} by turn  {turns_said(by_turn(each, measure, FEW_TURNS))} "
            found.append(f"{said.replace(' ', TIE)} {slope.strip(TIE)}")
    return [line for n, said in enumerate(found[:_FEW_ROWS]) for line in writer.labelled("" if n else "turns", said)]


def _between(drift: Drift) -> str:
    return f" {bounds(*drift.interval, 'score', signed=True)}" if drift.interval else ""


def _verdict_cells(found: SuiteTable) -> list[str]:
    """Return the share of wrong answers, and how many questions were declined, and wrongly so."""
    verdicts, declined = verdicts_of(found), f"{found.totals.abstained:,}"
    return ["-", declined, "-"] if verdicts is None else [verdicts.share_said, declined, f"{verdicts.declined:,}"]


def table_lines(brief: Brief, writer: LineWriter) -> Iterator[Line]:
    """Yield a table with a row an experiment; those that are equal in everything share one."""
    tables = brief.tables
    columns = [name for name in _MEASURES if any(_tells(found, name) for found in tables.values())]
    groups = [group for field in brief.fields for group in field.groups]
    rows = [["", *_VERDICTS, *(_SHORT.get(each, each) for each in columns)]]
    for name, *same in groups[:_FEW_ROWS]:
        found = tables[name]
        means = found.aggregate([each for each in columns if each in found.columns])
        cells = ["-" if means.get(each) is None else value_said(means[each] or 0.0) for each in columns]
        title = " = ".join([name, *same]) if len(same) < 3 else f"{name} = {len(same)} others"
        rows.append([title, *_verdict_cells(found), *cells])
    widths = [max(len(row[n]) for row in rows) + 2 for n in range(1, len(rows[0]))]
    wanted = min(max(len(row[0]) for row in rows), _WIDEST_NAME)
    while len(widths) > len(_VERDICTS) + 1 and wanted + sum(widths) > writer.width:
        rows = [row[:-1] for row in rows]  # the last measure gives way
        del widths[-1]
    room = writer.width - sum(widths)
    yield from (Line(line.rstrip()) for line in table([[short(row[0], room), *row[1:]] for row in rows]))
    if (more := len(groups) - _FEW_ROWS) > 0:
        yield Line(f"… and {more} more: -v")
