"""A run in brief: answers, gates, failures, best experiments, and wrong answers with their causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from math import isfinite
from typing import Any

import numpy as np

from rag_harness.core.settings.table import names_in
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.records.manifest import RunManifest
from rag_harness.records.scores import CauseLine
from rag_harness.runs.gates import Gate, Reference
from rag_harness.runs.gates.configuration import gate_or_none
from rag_harness.runs.gates.verdict import meets_threshold
from rag_harness.tables.answer_warnings import WRONG, all_with_wrong, wrongly_declined
from rag_harness.tables.blocks import Origin
from rag_harness.tables.gate_states import FAILING_OPTIONS, STATE_WORDS, GatesState, gates_state
from rag_harness.tables.golden_suite import LookedUp, looked_up
from rag_harness.tables.standings import ANSWERS, RETRIEVAL, Field, Headline, fields_of
from rag_harness.tables.suite_table import CaseState, SuiteTable
from rag_harness.tables.summary import author, judges_said
from rag_harness.tables.wording import counted


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a run, over all experiments.

    Attributes:
        asked: number of trials that the run was to look at.
        rows: number of trials that ended with an answer.
        errors: number of trials that ended with an error.
        lost: number of trials without a row.
        authors: the models that answered, as readable names; the name of one that is not an LLM says so.
        judges: the judges, as readable names.
        origins: where the answers come from, as text: "200 replayed (recorded 23 Nov 2026)".
        earlier: experiments of an earlier run, which this one did not look at.
    """

    asked: int
    rows: int
    errors: int
    lost: int
    authors: tuple[str, ...]
    judges: tuple[str, ...]
    origins: tuple[str, ...]
    earlier: tuple[str, ...] = ()


def answered(tables: Mapping[str, SuiteTable], manifest: RunManifest) -> Answered:
    """Return what is to be said about the answers of the experiments."""
    asked = sum(table.selected_of({}) for table in tables.values())
    errors = sum(table.totals.errors for table in tables.values())
    lost = sum(table.lost_of({}) for table in tables.values())
    models: Counter[str] = Counter()
    for table in tables.values():
        models.update(table.totals.models)
    return Answered(
        asked=asked,
        rows=asked - errors - lost,
        errors=errors,
        lost=lost,
        authors=tuple(dict.fromkeys(author(model) for model, _ in models.most_common())),
        judges=tuple(judges_said(manifest.suites[name] for name in tables)),
        origins=tuple(_origins(tables)),
        earlier=tuple(name for name in tables if manifest.suites[name].made),
    )


def _origins(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    found = [table.totals.origins for table in tables.values()]
    replayed, resumed = Origin(), Origin()
    for each in found:
        _gather(replayed, each.replayed)
        _gather(resumed, each.resumed)
    declined = sum(each.declined for each in found)
    computed = sum(each.computed for each in found) - declined
    asked = sum(each.asked.n for each in found)
    partly = sum(each.partly.n for each in found)
    if asked:
        parts = f", {'' if partly == asked else f'{partly:,} '}with replayed parts" if partly else ""
        yield f"{asked:,} asked now{parts}"
    if replayed.n:
        yield f"{replayed.n:,} replayed (recorded {_when(replayed)})"
    if resumed.n:
        yield f"{resumed.n:,} reused from the run of {_when(resumed)}"
    if declined:
        yield f"{declined:,} declined without a model"
    if computed:
        yield f"{computed:,} computed without a model"


def _gather(total: Origin, part: Origin) -> None:
    total.n += part.n
    total.undated += part.undated
    total.earliest, total.latest = min(total.earliest, part.earliest), max(total.latest, part.latest)


def _when(origin: Origin) -> str:
    if not isfinite(origin.earliest):
        return "at an unknown time"
    first, last = (_day(each) for each in (origin.earliest, origin.latest))
    return first if first == last else f"{first} to {last}"


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%d %b %Y}".lstrip("0")


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


