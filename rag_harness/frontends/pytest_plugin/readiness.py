"""Readiness of a run: the keys, packages, services and recordings that it needs, and the report of a recording run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from rag_harness.core.errors import CriticalError, RecordingMissError, SettingsError
from rag_harness.core.log import log
from rag_harness.core.progress import ProgressText, listening
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.options import command_line
from rag_harness.frontends.pytest_plugin.progress import speaks
from rag_harness.frontends.pytest_plugin.terminal import usage_error, write_lines
from rag_harness.frontends.pytest_plugin.workers import USED_RECORDINGS

if TYPE_CHECKING:
    from rag_harness.core.types import Case
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner
    from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline


# Stops a run before anything is asked if it cannot work: without keys, packages, services or recordings.

_IN_PIECES = ("each", "loadgroup", "worksteal")
"""Ways in which xdist deals tests that part the turns of a conversation."""

_RERANKED = ("e3", "e4")
"""How the experiments of the study begin that rerank."""


class Readiness:
    """Checks the settings, in the process that writes.

    Args:
        session: state of the run.
        trials: know what need not be asked again.
    """

    def __init__(self, session: RagSession, trials: TrialRunner) -> None:
        self._session, self._trials = session, trials

    def collection_done(self, selected: Collected) -> None:
        """Check what the selected trials need, as far as they are still to be asked.

        Raises:
            pytest.UsageError: a key, a package, a service or every recording is missing.
        """
        from rag_harness.core.errors import PrerequisiteError

        if self._session.config.option.collectonly or not selected.every:
            return
        try:
            self._check_golden(selected)
            if selected.trials:
                self._check(selected)
        except PrerequisiteError as error:
            raise usage_error(error) from None

    def _check_golden(self, selected: Collected) -> None:
        """Check that the golden set is about the documents, and that its retriever can be made."""
        if not any(trial.experiment == GOLDEN for trial in {*selected.every} - selected.left_out):
            return
        with suppress(CriticalError, RecordingMissError):  # the first test reports these
            _ = self._session.golden.cases, self._session.golden.experiment

    def _check(self, selected: Collected) -> None:
        from rag_harness.pipelines.experiments import answering, built_in

        session, own = self._session, {trial.experiment for trial in selected.own}
        self._keep_conversations_whole({trial.experiment for trial in selected.trials})
        self._refuse_gold_history({trial.experiment for trial in selected.trials})
        self._check_user({trial.experiment for trial in selected.trials})
        if session.config.getoption("tx", None):
            return  # only a worker knows which tests are skipped, and which pipelines come from fixtures of the user
        asked = {trial.experiment for trial in selected.trials} - own
        by = {name: answering(name, session.settings) for name in sorted(asked)}
        services = [name for name in asked if by[name] in session.experiments.endpoints]
        self._check_services(to_run(session, self._trials, selected, services))
        shipped = [name for name in by if by[name] in built_in()]
        self._check_index(shipped)
        self._check_reranker(shipped)
        self._check_keys(selected, shipped)

    def _keep_conversations_whole(self, experiments: Iterable[str]) -> None:
        """Refuse to deal the turns of a conversation to several workers: each would ask those before its own."""
        dist = str(self._session.config.getoption("dist", "no"))
        own = [name for name in experiments if self._session.histories.is_own(name)]
        if own and dist in _IN_PIECES:
            raise SettingsError(
                f"--dist={dist} deals single tests to workers, and {own[0]} asks each turn of a conversation after the "
                f"one before it. Leave --dist out: conversations are then dealt whole."
            )

    def _refuse_gold_history(self, experiments: Iterable[str]) -> None:
        """Refuse to ask a service that keeps conversations itself after replies that it did not give."""
        histories = self._session.histories
        kept = [name for name in experiments if histories.session_of(name) and histories.said_of(name) == "own"]
        if kept and command_line(self._session.config).get("history") == "gold":
            raise SettingsError(
                f"--rag-history=gold asks turns after the reference replies, and {kept[0]} keeps conversations itself: "
                f"it knows its own answers and takes no others. Leave --rag-history out, or [session] in its table."
            )

    def _check_user(self, experiments: Iterable[str]) -> None:
        """Check the model that plays the users, if one is asked: also in front of a pipeline that declares nothing."""
        settings = self._session.settings
        if not settings.user_model or not any(map(self._session.cases.is_played, experiments)):
            return
        from rag_harness.evaluation.judges.traits import asks_a_model, check_judge
        from rag_harness.models.endpoints import check_user

        check_user(settings)
        if asks_a_model(settings):
            check_judge(settings)

    def _check_services(self, left: Mapping[str, Sequence[Case]]) -> None:
        if not left:
            return
        from rag_harness.pipelines.endpoint.pipeline import check_ready
        from rag_harness.pipelines.experiments import answering, endpoints_of

        session = self._session
        specs = endpoints_of(session.settings)
        for name, cases in left.items():
            pipeline = cast("EndpointPipeline", session.experiments.registered(name).pipeline)
            # Whether a later turn is recorded is known when the answers before it are.
            is_own = session.histories.is_own(name)
            queries = [case.query for case in cases if case.has_text and not (is_own and case.query.history)]
            check_ready(specs[answering(name, session.settings)], pipeline, queries, session.access)

    def _check_index(self, names: Sequence[str]) -> None:
        settings = self._session.settings
        if names and settings.qdrant_url:
            from rag_harness.retrieval.indexes.server_connection import check_client

            check_client(settings)

    def _check_reranker(self, names: Sequence[str]) -> None:
        """Refuse a reranker without what it reads before E1 and E2 are asked, and paid."""
        if any(name.startswith(_RERANKED) for name in names):
            from rag_harness.models.endpoints import check_token_vectors

            check_token_vectors(self._session.settings)

    def _check_keys(self, selected: Collected, names: Sequence[str]) -> None:
        from rag_harness.models.endpoints import check_api_keys

        session = self._session
        if names and session.access.calls_network and to_run(session, self._trials, selected, names):
            check_api_keys(session.settings)


def to_run(
    session: RagSession, trials: TrialRunner, selected: Collected, experiments: Sequence[str]
) -> dict[str, list[Case]]:
    """Return the selected cases that have no row yet, by registered experiment."""
    from rag_harness.runs.trial import Trial

    if not experiments:
        return {}
    chosen, found = set(selected.trials) - selected.own - selected.left_out, {}
    for name in experiments:
        of_it = [trial for case in session.cases.of(name) if (trial := Trial(name, case)).id in chosen]
        found[name] = [
            trial.case for trial in of_it if trials.stored(trial, session.experiments.registered(name)) is None
        ]
    return {name: cases for name, cases in found.items() if cases}


class RecordingReport:
    """Prints both reports, in the process that prints."""

    def __init__(self, session: RagSession, recorder: Recorder, trials: TrialRunner) -> None:
        self._session, self._recorder, self._trials = session, recorder, trials
        self._said = False
        self._used: set[Path] = set()

    def collection_done(self, selected: Collected) -> None:
        """Say what this run will ask for. Index and vectors are made here, once for all workers."""
        session = self._session
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if session.config.option.collectonly or not session.access.records or terminal is None:
            return
        if selected.by_node:
            self._said = True
            with _progress_lines(session.config):
                line = _forecast(session, self._trials, selected)
            if line:
                terminal.ensure_newline()
                write_lines(terminal, [line])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker which recordings it has used."""
        self._used |= {Path(each) for each in USED_RECORDINGS.received(node)}

    def unused_lines(self) -> list[str]:
        """Name recordings that the run did not use: prompts or settings have changed since."""
        session = self._session
        if not self._said or not self._recorder.trials:
            return []
        arrived = {name: ids for name, ids in self._recorder.arrived.items() if name != GOLDEN}
        if any(len(ids) < len(session.cases.all_of(name)) for name, ids in arrived.items()):
            return []  # a selection uses only a part of the recordings
        if self._recorder.resumed:
            return ["Some trials were resumed: a run with --rag-overwrite can tell which recordings are unused."]
        cassettes = session.parts.cassettes
        cassettes.used |= self._used
        unused = [file.relative_to(cassettes.folder).as_posix() for file in cassettes.unused()]
        if not unused:
            return []
        log.info("Recordings that this run did not ask for: %s", unused)
        where = f"{session.settings.folder_said('cassettes')}/{session.settings.profile}/"
        return [f"{len(unused)} recordings in {where} are not of this run, e.g. {unused[0]}; all are in the log."]


