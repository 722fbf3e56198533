"""Work after the last test: causes, metamorphic checks, tuning, and answers by earlier contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rag_harness.core.log import log
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.stash import CAUSES_DUE
from rag_harness.frontends.pytest_plugin.terminal import usage_error, write_lines, write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.core.protocols import Experiment
    from rag_harness.diagnosis.interventions import Paraphraser
    from rag_harness.diagnosis.kept_causes import KeptCauses
    from rag_harness.diagnosis.metamorphic import Checker
    from rag_harness.diagnosis.reruns import DerivedRuns
    from rag_harness.diagnosis.tuning.tuner import Tuned
    from rag_harness.evaluation.measures import Score
    from rag_harness.evaluation.measures.conversations import EarlierContexts, LateMeasure
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner
    from rag_harness.records.row import ExperimentResult
    from rag_harness.records.scores import CauseLine, ScoreLine
    from rag_harness.runs.judging import JudgedRow, RowJudge
    from rag_harness.tables.suite_table import SuiteTable


@contextmanager
def derived_runs(session: RagSession, trials: TrialRunner) -> Iterator[DerivedRuns | None]:
    """Give the runner of derived trials; None if the workers have shared the whole budget among them."""
    from rag_harness.diagnosis.reruns import DerivedRuns

    if session.settings.budget and getattr(session.config.option, "tx", None):
        yield None
        return
    runs = DerivedRuns(session.output, session.settings, trials.equipment.engine, trials.equipment.workplace)
    try:
        yield runs
    finally:
        runs.close()


def print_section(
    reporter: pytest.TerminalReporter, title: str, problem: str, lines: Callable[[], Sequence[str]] | None
) -> None:
    """Print a section: the problem if there is one, else the lines. None prints nothing."""
    if problem:
        write_section(reporter, title)
        write_lines(reporter, problem.split("\n"), red=True)
    elif lines is not None:
        write_section(reporter, title, lines())


# Runs work after the last test so that its failure does not end a run that is already paid for.

_Found = TypeVar("_Found")


def defer_errors(work: Callable[[], _Found]) -> tuple[_Found | None, str]:
    """Return the result of ``work``, or None and why it failed.

    The run is already paid for. It must not end as an internal error before its gates are judged and its files written.
    """
    from rag_harness.core.errors import RagHarnessError

    try:
        return work(), ""
    except (OSError, RagHarnessError) as error:
        return None, str(error)
    except Exception as error:
        log.error("What comes after the tests failed", exc_info=error)
        return None, f"{type(error).__name__}: {error}"


SPENT_BEFORE_CAUSES = (
    "the workers have shared the budget among them, so nothing was run again; rag-harness explain --budget USD does"
)


_UNREVIEWED = {"reviewed_cause": "", "reviewed_by": ""}


class Attribution:
    """Explains failed trials after the gates are judged, and prints the causes below the scorecard."""

    def __init__(self, session: RagSession, recorder: Recorder, findings: RunFindings, trials: TrialRunner) -> None:
        self._session, self._recorder, self._findings, self._trials = session, recorder, findings, trials
        self._causes: list[CauseLine] | None = None
        self.is_due = False
        """Whether causes are worked out when the verdict is printed."""
        self._problem = ""
        self._answers: dict[str, int] = {}
        self._wrong: dict[str, set[str]] = {}

    @property
    def causes(self) -> Sequence[CauseLine]:
        """The causes that were found, the worst of each experiment first; none where nothing was explained."""
        return self._causes or ()

    @property
    def is_explained(self) -> bool:
        """Whether causes were looked for, with or without success."""
        return self._causes is not None or bool(self._problem)

    def plan(self) -> None:
        """Note after all tests that causes are wanted. Not if the run was stopped."""
        # The golden suite generates nothing: its misses explain themselves.
        is_wanted = self._recorder.trials and self._session.settings.attribute and self._findings.is_readable
        self.is_due = self._session.config.stash[CAUSES_DUE] = bool(is_wanted)

    def explain(self) -> None:
        """Explain, when the verdict is printed."""
        self._causes, why = defer_errors(self._explained)
        self._problem = f"cannot be told: {why}" if why else ""

    def _explained(self) -> list[CauseLine]:
        from rag_harness.tables.brief import wrong_answers

        session, suites = self._session, self._findings.manifest.suites
        # Rows of an earlier run are judged with the rest, but nothing is asked about them: they were not selected.
        tables = {name: table for name, table in self._findings.tables.items() if not suites[name].made}
        self._answers = {name: table.totals.answered for name, table in tables.items()}
        self._wrong = {name: wrong_answers(table) for name, table in tables.items()}
        kept = self._kept_causes()
        keys = {name: self._key(kept, name, table) for name, table in tables.items() if kept and name != GOLDEN}
        known = {name: lines for name, key in keys.items() if kept and (lines := kept.find(name, key)) is not None}
        if kept and len(known) == len(keys):
            from rag_harness.records.manifest import read_manifest
            from rag_harness.records.scores import leave_causes

            found = [line for lines in known.values() for line in lines]
            return leave_causes(session.output, read_manifest(session.output), tables, found)
        return self._worked_out(tables, known, kept, keys)

    def _worked_out(
        self,
        tables: Mapping[str, SuiteTable],
        known: Mapping[str, Sequence[CauseLine]],
        kept: KeptCauses | None,
        keys: Mapping[str, str],
    ) -> list[CauseLine]:
        from rag_harness.diagnosis.explainer import Explainer
        from rag_harness.diagnosis.reruns import RerunSupport

        session = self._session
        with derived_runs(session, self._trials) as runs:
            support = RerunSupport(self._registered, session.identities.fingerprint, session.parts.data)
            why_not = SPENT_BEFORE_CAUSES if runs is None else ""
            explainer = Explainer(session.output, support, runs, tables=tables, why_not=why_not)
            found = explainer.every(known)
        for name, key in keys.items():
            if kept is not None and runs is not None and name not in known and name not in explainer.unsure:
                # A person's word about a cause is for the rows of its own folder.
                lines = [line.model_copy(update=_UNREVIEWED) for line in found if line.experiment == name]
                kept.keep(name, key, lines)
        return found

    def _kept_causes(self) -> KeptCauses | None:
        """Return the causes of earlier replays; None where trials that are run again may say something new."""
        settings = self._session.settings
        if self._session.access.calls_network or settings.engine != "local" or settings.metamorphic:
            return None
        from rag_harness.diagnosis.kept_causes import KeptCauses

        return KeptCauses(settings, self._session.output, self._trials.equipment.prompts.get().keep_file)

    def _key(self, kept: KeptCauses | None, name: str, table: SuiteTable) -> str:
        """Return the key of the causes of an experiment; empty where it is no longer, or not known, what answered."""
        from rag_harness.core.errors import RagHarnessError
        from rag_harness.core.registry import is_own_code

        session, record = self._session, self._findings.manifest.suites[name]
        try:
            experiment = self._registered(name)
            if kept is None or experiment is None or session.identities.reuses_nothing(experiment):
                return ""
            if not session.access.calls_nobody and is_own_code(experiment.code):
                return ""  # a user's own code may ask again, and be answered otherwise
            fingerprint = session.identities.fingerprint(experiment)
            if fingerprint not in record.fingerprints:
                return ""
            return kept.key(record, table, [name, fingerprint, session.parts.data(experiment.data).digest])
        except (OSError, ValueError, RagHarnessError):
            return ""

    def _registered(self, name: str) -> Experiment | None:
        """Return an experiment that can be built again. A pipeline that only a fixture makes is not run again."""
        from rag_harness.pipelines.experiments import is_known

        # If a user's fixture took a registered name, its fingerprint differs from the registered experiment's.
        return self._session.experiments.registered(name) if is_known(name, self._session.settings) else None

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print why trials failed, if that was asked for."""
        causes = self._causes
        shown = None if causes is None else lambda: self._lines(causes)
        print_section(terminal, "rag causes", self._problem, shown)

    def _lines(self, causes: list[CauseLine]) -> list[str]:
        from rag_harness.diagnosis.cause_lines import cause_lines

        return cause_lines(causes, self._session.settings.output, answers=self._answers, wrong=self._wrong)


