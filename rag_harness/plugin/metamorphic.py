"""``--rag-metamorphic``, and gates on its measures: checked after the last test, before gates are judged."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.attribution.bench import Bench
    from rag_harness.attribution.derived import DerivedRuns
    from rag_harness.metamorphic.checking import Checker
    from rag_harness.metamorphic.paraphrase import Paraphraser
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import Trials
    from rag_harness.results.score import ScoreLine

SPENT = "the workers have shared the budget among them, so nothing was asked again; run without -n"


class Metamorphic:
    """Checks where that was asked for, and prints what broke."""

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, trials: Trials) -> None:
        self._session, self._recorder, self._record, self._trials = session, recorder, record, trials
        self._found: dict[str, list[ScoreLine]] | None = None
        self._problem = ""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Check when all tests have run, before whoever reads the tables; not where the run was stopped."""
        result = yield
        if self._recorder.trials and not session.config.option.collectonly:
            self._check_what_is_wanted()
        return result

    def _check_what_is_wanted(self) -> None:
        from rag_harness.errors import RagHarnessError

        wanted = {
            name: self._session.wanted.metamorphic_measures(name) for name in self._recorder.arrived if name != GOLDEN
        }
        wanted = {name: measures for name, measures in wanted.items() if measures}
        for name, measures in wanted.items():
            for measure in measures:
                self._record.want(name, measure)
        try:
            self._found = self._checked(wanted) if wanted else None
        except (OSError, RagHarnessError) as error:
            self._problem = str(error)

    def _checked(self, wanted: dict[str, list[str]]) -> dict[str, list[ScoreLine]]:
        from rag_harness.attribution.derived import DerivedRuns
        from rag_harness.metamorphic.section import as_json

        settings = self._session.settings
        is_spent = bool(settings.budget) and bool(getattr(self._session.config.option, "tx", None))
        runs = None if is_spent else DerivedRuns(self._session.output, settings, self._trials.equipment.engine)
        try:
            checker = self._checker(runs, SPENT if is_spent else "")
            found = {name: checker.check(name, measures) for name, measures in wanted.items()}
        finally:
            if runs is not None:
                runs.close()
        self._record.more["metamorphic"] = as_json(found)
        return found

    def _checker(self, runs: DerivedRuns | None, why_not: str) -> Checker:
        from rag_harness.metamorphic.checking import Checker, Sampling

        settings, manifest = self._session.settings, self._record.manifest
        sampling = Sampling(settings.metamorphic_cases, settings.seed)
        words = self._paraphraser() if runs is not None else None
        return Checker(self._session.output, manifest, self._bench(), runs, sampling, words, why_not)

    def _paraphraser(self) -> Paraphraser | None:
        if not self._session.settings.writer_model:
            return None
        from rag_harness.metamorphic.paraphrase import Paraphraser

        return Paraphraser(self._session.parts.chat("writer"), self._trials.equipment.engine)

    def _bench(self) -> Bench:
        from rag_harness.attribution.bench import Bench

        session: Any = self._session
        return Bench(session.known_experiment, session.fingerprint, session.parts.data)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the rates and the worst examples, where that was asked for."""
        if self._problem:
            terminalreporter.section("rag metamorphic", sep="=")
            terminalreporter.line(f"cannot be checked: {self._problem}", red=True)
        if self._found is None:
            return
        from rag_harness.metamorphic.section import metamorphic_lines

        terminalreporter.section("rag metamorphic", sep="=")
        lines = metamorphic_lines(self._found, self._session.settings)
        terminalreporter.line("\n".join(lines))
