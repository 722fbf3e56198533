"""The one writer of result files: the controller under xdist, else the only process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rag_harness.log import log
from rag_harness.plugin.session import result_path

if TYPE_CHECKING:
    import pytest

    from rag_harness.plugin.session import RagSession
    from rag_harness.result_file import ResultFile
    from rag_harness.results import ExperimentResult
    from rag_harness.retrieval import RetrievalResult


class Recorder:
    """Takes results off test reports, appends them, and keeps them for the summary."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._files: dict[str, ResultFile] = {}
        self.rows: dict[str, ExperimentResult] = {}
        self.resumed: set[str] = set()
        self._done: Counter[str] = Counter()
        self.retrievals: dict[str, RetrievalResult] = {}
        self.found: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result that ``report`` carries, if any; a trial that several tests look at is recorded once."""
        if hasattr(report, "rag_retrieval"):
            self._take_retrieval(report.nodeid, report.rag_retrieval)
        if hasattr(report, "rag_row"):
            self._take_row(report.rag_row, report.rag_resumed)

    def _take_row(self, line: str, resumed: bool) -> None:
        from rag_harness.results import parse_row

        row = parse_row(line)
        if row.trial_id in self.rows:
            return
        self.rows[row.trial_id] = row
        self._done[row.experiment] += 1
        log.info("%s query %d/%d", row.experiment, self._done[row.experiment], len(self._session.cases))
        if resumed:
            self.resumed.add(row.trial_id)
        else:
            self._file(row.experiment).append(row)
        self._session.config.hook.pytest_rag_result(result=row, config=self._session.config)

    def _take_retrieval(self, nodeid: str, line: str) -> None:
        from rag_harness.retrieval import RetrievalResult

        result = RetrievalResult.model_validate_json(line)
        self.retrievals[result.case_id] = result
        self.found[nodeid] = result.found

    def _file(self, experiment: str) -> ResultFile:
        if experiment not in self._files:
            from rag_harness.result_file import ResultFile

            settings = self._session.settings
            self._files[experiment] = ResultFile(result_path(settings, experiment), settings.overwrite)
        return self._files[experiment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one section, where there was a trial."""
        if self.rows:
            from rag_harness.plugin.terminal import write_summary

            write_summary(terminalreporter, self, self._session.settings)

    @property
    def set_aside(self) -> int:
        """Rows of other fingerprints, and damaged lines, that were moved out of the way."""
        return sum(file.set_aside for file in self._files.values())
