"""What fails a run beside its gates: questions without an answer or with a failed test, and checks that could not be
made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag_harness.report.brief.gates_state import FAILING_OPTIONS, STATE_WORDS
from rag_harness.report.suite_table import CaseState, SuiteTable
from rag_harness.report.wording import counted
from rag_harness.results.manifest import RunManifest
from rag_harness.types import GOLDEN


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