SPENT_BEFORE_CHECKS = "the workers have shared the budget among them, so nothing was asked again; run without -n"


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
            self._found, why = defer_errors(lambda: self._checked(wanted))
            self._problem = f"cannot be checked: {why}" if why else ""

    def _checked(self, wanted: dict[str, list[str]]) -> dict[str, list[ScoreLine]]:
        from rag_harness.diagnosis.metamorphic import rates_as_json

        with derived_runs(self._session, self._trials) as runs:
            checker = self._checker(runs, SPENT_BEFORE_CHECKS if runs is None else "")
            found = {name: checker.check(name, measures) for name, measures in wanted.items()}
        self._findings.more["metamorphic"] = rates_as_json(found)
        return found

    def _checker(self, runs: DerivedRuns | None, why_not: str) -> Checker:
        from rag_harness.diagnosis.metamorphic import CaseSampling, Checker
        from rag_harness.diagnosis.reruns import RerunSupport

        settings, manifest = self._session.settings, self._findings.manifest
        sampling = CaseSampling(settings.metamorphic_cases, settings.seed)
        words = self._paraphraser() if runs is not None else None
        session = self._session
        support = RerunSupport(session.experiments.known, session.identities.fingerprint, session.parts.data)
        return Checker(self._session.output, manifest, support, runs, sampling, words, why_not)

    def _paraphraser(self) -> Paraphraser | None:
        if not self._session.settings.writer_model:
            return None
        from rag_harness.diagnosis.interventions import Paraphraser

        return Paraphraser(self._session.parts.chat("writer"), self._trials.equipment.engine)

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the rates and the worst examples, if that was asked for."""
        found = self._found
        shown = None if found is None else lambda: self._lines(found)
        print_section(terminal, "rag metamorphic", self._problem, shown)

    def _lines(self, found: dict[str, list[ScoreLine]]) -> list[str]:
        from rag_harness.diagnosis.metamorphic import metamorphic_lines

        return metamorphic_lines(found, self._session.settings)


SPENT_BEFORE_RACE = "the workers have shared the budget among them, so no configuration was asked; run without -n"
_TUNED = "tuned.toml"


class Tuning:
    """Runs the requested race, and prints its outcome.

    Args:
        session: state of the run.
        trials: runs trials.
    """

    def __init__(self, session: RagSession, trials: TrialRunner) -> None:
        self._session, self._trials = session, trials
        self._tuned: Tuned | None = None
        self._problem = ""

    def collection_done(self, _: Collected) -> None:
        """Read the space before anything is asked.

        Raises:
            pytest.UsageError: it cannot be used.
        """
        if not self._session.settings.tune:
            return
        from rag_harness.core.errors import SettingsError
        from rag_harness.diagnosis.tuning.space import read_space

        try:
            read_space(self._session.settings.path(self._session.settings.tune))
        except SettingsError as error:
            raise usage_error(f"--rag-tune: {error}") from None

    @property
    def has_raced(self) -> bool:
        """Whether a race came to its end."""
        return self._tuned is not None

    def race(self) -> None:
        """Race after all tests."""
        if not self._session.settings.tune:
            return
        self._tuned, why = defer_errors(self._raced)
        self._problem = f"cannot be raced: {why}" if why else ""

    def _raced(self) -> Tuned | None:
        from rag_harness.diagnosis.tuning.space import read_space
        from rag_harness.diagnosis.tuning.tuner import Tuner, write_tuned
        from rag_harness.runs.fingerprint import asked_now

        session = self._session
        space = read_space(session.settings.path(session.settings.tune))
        with derived_runs(session, self._trials) as runs:
            if runs is None:
                self._problem = SPENT_BEFORE_RACE
                return None
            fingerprint = asked_now(session.identities.of_parts)
            tuner = Tuner(space, runs, session.parts, fingerprint, session.output, lambda line: log.info("%s", line))
            tuned = tuner.run()
        write_tuned(session.output / _TUNED, tuned.outcome, tuned.winner)
        return tuned

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the outcome of the race, if one was requested."""
        tuned = self._tuned
        shown = None if tuned is None else lambda: self._lines(tuned)
        print_section(terminal, "rag tune", self._problem, shown)

    def _lines(self, tuned: Tuned) -> list[str]:
        from rag_harness.diagnosis.tuning.outcome import outcome_lines

        file = self._session.output / _TUNED
        return [*outcome_lines(tuned.outcome), f"{file}: pytest --rag-config={file} --rag-run {file.stem}"]


