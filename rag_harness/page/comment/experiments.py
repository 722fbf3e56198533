"""The table of experiments: what each finds, what it answers, how often it declines and is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from rag_harness.gates.units import bounds, value_said
from rag_harness.page.comment.room import Room, below, table_rows
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.report.brief import Brief, Lead
from rag_harness.report.golden_summary import GOLDEN_MEASURES
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted
from rag_harness.report.wrong import WRONG, verdicts_of
from rag_harness.shown.markdown import plain

_MEASURES = (
    *("recall@5", "evidence_recall", "context_precision", "answer_correctness", "nugget_recall", "token_f1"),
    *("factuality", "hri", "g_mean", "faithfulness", "answer_relevancy"),
)
_MOST_MEASURES = 6
_VERDICTS = ("wrong, 95 %", "declined", "wrongly declined")
_LEGEND = "Bold: the best mean. ★: surely better than all others (95 %)."


def experiment_lines(brief: Brief, run: Run, room: Room) -> Iterator[str]:
    """Yield a row for each experiment; those that are equal on every measure share a row."""
    tables = brief.tables or run.selected
    if not tables:
        return
    groups = [group for field in brief.fields for group in field.groups] or [[name] for name in tables]
    measures = _measures(brief, tables)
    shown = groups if len(groups) <= room.rows else _best_first(groups, brief)[: room.rows]
    rows = [_row(group, measures, brief, tables[group[0]], room) for group in shown]
    head = ["experiment", "answered", *_VERDICTS, *measures]
    # Of the golden suite, where nothing is answered, there are measures only.
    kept = [n for n, name in enumerate(head) if brief.tables or name not in ("answered", *_VERDICTS)]
    yield from table_rows([head[n] for n in kept], [[row[n] for n in kept] for row in rows])
    left = len(groups) - len(shown)
    more = f"… and {counted(left, 'experiment')} more. " if left else ""
    yield from below(f"{more}{_LEGEND if _leads(brief) else ''}".strip())


def _leads(brief: Brief) -> list[Lead]:
    return [lead for field in brief.fields for lead in field.leads if not lead.is_level]


def _measures(brief: Brief, tables: Mapping[str, SuiteTable]) -> list[str]:
    """Return the measures of the table: those that decide first."""
    # The measure of the cutoff comes first: it is the one that the sentences and most gates are about.
    known = dict.fromkeys([brief.alone.measure, *GOLDEN_MEASURES]) if brief.alone is not None else _MEASURES
    there = [name for name in known if any(found.has(name) for found in tables.values())]
    decide = [lead.standing.measure for lead in _leads(brief) if lead.standing.measure != WRONG]
    wanted = [*dict.fromkeys([*(name for name in decide if name in there), *there])][:_MOST_MEASURES]
    return [name for name in there if name in wanted]


def _best_first(groups: Sequence[Sequence[str]], brief: Brief) -> list[Sequence[str]]:
    """Return groups by the mean of the measure that is spoken of first, the best first."""
    lead = next((lead for lead in brief.fields[0].leads if not lead.is_level), None)
    if lead is None:
        return list(groups)
    measure, sign = lead.standing.measure, 1 if lead.standing.is_lower else -1

    def place(group: Sequence[str]) -> float:
        found = brief.tables[group[0]]
        mean = found.aggregate([measure])[measure] if found.has(measure) else None
        return inf if mean is None else sign * mean

    return sorted(groups, key=place)


def _row(group: Sequence[str], measures: Sequence[str], brief: Brief, found: SuiteTable, room: Room) -> list[str]:
    best = {lead.standing.measure: lead for lead in _leads(brief) if group[0] in lead.best}
    cells = [_cell(found, name, name in best, name in best and best[name].is_sure) for name in measures]
    n = found.selected_of({})
    answered = f"{n - found.totals.errors - found.lost_of({}):,} of {n:,}"
    verdicts = verdicts_of(found)
    wrong, wrongly = (verdicts.share_said, f"{verdicts.declined:,}") if verdicts is not None else (NONE, NONE)
    names = " = ".join(room.named(name) for name in group[:3])
    more = f" = {len(group) - 3} more" if len(group) > 3 else ""
    return [f"{names}{more}", answered, plain(wrong), f"{found.totals.abstained:,}", wrongly, *cells]


def _cell(found: SuiteTable, measure: str, is_best: bool, is_sure: bool) -> str:
    """Return the mean; of a best one the interval, too. A star says that it is surely the best."""
    mean = found.aggregate([measure])[measure] if found.has(measure) else None
    if mean is None:
        return NONE
    unit, between = found.columns[measure].measure.unit, found.interval(measure)
    said = value_said(mean, unit)
    if not is_best:
        return said
    return f"**{said}**{' ★' if is_sure else ''}{f' {plain(bounds(*between, unit))}' if between else ''}"
