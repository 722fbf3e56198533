"""The one writer of result files: the controller under xdist, else the only process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rag_harness.files.log import log
from rag_harness.plugin.trial_ids import GOLDEN
from rag_harness.types import TrialId

if TYPE_CHECKING:
    from rag_harness.engine.stored import Adopted
    from rag_harness.golden.run import RetrievalResult
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.file import ResultFile
    from rag_harness.results.row import ExperimentResult


class Recorder:
    """Takes results off test reports, appends them, and keeps them for the summary."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._files: dict[str, ResultFile] = {}
        self.rows: dict[str, ExperimentResult] = {}
        self.golden: dict[str, ExperimentResult] = {}
        self._texts: dict[str, str] = {}
        self.resumed: set[str] = set()
        self._done: Counter[str] = Counter()
        self.retrievals: dict[str, RetrievalResult] = {}
        self.found: dict[str, bool] = {}
        self.adopted: Adopted | None = None
        self.not_run: set[TrialId] = set()

    def collection_done(self, selected: Collected) -> None:  # noqa: ARG002 - the signature is the listeners'
        """Take over what a run that was cut off has left in its journals, before a trial is looked up."""
        self._adopt_once()

    def _adopt_once(self) -> None:
        from rag_harness.engine.stored import Adopted
        from rag_harness.errors import PrerequisiteError

        if self.adopted is not None or self._session.config.option.collectonly:
            return
        self.adopted = Adopted()
        try:
            self.adopted = self._adopt()
        except PrerequisiteError:
            return  # a setting that cannot be used: collection says so
        except OSError as error:
            raise pytest.UsageError(f"What an earlier run left behind cannot be taken over: {error}") from None

    def _adopt(self) -> Adopted:
        from rag_harness.engine.stored import adopt_journals

        settings = self._session.settings
        return adopt_journals(settings.path(settings.output))

    def finish(self) -> None:
        """Make the result files safe, and add to them what came back without a test that looked at it."""
        for file in self._files.values():
            file.close()
        if self._files or self.adopted is not None:
            self._adopt()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result that ``report`` carries, if any; a trial that several tests look at is recorded once."""
        if hasattr(report, "rag_retrieval"):
            self._take_retrieval(report.nodeid, report.rag_retrieval)
        if hasattr(report, "rag_row"):
            # pytest keeps every report to the end of the run.
            self._take_row(vars(report).pop("rag_row"), report.rag_resumed)
        if hasattr(report, "rag_not_run"):
            self.not_run.add(TrialId(*report.rag_not_run))

    def _take_row(self, line: str, resumed: bool) -> None:
        from rag_harness.results.row import lean, parse_row

        row = parse_row(line)
        rows = self.golden if row.experiment == GOLDEN else self.rows
        if row.trial_id in rows:
            return
        rows[row.trial_id] = lean(parse_row(line), self._texts)
        self._done[row.experiment] += 1
        log.info("%s query %d/%d", row.experiment, self._done[row.experiment], len(self._session.cases))
        if resumed:
            self.resumed.add(row.trial_id)
        else:
            self._file(row.experiment).append(row)
        self._session.config.hook.pytest_rag_result(result=row, config=self._session.config)

    def _take_retrieval(self, nodeid: str, line: str) -> None:
        from rag_harness.golden.run import RetrievalResult

        result = RetrievalResult.model_validate_json(line)
        self.retrievals[result.case_id] = result
        self.found[nodeid] = result.found

    def _file(self, experiment: str) -> ResultFile:
        if experiment not in self._files:
            from rag_harness.engine.stored import result_path
            from rag_harness.results.file import ResultFile

            settings = self._session.settings
            file = result_path(settings.path(settings.output), experiment)
            self._files[experiment] = ResultFile(file, settings.overwrite)
        return self._files[experiment]

    @property
    def set_aside(self) -> int:
        """Rows of other fingerprints that were moved out of the way."""
        return sum(file.set_aside for file in self._files.values())

    @property
    def repaired(self) -> int:
        """Damaged lines and rows that stood twice, moved out of the way."""
        damaged = self.adopted.damaged if self.adopted else 0
        return damaged + sum(file.repaired for file in self._files.values())