# What fails a run beside its gates: questions without an answer or with a failed test, and checks that could not be
# made.


@dataclass(frozen=True, slots=True)
class Failures:
    """What fails a run beside its gates.

    Attributes:
        cases: the failed questions by suite: those whose test failed, and those without a result. Where no test asked,
            those without an answer are failed ones.
        wrong: those of them that have an answer, by experiment.
        asked: number of questions that the run was to look at, of all its suites.
        others: number of failed tests that ask no question.
        unchecked: number of checks that fail the run because they could not be made, by what they are.
    """

    cases: Mapping[str, Collection[str]]
    wrong: Mapping[str, Sequence[str]]
    asked: int
    others: int = 0
    unchecked: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.said)

    @property
    def said(self) -> list[str]:
        """What failed, a phrase each: ``3 of 8 questions failed``."""
        return [*self._said()]

    def _said(self) -> Iterator[str]:
        n = sum(map(len, self.cases.values()))
        if n:
            each = "question" if len(self.cases) == 1 or not set(self.cases) - {GOLDEN} else "trial"
            yield f"{n:,} of {counted(self.asked, each)} failed"
        if self.others:
            yield f"{counted(self.others, 'other test')} failed"
        for state, option in FAILING_OPTIONS.items():
            if n := self.unchecked.get(state, 0):
                yield f"{counted(n, 'gate')} {STATE_WORDS[state]}, which fails this run ({option})"
        if self.unchecked.get("comparison"):
            yield "the run could not be compared with the saved one"


def failures_of(tables: Mapping[str, SuiteTable], manifest: RunManifest, unchecked: Mapping[str, int]) -> Failures:
    """Return what failed in the suites that the run has looked at; those of an earlier run are left out."""
    mine = {name: table for name, table in tables.items() if not manifest.suites[name].made}
    failed = {name: manifest.suites[name].failed for name in mine}
    return Failures(
        cases={name: _failed(table, failed[name]) for name, table in mine.items()},
        wrong={name: _in(table, CaseState.OK, failed[name] or ()) for name, table in mine.items() if name != GOLDEN},
        asked=sum(table.selected_of({}) for table in mine.values()),
        others=manifest.other_failures,
        unchecked=unchecked,
    )


def _failed(table: SuiteTable, failed: Sequence[str] | None) -> set[str]:
    without = [CaseState.LOST] if failed is not None else [CaseState.LOST, CaseState.ERROR]
    missing = np.flatnonzero(np.isin(table.states, without))
    return {*(failed or ()), *(table.ids[place] for place in missing.tolist())}


def _in(table: SuiteTable, state: CaseState, cases: Collection[str]) -> list[str]:
    known = set(cases)
    found = np.flatnonzero(table.states == state).tolist() if known else ()
    return [table.ids[place] for place in found if table.ids[place] in known]


