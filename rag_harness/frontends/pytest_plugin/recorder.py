"""The only writer of result files, and the values that tables take from rows as they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.core.cache import naming, unwritable
from rag_harness.core.concurrency import begin_ahead
from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.log import log
from rag_harness.core.text.language_detection import load_ahead
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin.terminal import stop_tests, usage_error
from rag_harness.frontends.pytest_plugin.trial_report import skipped_why, take_off

if TYPE_CHECKING:
    from rag_harness.core.concurrency import Lazy
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case
    from rag_harness.evaluation.measures import Measure
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.run_record import RunRecord
    from rag_harness.frontends.pytest_plugin.session import RagSession, RunCases
    from rag_harness.frontends.pytest_plugin.trial_report import RunAgainOn, TrialReport
    from rag_harness.records.cases import StoredCase
    from rag_harness.records.files import ResultFile, ScoreFile
    from rag_harness.records.row import ExperimentResult
    from rag_harness.records.scores import ScoreLine
    from rag_harness.runs.journal import AdoptedRows
    from rag_harness.tables.column_cache import CacheWriter
    from rag_harness.tables.requested_measures import WantedMeasures


class Recorder:
    """Takes results from test reports and appends them to their files. In memory it keeps which results came.

    Attributes:
        arrived: query ids by experiment, golden entries among them.
        resumed: the queries whose row was made by an earlier run.
        fingerprints: of the rows that came, by experiment.
        replayed: experiments with answers from recordings.
        declaring: experiments that say whether they retrieve.
        with_context: experiments of which an answer came with a context.
        authors: the judges whose judgements came, by experiment; those of a panel in its order.
        judging: tokens and calls of the judge's model, by experiment.
        not_run: trials that were not asked, with the reason: they could have passed the budget, or they are turns
            after one that failed.
        ended: trials that were not asked because a simulated user had ended the conversation, with turn and reason.
        taken_out: conversations whose simulated user left its role, with the reason, by experiment and conversation.
        refused: why an experiment, or the golden suite, can answer nothing more, such as settings that cannot be used.
        settled: experiments that were stopped early, since all of their gates were settled.
        missed: tests of golden entries that were not found.
        failed: cases whose test failed, by experiment.
        other_failures: failed tests that ask no question.
        silent: trials whose test ended without a row.
        unrecorded: calls of a user's own pipelines that cannot be recorded, by experiment and kind.
        broken_exports: requests with spans that broke off, by the address that they were sent to.
        skipped: trials that a test skipped, by a mark or by itself, with the reason; another test may have asked them.
        run_again: tests that had failed and were run again, by node id, with what they then looked at.
        written: called with each row that was appended, and its line; None calls nothing.
        scored: called with each score likewise.
        broken: why nothing more is written; results are then in the journals only.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._files: dict[str, ResultFile] = {}
        self.arrived: dict[str, set[str]] = {}
        self.resumed: dict[str, set[str]] = {}
        self.fingerprints: dict[str, set[str]] = {}
        self.replayed: set[str] = set()
        self.declaring: set[str] = set()
        self.with_context: set[str] = set()
        self.authors: dict[str, dict[tuple[str, str, str], None]] = {}
        self.judging: dict[str, Counter[str]] = {}
        self._score_files: dict[str, ScoreFile] = {}
        self.missed: list[str] = []
        self.failed: dict[str, set[str]] = {}
        self.other_failures: set[str] = set()
        self.silent: set[TrialId] = set()
        self.unrecorded: dict[str, Counter[str]] = {}
        self.broken_exports: Counter[str] = Counter()
        self.skipped: dict[TrialId, str] = {}
        self.run_again: dict[str, RunAgainOn] = {}
        self._by_node: Mapping[str, TrialId] = {}
        self.adopted: AdoptedRows | None = None
        self._alone = ExitStack()
        self.not_run: dict[TrialId, str] = {}
        self.ended: dict[TrialId, str] = {}
        self.taken_out: dict[tuple[str, str], str] = {}
        self.settled: set[str] = set()
        self.refused: dict[str, str] = {}
        self.written: Callable[[ExperimentResult, bytes], None] | None = None
        self.scored: Callable[[ScoreLine, bytes], None] | None = None
        self.broken: OSError | None = None
        self._has_told = False

    def collection_done(self, selected: Collected) -> None:
        """Take over what an interrupted run has left in its journals, before a trial is looked up."""
        from rag_harness.core.errors import PrerequisiteError
        from rag_harness.runs.journal import AdoptedRows as Adopted

        if self._session.config.option.collectonly or not (selected.by_node or self._session.settings.tune):
            return
        self._by_node = selected.by_node
        self._be_alone()
        self._look_at_recordings()
        self.adopted = Adopted()
        try:
            self.adopted = self._adopt()
            self._begin(selected)
        except PrerequisiteError:
            return  # a setting cannot be used: collection says so
        except OSError as error:
            raise usage_error(f"What an earlier run left behind cannot be read: {error}") from None

    def _begin(self, selected: Collected) -> None:
        """Say what interrupted runs of a user's own have left, and leave it, unless this run goes on with it."""
        from rag_harness.runs.journal import InterruptedRuns

        settings, interrupted = self._session.settings, InterruptedRuns(self._session.output)
        if settings.resume:
            interrupted.resume(selected.suites)
            return
        for said in interrupted.announced(selected.trials) if not settings.overwrite else ():
            self._session.config.get_terminal_writer().line(shown(said))
        interrupted.begin(selected.suites)

    def _be_alone(self) -> None:
        """Keep other runs out of the output folder: two would ask, and pay for, the same trials."""
        from rag_harness.core.errors import PrerequisiteError
        from rag_harness.core.process_lock import RUN_LOCK
        from rag_harness.core.process_lock import LockHeldError as HeldError
        from rag_harness.core.process_lock import process_lock as alone

        try:
            output = self._session.output
        except PrerequisiteError:
            return  # a setting cannot be used: collection says so
        try:
            output.mkdir(parents=True, exist_ok=True)
            self._alone.enter_context(alone(output / RUN_LOCK))
        except HeldError as error:
            raise usage_error(
                f"Another run is writing to {output}: {error.by}. Both would ask the same questions. Start this one "
                f"again when that has ended, and it takes its answers over; or give it a folder: --rag-output=DIR"
            ) from None
        except OSError as error:
            raise usage_error(
                f"Results cannot be written to {output}: {error.strerror or error}. Choose a folder that can be "
                f"written: --rag-output=DIR"
            ) from None

    def _look_at_recordings(self) -> None:
        """Note the age of the recordings before this run makes new ones, which earlier runs could not have used."""
        from rag_harness.core.errors import PrerequisiteError

        with suppress(PrerequisiteError):  # a setting cannot be used: collection says so
            for name in ("", *self._session.experiments.endpoints) if self._session.access.records else ():
                self._session.identities.recorded_last(name)

    def _adopt(self) -> AdoptedRows:
        from rag_harness.runs.journal import adopt_journals

        return adopt_journals(self._session.output)

    def finish(self) -> None:
        """Make the result files safe, and add results that came back and that no test looked at."""
        with self._alone:
            try:
                self.close_files()
                if self._files or self.adopted is not None:
                    self._adopt()
            except OSError as error:
                self.broken = self.broken or error
                self.tell_once()

    def close_files(self) -> None:
        """Leave one row for each query and one score for each key in the files on disk.

        Raises:
            OSError: a file cannot be written, now or earlier in the run.
        """
        files: list[ResultFile | ScoreFile] = [*self._files.values(), *self._score_files.values()]
        for file in files:
            try:
                with naming(file.file):
                    file.close()
            except OSError as error:
                self.broken = self.broken or error
        if self.broken is not None:
            raise self.broken

    def tell_once(self) -> None:
        """Say why nothing more is written, if that was not said before."""
        if self.broken is not None and not self._has_told and not stopped_by_us(self._session.config):
            self._session.config.get_terminal_writer().line(f"rag: {self.told(self.broken)}")
        self._has_told = True

    def told(self, error: OSError) -> str:
        """Return the message about a file that cannot be written: which file, what to do, and what is safe."""
        from rag_harness.runs.journal import JOURNALS

        self._has_told = True
        return unwritable(error, self._session.output / JOURNALS)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result that ``report`` carries, if any. A trial that several tests look at is recorded once.

        If a file cannot be written, the run stops. From then on, results are kept in the journals only.
        """
        try:
            self._take(report)
        except OSError as error:
            self.broken = error
            stop_tests(self._session.config, self.told(error))

    def _take(self, report: pytest.TestReport) -> None:
        carried = take_off(report)
        if carried.missed:
            self.missed.append(report.nodeid)
        if report.failed and carried.gate is None:
            self._take_failed(report.nodeid)
        if report.nodeid in self._by_node:
            self._take_without_row(report, carried, self._by_node[report.nodeid])
        if carried.owed is not None:
            self._take_owed(*carried.owed)
        if (row := carried.result) is not None:
            self._take_shipped(report.nodeid, carried, row)
        self._take_counts(carried)
        if carried.refused is not None:
            suite, why = carried.refused
            self.refused.setdefault(suite, why)
        self._take_again(carried.again)
        if carried.not_run is not None:
            experiment, query_id, why = carried.not_run
            self.not_run[TrialId(experiment, query_id)] = why
        for ended in (*([carried.ended] if carried.ended else []), *carried.ended_again):
            self._take_ended(*ended)

    def _take_counts(self, carried: TrialReport) -> None:
        if carried.unrecorded is not None:
            experiment, counts = carried.unrecorded
            self.unrecorded.setdefault(experiment, Counter()).update(counts)
        if carried.broken_exports is not None:
            self.broken_exports.update(carried.broken_exports)

    def _take_shipped(self, nodeid: str, carried: TrialReport, row: ExperimentResult) -> None:
        """Take a row and its scores."""
        is_new = self._take_row(carried, row)
        if carried.run_again is not None:
            self.run_again[nodeid] = carried.run_again
            if carried.run_again == "new" and not is_new:
                # It is appended, and replaces the answer that came before: a query's last row counts.
                self.resumed.get(row.experiment, set()).discard(row.query_id)
                self._append(row, carried.line)
        # If two workers ran one trial, scores of the second row are dropped with that row.
        if carried.judged is not None and is_new:
            self.take_judged(row.experiment, carried.judged)

    def _take_without_row(self, report: pytest.TestReport, carried: TrialReport, trial: TrialId) -> None:
        """Note of a report that brings no row whether its test is over, and whether it was skipped."""
        if report.when != "setup" and carried.row is None:
            self.silent.add(trial)
        if why := skipped_why(report, carried):
            self.skipped.setdefault(trial, why)

    def _take_failed(self, nodeid: str) -> None:
        trial = self._by_node.get(nodeid)
        if trial is None:
            self.other_failures.add(nodeid)
        else:
            self.failed.setdefault(trial.experiment, set()).add(trial.query_id)

    def _take_ended(self, experiment: str, query_id: str, why: str, out_of_role: bool) -> None:
        """Take a turn that its simulated user never came to; of a repeat, the experiment is the derived one."""
        self.ended[TrialId(experiment, query_id)] = why
        if out_of_role:
            self.taken_out[experiment, query_id.partition("#")[0]] = why

    def _take_owed(self, experiment: str, said: Mapping[str, Any]) -> None:
        """Take from a worker what an experiment owes itself: the controller has not collected its tests."""
        from rag_harness.records.expectations import AddedExpectations as Owed

        if experiment not in self._session.cases.owed:
            self._session.owe(experiment, Owed.of_json(said))

    def _take_row(self, carried: TrialReport, row: ExperimentResult) -> bool:
        """Take a row; return whether it is its trial's first."""
        if not self._is_new(row):
            return False
        if carried.resumed:
            self.resumed.setdefault(row.experiment, set()).add(row.query_id)
        else:
            self._append(row, carried.line)
        if self._session.access.calls_network:
            # For the end of the run, while other answers are waited for.
            load_ahead(row.llm_answer)
            begin_ahead("rag-import", import_module, "rag_harness.diagnosis.failures")
        if row.experiment != GOLDEN:
            self._session.cases.all_of(row.experiment)  # whose snapshots the controller of an xdist run has not read
            self._session.snapshots.take(row)
        self._session.config.hook.pytest_rag_result(result=row, config=self._session.config)
        return True

    def _append(self, row: ExperimentResult, line: str) -> None:
        if self.broken is not None:
            return
        file = self._file(row.experiment)
        with naming(file.file):
            file.append(row, line)
        if self.written is not None:
            self.written(row, line.encode())

    def take_judged(self, experiment: str, judged: Mapping[str, Any]) -> None:
        """Take the judge, the new scores and the costs of a row's judgement.

        Raises:
            OSError: the file cannot be written.
        """
        self.authors.setdefault(experiment, {}).update(dict.fromkeys(judged["authors"]))
        for line in judged["lines"]:
            self._append_score(experiment, line.encode())
        self.judging.setdefault(experiment, Counter()).update(judged["counts"])

    def _append_score(self, experiment: str, line: bytes) -> None:
        if self.broken is not None:
            return
        file = self._score_file(experiment)
        with naming(file.file):
            score = file.append(line)
        if score is not None and self.scored is not None:
            self.scored(score, line)

    def _take_again(self, lines: Iterable[str]) -> None:
        """Take rows and scores of trials that were answered again. They are not in the run's own tables."""
        from rag_harness.records.row import row_or_none
        from rag_harness.records.scores import parse_score

        for line in lines:
            score = parse_score(line)
            row = None if score is not None else row_or_none(line)
            if score is not None:
                self._append_score(score.experiment, line.encode())
            elif row is not None:
                self._append_again(row, line)

    def _append_again(self, row: ExperimentResult, line: str) -> None:
        file = self._file(row.experiment)
        if self.broken is None:
            with naming(file.file):
                file.append(row, line)

    def _is_new(self, row: ExperimentResult) -> bool:
        """Note a row that came, and return whether it is new: several tests may look at one trial."""
        arrived = self.arrived.setdefault(row.experiment, set())
        if row.query_id in arrived:
            return False
        arrived.add(row.query_id)
        self.fingerprints.setdefault(row.experiment, set()).add(row.fingerprint)
        if row.timings_recorded:
            self.replayed.add(row.experiment)
        if row.retrieves is not None:
            self.declaring.add(row.experiment)
        if row.retrieved_chunks:
            self.with_context.add(row.experiment)
        return True

    def is_resumed(self, trial: TrialId) -> bool:
        """Whether the row of a trial was made by an earlier run."""
        return trial.query_id in self.resumed.get(trial.experiment, ())

    def skipped_of(self, experiment: str, selected: Iterable[str]) -> dict[str, str]:
        """Return why cases were not asked: their tests were skipped, and none of them has failed.

        What was left out of an experiment that was settled early was skipped by us.
        """
        if experiment in self.settled:
            return {}
        known = {*self.arrived.get(experiment, ()), *self.failed.get(experiment, ())}
        whys = {case_id: self.skipped.get(TrialId(experiment, case_id), "") for case_id in selected}
        return {case_id: why for case_id, why in whys.items() if why and case_id not in known}

    @property
    def trials(self) -> int:
        """How many trials of experiments have come."""
        return sum(len(ids) for name, ids in self.arrived.items() if name != GOLDEN)

    def _file(self, experiment: str) -> ResultFile:
        if experiment not in self._files:
            from rag_harness.pipelines.experiments import result_path
            from rag_harness.records.files import ResultFile

            file = result_path(self._session.output, experiment)
            self._files[experiment] = ResultFile(file, self._session.settings.overwrite)
        return self._files[experiment]

    def _score_file(self, experiment: str) -> ScoreFile:
        if experiment not in self._score_files:
            from rag_harness.pipelines.experiments import scores_path
            from rag_harness.records.files import ScoreFile

            file = scores_path(self._session.output, experiment)
            self._score_files[experiment] = ScoreFile(file, self._session.settings.overwrite)
        return self._score_files[experiment]

    @property
    def set_aside(self) -> int:
        """How many rows of other fingerprints were moved out of the way."""
        return sum(file.set_aside for file in self._files.values())

    @property
    def repaired(self) -> int:
        """How many damaged lines and duplicate rows were moved out of the way."""
        damaged = self.adopted.damaged if self.adopted else 0
        return damaged + sum(file.repaired for file in self._files.values())


