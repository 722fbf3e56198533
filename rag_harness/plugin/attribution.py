"""``--rag-attribute``: finds out why trials failed, after the last test, in the process that writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.derived import bench_of, derived_runs, print_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.protocols import Experiment
    from rag_harness.results.causes import CauseLine

SPENT = "the workers have shared the budget among them, so nothing was run again; rag-harness explain --budget USD does"


class Attribution:
    """Explains failed trials after the gates are judged, and prints the causes below the scorecard."""

    def __init__(self, session: RagSession, recorder: Recorder, findings: RunFindings, trials: TrialRunner) -> None:
        self._session, self._recorder, self._findings, self._trials = session, recorder, findings, trials
        self._causes: list[CauseLine] | None = None
        self._problem = ""
        self._answers: dict[str, int] = {}

    @property
    def causes(self) -> Sequence[CauseLine]:
        """The causes that were found, the worst of each experiment first; none where nothing was explained."""
        return self._causes or ()

    def explain(self) -> None:
        """Explain after all tests, when the tables are there. Not if the run was stopped."""
        # The golden suite generates nothing: its misses explain themselves.
        if self._recorder.trials and self._session.settings.attribute and self._findings.is_readable:
            self._causes, why = tried(self._explained)
            self._problem = f"cannot be told: {why}" if why else ""

    def _explained(self) -> list[CauseLine]:
        from rag_harness.derived.attribution.explain import Explainer

        session, suites = self._session, self._findings.manifest.suites
        # Rows of an earlier run are judged with the rest, but nothing is asked about them: they were not selected.
        tables = {name: table for name, table in self._findings.tables.items() if not suites[name].made}
        with derived_runs(session, self._trials) as runs:
            bench, why_not = bench_of(session, self._registered), SPENT if runs is None else ""
            explainer = Explainer(session.output, bench, runs, tables=tables, why_not=why_not)
            self._answers = explainer.answers
            return explainer.every()

    def _registered(self, name: str) -> Experiment | None:
        """Return an experiment that can be built again. A pipeline that only a fixture makes is not run again."""
        from rag_harness.pipelines import is_known

        # If a user's fixture took a registered name, its fingerprint differs from the registered experiment's.
        return self._session.experiments.registered(name) if is_known(name, self._session.settings) else None

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print why trials failed, if that was asked for."""
        causes = self._causes
        shown = None if causes is None else lambda: self._lines(causes)
        print_section(terminal, "rag causes", self._problem, shown)

    def _lines(self, causes: list[CauseLine]) -> list[str]:
        from rag_harness.derived.attribution.causes_text import cause_lines

        return cause_lines(causes, self._session.settings.output, answers=self._answers)
