"""``--rag-attribute``: why trials failed, found out after the last test by the process that writes."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from rag_harness.files.log import log

if TYPE_CHECKING:
    from rag_harness.attribution.bench import Bench
    from rag_harness.attribution.derived import DerivedRuns
    from rag_harness.attribution.explain import Explainer
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import Trials
    from rag_harness.protocols import Experiment
    from rag_harness.results.causes import CauseLine

SPENT = "the workers have shared the budget among them, so nothing was run again; rag-harness explain --budget USD does"


class Attribution:
    """Explains when the gates are judged, and prints the causes below the scorecard."""

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, trials: Trials) -> None:
        self._session, self._recorder, self._record, self._trials = session, recorder, record, trials
        self._causes: list[CauseLine] | None = None
        self._problem = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Explain when all tests have run and the tables are there; not where the run was stopped."""
        result = yield
        # The golden suite generates nothing: its misses explain themselves.
        wanted = bool(self._recorder.trials) and not session.config.option.collectonly
        if wanted and self._session.settings.attribute and not self._record.unwritable:
            self._explain()
        return result

    def _explain(self) -> None:
        from rag_harness.attribution.derived import DerivedRuns
        from rag_harness.errors import RagHarnessError

        settings = self._session.settings
        is_spent = bool(settings.budget) and bool(getattr(self._session.config.option, "tx", None))
        runs = None if is_spent else DerivedRuns(self._session.output, settings, self._trials.equipment.engine)
        try:
            self._causes = self._explainer(runs, SPENT if is_spent else "").every()
        except (OSError, RagHarnessError) as error:
            self._problem = str(error)
        except Exception as error:  # the run is paid for, judged and written: it must not end as an internal error
            log.error("Failures could not be explained", exc_info=error)
            self._problem = f"{type(error).__name__}: {error}"
        finally:
            if runs is not None:
                runs.close()

    def _explainer(self, runs: DerivedRuns | None, why_not: str) -> Explainer:
        from rag_harness.attribution.explain import Explainer

        tables = self._record.tables
        return Explainer(self._session.output, self._bench(), runs, tables=tables, why_not=why_not)

    def _bench(self) -> Bench:
        from rag_harness.attribution.bench import Bench
        from rag_harness.pipelines import known_experiments

        session = self._session

        def registered(name: str) -> Experiment | None:
            # One of a user's own fixture that took a registered name has another fingerprint than the registered one.
            return session.registered(name) if name in known_experiments() else None

        return Bench(registered, session.fingerprint, session.parts.data)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print why trials failed, where that was asked for."""
        if self._problem:
            terminalreporter.section("rag causes", sep="=")
            terminalreporter.line(f"cannot be told: {self._problem}", red=True)
        if self._causes is None:
            return
        from rag_harness.attribution.section import cause_lines

        terminalreporter.section("rag causes", sep="=")
        terminalreporter.line("\n".join(cause_lines(self._causes, self._session.settings.output)))
