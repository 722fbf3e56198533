"""A run in brief: its answers, its gates, its best experiments, and why answers are wrong."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.gates import Gate
from rag_harness.gates.gates_of_run import gate_or_none
from rag_harness.report.brief.answered import Answered, answered
from rag_harness.report.brief.gates_state import GatesState, gates_state
from rag_harness.report.brief.leads import ANSWERS, RETRIEVAL, Field, Headline, fields_of
from rag_harness.report.brief.looked_up import LookedUp, looked_up
from rag_harness.report.brief.shortfalls import Shortfall, shortfalls
from rag_harness.report.brief.what_failed import Failures, failures_of
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wrong import WRONG, all_with_wrong
from rag_harness.results.causes import CauseLine
from rag_harness.results.manifest import RunManifest
from rag_harness.settings.listed import names_in
from rag_harness.types import GOLDEN

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
        shortfalls=shortfalls(experiments, causes, _failed(gates, k)),
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


def _failed(gates: Sequence[Mapping[str, Any]], k: int) -> list[Gate]:
    read = (gate_or_none(said["gate"], k) for said in gates if said["state"] == "failed")
    return [gate for gate in read if gate is not None]