def stopped_by_us(config: pytest.Config) -> bool:
    """Whether we stopped the run, with a reason that pytest prints."""
    runs = (config.pluginmanager.get_plugin(name) for name in ("session", "dsession"))
    return any(str(getattr(each, "shouldstop", "")).startswith("rag_harness: ") for each in runs)


# Keeps the values that tables need while rows and scores of a large run come, so nothing is read again at the end.

LEAST = 5_000
"""Number of trials from which an experiment counts as large. The rows of a smaller one are read in a second or two."""


class ColumnWriter:
    """Keeps the values of large experiments, in the process that writes.

    Args:
        cases: of the run.
        record: writes the cases.
        measures: of the run's tables.
    """

    def __init__(self, cases: RunCases, record: RunRecord, measures: TableMeasures) -> None:
        self._cases, self._record, self._measures = cases, record, measures
        self._large: set[str] = set()
        self._keepers: dict[tuple[str, str], CacheWriter[Any]] = {}
        self._gold: dict[str, _Gold] = {}

    def collection_done(self, selected: Collected) -> None:
        """Note which experiments have many trials."""
        counts = Counter(trial.experiment for trial in selected.every if trial.experiment != GOLDEN)
        self._large = {name for name, count in counts.items() if count >= LEAST}

    def take(self, row: ExperimentResult, line: bytes) -> None:
        """Take a row that was appended to its file as ``line``."""
        self._take("rows", self._rows, row, line)

    def take_score(self, score: ScoreLine, line: bytes) -> None:
        """Take a score that was appended to its file as ``line``."""
        self._take("scores", self._scores, score, line)

    def _take(
        self, what: str, begin: Callable[[str], CacheWriter[Any]], said: ExperimentResult | ScoreLine, line: bytes
    ) -> None:
        if said.experiment not in self._large:
            return
        keeper = self._keepers.get((what, said.experiment))
        if keeper is None:
            self._begin(what, begin, said.experiment)
        else:
            keeper.add(said, line)

    def seal(self) -> None:
        """Keep the values that came last. It must be called before the files are read."""
        for keeper in self._keepers.values():
            keeper.seal()
        self._keepers.clear()
        self._gold.clear()

    def _begin(self, what: str, begin: Callable[[str], CacheWriter[Any]], experiment: str) -> None:
        """Begin with what the file already has, the newest line included. Do nothing if the cases cannot be written."""
        try:
            self._keepers[what, experiment] = begin(experiment)
        except OSError as error:
            # The end of the run reports this, if it cannot write the cases either.
            log.warning("%s: %s are not looked at as they come: %s", experiment, what, error)
            self._large.discard(experiment)

    def _rows(self, experiment: str) -> CacheWriter[ExperimentResult]:
        from rag_harness.pipelines.experiments import result_path
        from rag_harness.tables.column_cache import SEGMENT, row_kind
        from rag_harness.tables.column_cache import CacheWriter as Keeper

        record = self._record
        digest = record.keep_cases(experiment)
        kind = row_kind(self._measures.of(experiment), self._gold_of(experiment), lambda: digest)
        return Keeper(result_path(record.output, experiment), kind, SEGMENT)

    def _scores(self, experiment: str) -> CacheWriter[ScoreLine]:
        from rag_harness.pipelines.experiments import scores_path
        from rag_harness.tables.column_cache import SEGMENT, score_kind
        from rag_harness.tables.column_cache import CacheWriter as Keeper

        digest = self._record.keep_cases(experiment)
        kind = score_kind(self._gold_of(experiment).position, lambda: digest)
        return Keeper(scores_path(self._record.output, experiment), kind, SEGMENT)

    def _gold_of(self, experiment: str) -> _Gold:
        if experiment not in self._gold:
            self._gold[experiment] = _Gold(self._cases.all_of(experiment))
        return self._gold[experiment]


