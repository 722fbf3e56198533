"""How many answers of each experiment are wrong, why, and how many more are below a failed gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.gates import Gate, Reference
from rag_harness.gates.verdict import meets_threshold
from rag_harness.measures.correct import CORRECT
from rag_harness.report.suite_table import CaseState, SuiteTable
from rag_harness.report.wrong import wrongly_declined
from rag_harness.results.causes import CauseLine


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The wrong answers of an experiment, by the measure ``correct``, whatever its gates ask for.

    Attributes:
        experiment: its name.
        n: number of wrong answers, wrong declines included; where nothing was checked, of those that were looked into.
        answers: number of all its answers.
        declined: number of those that decline a question that the documents answer.
        is_sample: whether no answer was checked, so that only the worst were looked into.
        below: number of answers that are not wrong, and that are below a failed gate.
        causes: number of these answers by cause, the most frequent first.
        main: the most frequent pair of a cause and a finer cause, ``detail``; ``of_main`` answers have it.
        remedy: what helps against most of these.
        worst: id of the worst of these trials; ``query`` is its question, ``evidence`` shows its cause.
    """

    experiment: str
    n: int
    answers: int
    declined: int
    is_sample: bool
    below: int
    causes: Mapping[str, int]
    main: str
    detail: str
    of_main: int
    remedy: str
    worst: str
    query: str
    evidence: str

    @property
    def share(self) -> float:
        """The share of these answers that have the main cause."""
        return self.of_main / self.n

    @property
    def below_said(self) -> str:
        """How many more answers are below a failed gate; empty for none."""
        return f"{self.below:,} more below a failed gate" if self.below else ""


def shortfalls(
    tables: Mapping[str, SuiteTable], causes: Sequence[CauseLine], failed: Sequence[Gate] = ()
) -> dict[str, Shortfall]:
    """Return the shortfall of each experiment with causes, by its name. ``failed`` are the gates that failed."""
    found: dict[str, list[CauseLine]] = {name: [] for name in tables}
    for line in causes:
        if line.experiment in found:
            found[line.experiment].append(line)
    return {name: _shortfall(name, tables[name], lines, failed) for name, lines in found.items() if lines}


def below_gate(table: SuiteTable, gate: Gate) -> Iterator[str]:
    """Yield the cases whose value does not meet the threshold of a gate on a mean."""
    assert not isinstance(gate.right, Reference)
    values = table.values(gate.measure, dict(gate.slice))
    return (case for case, value in values.items() if not meets_threshold(value, gate.op, gate.right))


def is_of_answers(gate: Gate) -> bool:
    """Whether single answers can be below a gate: it is on a mean, against a number, and over no repeats or turns."""
    over = (gate.quantile, gate.over, gate.turns)
    return all(each is None for each in over) and not isinstance(gate.right, Reference)


def wrong_answers(table: SuiteTable) -> set[str]:
    """Return the answered cases that are not correct, wrong declines included."""
    if not table.has(CORRECT):
        return set()
    answered = {case for case, state in zip(table.ids, table.states, strict=True) if state == CaseState.OK}
    return {case for case, value in table.values(CORRECT, {}).items() if not value} & answered


def _below(name: str, table: SuiteTable, failed: Sequence[Gate], wrong: set[str]) -> int:
    mine = [gate for gate in failed if gate.suite == name and is_of_answers(gate) and table.has(gate.measure)]
    return len({case for gate in mine for case in below_gate(table, gate)} - wrong)


def _shortfall(name: str, table: SuiteTable, every: Sequence[CauseLine], failed: Sequence[Gate]) -> Shortfall:
    is_checked, wrong = table.has(CORRECT), wrong_answers(table)
    lines = [line for line in every if line.query_id in wrong] or every
    (main, detail), of_main = Counter((line.cause, line.detail) for line in lines).most_common(1)[0]
    mine = [line for line in lines if (line.cause, line.detail) == (main, detail)]
    worst, remedy = mine[0], Counter(line.remedy for line in mine).most_common(1)[0][0]
    return Shortfall(
        experiment=name,
        n=len(wrong) if is_checked else len(lines),
        answers=table.totals.answered,
        declined=len(wrongly_declined(table) & wrong),
        is_sample=not is_checked,
        below=_below(name, table, failed, wrong),
        causes=dict(Counter(line.cause for line in lines).most_common()),
        main=main,
        detail=detail,
        of_main=of_main,
        remedy=remedy,
        worst=str(worst.trial),
        query=worst.query,
        evidence=worst.evidence,
    )
