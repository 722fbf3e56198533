"""The worst trials: what was asked, what was expected, and why the answer is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rag_harness.derived.attribution.failing import suspects
from rag_harness.gates.units import value_said
from rag_harness.page.comment.links import Links
from rag_harness.page.comment.room import Room
from rag_harness.page.run import Run
from rag_harness.report.brief import Brief
from rag_harness.report.brief.shortfalls import wrong_answers
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.causes import CauseLine
from rag_harness.types import GOLDEN, TrialId

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Worst:
    """A trial that failed, for people."""

    trial: TrialId
    query: str
    expected: str
    cause: str
    evidence: str


def worst_of(brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield the three worst trials of one experiment: those that ended in an error, then those whose test failed, then
    those with a cause, and where none is known those whose answers are worth least.

    It is the first experiment with an error or a failed test; where there is none, the one that the sentences speak of.
    """
    # Where the one that the sentences speak of has no cause, the next one with causes is shown.
    name = next((each for each in (brief.subject, *brief.shortfalls) if each in brief.shortfalls), brief.subject)
    if not name:
        yield from _missed(run)
        return
    broken = (
        each for each in (name, *brief.tables) if brief.tables[each].totals.errors or brief.failures.wrong.get(each)
    )
    name = next(broken, name)
    failed = {each.trial: each for each in _failed(name, brief, run)}
    others = (each for each in _wrong(name, brief, run) if each.trial not in failed)
    yield from islice([*failed.values(), *others], _SHOWN)


def _failed(name: str, brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield trials that ended in an error, then answers that failed their test."""
    table, prefix = brief.tables[name], f"{name}-"
    for trial, why in table.totals.first_errors[:_SHOWN]:
        case = trial.removeprefix(prefix)
        yield Worst(TrialId(name, case), *_asked(name, case, run), "error", why)
    for case in brief.failures.wrong.get(name, ())[:_SHOWN]:
        yield Worst(TrialId(name, case), *_asked(name, case, run), "its test failed", _figures(table, case))


def _wrong(name: str, brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield trials with a cause; where none is known, those whose answers are worth least."""
    explained = [line for line in run.causes.values() if line.experiment == name][:_SHOWN]
    if explained:
        yield from (_explained(line, run) for line in explained)
        return
    table = brief.tables[name]
    wrong = wrong_answers(table)
    found = [each for each in suspects(table, _SHOWN).values() if each.category or each.query_id in wrong]
    for each in found[:_SHOWN]:
        query, expected = _asked(name, each.query_id, run)
        said = _figures(table, each.query_id)
        yield Worst(TrialId(name, each.query_id), query, expected, "cause not known", said)


def _figures(table: SuiteTable, case: str) -> str:
    values = {m: table.values(m, {}).get(case) for m in ("token_f1", "evidence_recall") if table.has(m)}
    return ", ".join(f"{measure} {value_said(value)}" for measure, value in values.items() if value is not None)


def worst_lines(found: Sequence[Worst], room: Room, links: Links) -> Iterator[str]:
    """Yield a line for each trial."""
    if not found:
        return
    yield f"**Worst {'trial' if len(found) == 1 else 'trials'} of {room.named(found[0].trial.experiment)}**"
    for each in found:
        parts = [f"- {links.to(str(each.trial), room)}: {room.said(each.query) or '(no text)'}"]
        parts += [f"Expected: {room.said(each.expected)}"] if each.expected else []
        evidence = f". {room.short(each.evidence)}" if each.evidence else ""
        yield "<br>".join([*parts, f"**{room.short(each.cause)}**{evidence}"])


def _missed(run: Run) -> Iterator[Worst]:
    """Yield the questions of the golden suite whose documents were found last, or not at all."""
    table = run.selected.get(GOLDEN)
    found = table.values("mrr@10", {}) if table is not None and table.has("mrr@10") else {}
    for case_id, value in sorted(found.items(), key=lambda each: each[1])[:_SHOWN]:
        if value < 1:
            query, expected = _asked(GOLDEN, case_id, run)
            rank = f"first found at rank {round(1 / value)}" if value else "not among the first 10"
            yield Worst(TrialId(GOLDEN, case_id), query, expected, rank, "")


def _explained(line: CauseLine, run: Run) -> Worst:
    query, expected = _asked(line.experiment, line.query_id, run)
    cause = line.reviewed_cause or ": ".join(filter(None, [line.cause, line.detail]))
    return Worst(line.trial, line.query or query, expected, cause, line.evidence)


def _asked(experiment: str, case_id: str, run: Run) -> tuple[str, str]:
    """Return the text of a case's query, and what was expected; empty where the data do not say."""
    cases = run.cases_of(experiment)
    place = cases.position.get(case_id)
    try:
        case = cases[place].case if place is not None else None
    finally:
        cases.close()
    if case is None:
        return "", ""
    gold = case.ground_truth or ", ".join(case.context_reference)
    query = run.query_of(experiment, case_id)
    return query, gold if case.answerable else f"to decline, because no page answers it. {gold}".strip()
