"""Runs the metamorphic checks that ``--rag-metamorphic``, or a gate on a metamorphic measure, asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.derived import bench_of, derived_runs, print_section
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.derived.derived_runs import DerivedRuns
    from rag_harness.derived.metamorphic.checking import Checker
    from rag_harness.derived.metamorphic.paraphrase import Paraphraser
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.results.score import ScoreLine

SPENT = "the workers have shared the budget among them, so nothing was asked again; run without -n"


class Metamorphic:
    """Runs the checks that were asked for, and prints what broke."""

    def __init__(self, session: RagSession, recorder: Recorder, findings: RunFindings, trials: TrialRunner) -> None:
        self._session, self._recorder, self._findings, self._trials = session, recorder, findings, trials
        self._found: dict[str, list[ScoreLine]] | None = None
        self._problem = ""

    def check(self) -> None:
        """Check after all tests, before anything reads the tables. Not if the run was stopped."""
        if not self._recorder.trials:
            return
        wanted = {
            name: self._session.wanted.metamorphic_measures(name) for name in self._recorder.arrived if name != GOLDEN
        }
        wanted = {name: measures for name, measures in wanted.items() if measures}
        for name, measures in wanted.items():
            for measure in measures:
                self._findings.measures.want(name, measure)
        if wanted:
            self._found, why = tried(lambda: self._checked(wanted))
            self._problem = f"cannot be checked: {why}" if why else ""

    def _checked(self, wanted: dict[str, list[str]]) -> dict[str, list[ScoreLine]]:
        from rag_harness.derived.metamorphic.checks_text import rates_as_json

        with derived_runs(self._session, self._trials) as runs:
            checker = self._checker(runs, SPENT if runs is None else "")
            found = {name: checker.check(name, measures) for name, measures in wanted.items()}
        self._findings.more["metamorphic"] = rates_as_json(found)
        return found

    def _checker(self, runs: DerivedRuns | None, why_not: str) -> Checker:
        from rag_harness.derived.metamorphic.checking import CaseSampling, Checker

        settings, manifest = self._session.settings, self._findings.manifest
        sampling = CaseSampling(settings.metamorphic_cases, settings.seed)
        words = self._paraphraser() if runs is not None else None
        bench = bench_of(self._session, self._session.experiments.known)
        return Checker(self._session.output, manifest, bench, runs, sampling, words, why_not)

    def _paraphraser(self) -> Paraphraser | None:
        if not self._session.settings.writer_model:
            return None
        from rag_harness.derived.metamorphic.paraphrase import Paraphraser

        return Paraphraser(self._session.parts.chat("writer"), self._trials.equipment.engine)

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the rates and the worst examples, if that was asked for."""
        found = self._found
        shown = None if found is None else lambda: self._lines(found)
        print_section(terminal, "rag metamorphic", self._problem, shown)

    def _lines(self, found: dict[str, list[ScoreLine]]) -> list[str]:
        from rag_harness.derived.metamorphic.checks_text import metamorphic_lines

        return metamorphic_lines(found, self._session.settings)