_QUOTES = "evidence_recall"
"""Has values where questions have evidence, which an answer is compared with, too."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A run in brief.

    Attributes:
        answered: how many questions were answered, by whom, and when.
        gates: the verdicts of its gates.
        fields: its experiments by data, and which of each are best; empty where only the golden suite ran.
        shortfalls: which answers of an experiment are wrong, and why, by its name; empty where nobody looked into that.
        tables: the tables of the experiments, by name.
        was_explained: whether the run was asked why answers are wrong.
        failures: what fails the run beside its gates.
        golden: what the golden suite found; None where it did not run.
        causes_are_due: whether causes are worked out when this is printed.
        unmeasured: measures of ``rag_headline`` of which no experiment has a value.
    """

    answered: Answered
    gates: GatesState
    fields: Sequence[Field]
    shortfalls: Mapping[str, Shortfall]
    tables: Mapping[str, SuiteTable]
    was_explained: bool
    failures: Failures
    golden: LookedUp | None = None
    causes_are_due: bool = False
    unmeasured: Sequence[str] = ()

    @property
    def subject(self) -> str:
        """The experiment that the sentences about causes speak of: the best of the first data; empty for none."""
        return self.fields[0].subject if self.fields else ""

    @property
    def shortfall(self) -> Shortfall | None:
        """Why answers of the subject fall short, else those of the first experiment with causes; None without any."""
        return self.shortfalls.get(self.subject) or next(iter(self.shortfalls.values()), None)

    @property
    def may_be_explained(self) -> bool:
        """Whether the command that explains a run finds something: an answer that is wrong, or that nothing checks."""
        if not self.answered.rows or not self.answers_are_measured:
            return False
        is_open = any(not found.has(CORRECT) or wrong_answers(found) for found in self.tables.values())
        return is_open or self.shortfall is not None or any(gate.worst for gate in self.gates.failed)

    @property
    def alone(self) -> LookedUp | None:
        """What the golden suite found in a run without an experiment; None in any other run."""
        return None if self.tables else self.golden

    @property
    def is_measured(self) -> bool:
        """Whether gold or a judge says anything about what was found or answered."""
        return self.answers_are_measured or self._has(RETRIEVAL)

    @property
    def answers_are_measured(self) -> bool:
        """Whether gold or a judge says anything about what was answered. Pages say only what is to be found."""
        return self._has((WRONG, *ANSWERS, _QUOTES))

    def _has(self, measures: Sequence[str]) -> bool:
        return any(found.has(name) for found in self.tables.values() for name in measures)


def brief_of(
    tables: Mapping[str, SuiteTable],
    manifest: RunManifest,
    gates: Sequence[Mapping[str, Any]],
    causes: Sequence[CauseLine],
    unchecked: Mapping[str, int] | None = None,
) -> Brief:
    """Return a run in brief.

    Args:
        tables: tables of the suites of the run.
        manifest: the run's manifest.
        gates: verdicts, as ``summary.json`` has them.
        causes: causes of the run's rows, the worst of each experiment first.
        unchecked: number of checks that fail the run because they could not be made, as ``summary.json`` has it.
    """
    selected = {name: table for name, table in tables.items() if table.selected_of({})}
    now = {name for name in selected if not manifest.suites[name].made}
    # What earlier runs have left is compared with what this one answered. The golden suite alone answers nothing.
    named = () if now == {GOLDEN} else selected
    experiments = all_with_wrong({name: selected[name] for name in sorted(named) if name != GOLDEN})
    k = int(manifest.settings.get("k") or 10)
    headline = _headline(manifest, gates, experiments, k)
    return Brief(
        answered=answered(experiments, manifest),
        gates=gates_state(gates, selected, causes, k, unchecked),
        fields=fields_of(experiments, manifest.suites, headline),
        shortfalls=shortfalls(experiments, causes, _failed_gates(gates, k)),
        tables=experiments,
        was_explained=bool(manifest.settings.get("attribute")) and bool(now & experiments.keys()),
        failures=failures_of(selected, manifest, unchecked or {}),
        golden=looked_up(selected, k),
        unmeasured=[name for name in headline.named if not any(each.has(name) for each in experiments.values())],
    )


def _headline(manifest: RunManifest, gates: Sequence[Mapping[str, Any]], suites: Container[str], k: int) -> Headline:
    """Return what is told first: what the project names, and what its gates on all questions are on."""
    named = names_in(manifest.settings.get("headline") or ())
    read = (gate_or_none(said["gate"], k) for said in gates)
    gated = dict.fromkeys(gate.measure for gate in read if gate is not None and gate.suite in suites and not gate.slice)
    return Headline(named, list(gated))


def _failed_gates(gates: Sequence[Mapping[str, Any]], k: int) -> list[Gate]:
    read = (gate_or_none(said["gate"], k) for said in gates if said["state"] == "failed")
    return [gate for gate in read if gate is not None]