class _Gold:
    """The cases of an experiment in the order of their file."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self.position = {case.query.query_id: place for place, case in enumerate(self._cases)}

    def __getitem__(self, place: int, /) -> StoredCase:
        from rag_harness.records.cases import stored_case as kept

        return kept(self._cases[place])


class TableMeasures:
    """The measures of every run, and those that gates, slices and metamorphic checks ask for.

    Args:
        settings: of the run.
        cases: of the run.
        judged: knows which judged measures the run asks for.

    Attributes:
        wanted: what was asked for, by suite.
    """

    def __init__(self, settings: Lazy[Settings], cases: RunCases, judged: WantedMeasures) -> None:
        self._settings, self._cases, self._judged = settings, cases, judged
        self.wanted: dict[str, dict[str, None]] = {}

    def want(self, suite: str, measure: str) -> None:
        """Add a measure to those that are computed for every run."""
        self.wanted.setdefault(suite, {})[measure] = None

    def of(self, suite: str) -> list[Measure]:
        """Return the measures of a suite's table: those computed for every run, judged ones, and wanted ones."""
        from rag_harness.evaluation.measures import default_measures, measure_named

        kept = {measure.name: measure for measure in default_measures(suite == GOLDEN, self._settings.get().k)}
        played = ["goal_reached"] if self._cases.is_played(suite) else []
        more = [*played, *self._judged.judged_names(suite), *self.wanted.get(suite, ())]
        return list(kept.values()) + [measure_named(name) for name in dict.fromkeys(more) if name not in kept]