SPENT_BEFORE_CONVERSATIONS = (
    "the workers have shared the budget among them, so no judge was asked about earlier turns; run without -n"
)

Conversations = Mapping[str, Mapping[int, "ExperimentResult"]]
"""The rows of each conversation by the numbers of their turns."""


class EarlierTurns:
    """Has the late measures worked out, in the process that writes."""

    def __init__(self, session: RagSession, recorder: Recorder, trials: TrialRunner) -> None:
        self._session, self._recorder, self._trials = session, recorder, trials
        self._problem = ""

    def judge(self) -> None:
        """Judge all rows of the run that a late measure is wanted of. Not if the run was stopped."""
        for experiment in list(self._recorder.arrived):
            measures = [] if experiment == GOLDEN else self._session.wanted.late_measures(experiment)
            for measure in measures:
                _, why = defer_errors(partial(self._judged, experiment, measure))
                self._problem = self._problem or (f"{measure.name} cannot be told: {why}" if why else "")

    def _judged(self, experiment: str, measure: LateMeasure) -> None:
        """Judge the rows of an experiment, and hand the scores to the writer of the files."""
        kit = self._trials.equipment
        engine, find = kit.engine.get(), kit.stored.get().score
        conversations, cases = self._conversations(experiment), self._cases(experiment)
        keys = []
        for number, judging in enumerate(self._trials.judgements.judges):
            said = self._said(experiment, measure.builds_on, judging)
            for row, earlier in self._asked(experiment, conversations):
                case, of_row = cases[row.query_id], _of(said, row)
                if measure.applies(case):
                    continue
                key = row.trial, measure.name, number
                job = partial(judging.later, row, case, measure, of_row, earlier, find)
                engine.submit(key, job, first=True)
                keys.append(key)
        for key in keys:
            judged = cast("JudgedRow", engine.result(key))
            engine.forget(key)
            self._recorder.take_judged(experiment, judged.plain())

    def _cases(self, experiment: str) -> Mapping[str, Any]:
        return {case.query.query_id: case for case in self._session.cases.all_of(experiment)}

    def _conversations(self, experiment: str) -> Conversations:
        """Return the rows of this run's code: those of the run, and of earlier turns that it did not select."""
        from rag_harness.pipelines.experiments import result_path
        from rag_harness.records.row import rows_in

        fingerprints = self._recorder.fingerprints.get(experiment, set())
        found: dict[str, dict[int, ExperimentResult]] = {}
        for row in rows_in(result_path(self._session.output, experiment)):
            place = row.asked.place
            if place and row.fingerprint in fingerprints:
                found.setdefault(place["conversation"], {})[int(place["turn"])] = row
        return found

    def _asked(
        self, experiment: str, conversations: Conversations
    ) -> Iterator[tuple[ExperimentResult, EarlierContexts | str]]:
        """Yield each answer of the run, with the contexts of the turns before it."""
        arrived = self._recorder.arrived[experiment]
        shared = bool(self._session.settings.budget and getattr(self._session.config.option, "tx", None))
        for turns in conversations.values():
            for number, row in sorted(turns.items()):
                if row.ok and row.query_id in arrived:
                    yield row, SPENT_BEFORE_CONVERSATIONS if shared else _earlier(turns, number)

    def _said(self, experiment: str, measure: str, judging: RowJudge) -> Mapping[tuple[str, str], Score]:
        """Return what a judge has said of each row, by query and digest of the row."""
        from rag_harness.evaluation.measures import Score, measure_named
        from rag_harness.pipelines.experiments import scores_path
        from rag_harness.records.scores import read_scores

        wanted = measure, measure_named(measure).version, 0, judging.author
        return {
            (each.query_id, each.row): Score(each.value, each.reason, each.detail, each.undefined)
            for each in read_scores(scores_path(self._session.output, experiment))
            if (each.measure, each.version, each.repeat, each.author) == wanted
        }

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print why a measure could not be worked out."""
        print_section(terminal, "rag earlier turns", self._problem, None)


def _earlier(turns: Mapping[int, ExperimentResult], number: int) -> EarlierContexts | str:
    lacking = next((turn for turn in range(1, number) if turn not in turns), 0)
    if lacking:
        return f"turn {lacking} has no row in this run"
    return [(turn, [chunk.text for chunk in turns[turn].retrieved_chunks]) for turn in range(number - 1, 0, -1)]


def _of(said: Mapping[tuple[str, str], Score], row: ExperimentResult) -> Score:
    from rag_harness.evaluation.measures import Score
    from rag_harness.records.scores import row_digest

    return said.get((row.query_id, row_digest(row)), Score(None, "no judgement"))