@contextmanager
def _progress_lines(config: pytest.Config) -> Iterator[None]:
    """Print how far the forecast is while it takes long, and what it waits for, such as vectors of documents."""
    if not speaks(config):
        yield
        return
    from rag_harness.frontends.pytest_plugin.progress import WorkLines

    work = ProgressText()
    with listening(work.hear), WorkLines(config.get_terminal_writer(), work.text):
        yield


def _forecast(session: RagSession, trials: TrialRunner, selected: Collected) -> str:
    """Return the line about what the selected trials will ask for."""
    from rag_harness.core.errors import RagHarnessError
    from rag_harness.evaluation.judges.traits import asks_a_model
    from rag_harness.pipelines.experiments import is_known
    from rag_harness.runs.cost_estimate import forecast

    try:
        names = dict.fromkeys(
            trial.experiment for trial in selected.trials if is_known(trial.experiment, session.settings)
        )
        left = to_run(session, trials, selected, [*names])
        known = {name: [case for case in cases if case.has_text] for name, cases in left.items()}
        found = forecast(session.parts, known, _queries(session, selected))
        found.unknown += sum(not case.has_text for cases in left.values() for case in cases)
    except RagHarnessError as error:
        # The first trial will meet the same error, and will report it.
        return f"rag: recording: what it will cost cannot be told: {error}"
    found.unknown += len(selected.own)
    asks = found.chat.recorded or found.chat.to_send or found.texts or found.unknown or found.services
    judged = asks_a_model(session.settings) and any(session.wanted.judged_names(t.experiment) for t in selected.trials)
    return f"{found.line()}{'; and what the judge is asked' * judged}" if asks or judged else ""


def _queries(session: RagSession, selected: Collected) -> list[str]:
    """Return the queries that will be embedded."""
    entries = [query.text for query in session.golden.queries] if selected.golden else []
    names = dict.fromkeys(trial.experiment for trial in selected.trials)
    return [
        *entries,
        *dict.fromkeys(case.query.text for name in names for case in session.cases.of(name) if case.has_text),
    ]
