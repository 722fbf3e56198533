"""The fixtures of the plugin, from rag_session to rag_traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.frontends.pytest_plugin.activation import wake
from rag_harness.frontends.pytest_plugin.stash import NOT_RUN, OWED, REFUSED, RESULT, RETRIEVAL, TRIALS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rag_harness.core.protocols import Experiment, Index, Pipeline
    from rag_harness.core.settings import Settings
    from rag_harness.evaluation.measures import Score
    from rag_harness.frontends.pytest_plugin.experiments import OwnRecording, RagTraced
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trial_report import TrialResult
    from rag_harness.models.recording.scrubbing import Scrub
    from rag_harness.records.golden_result import RetrievalResult
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.trial import Trial


_TO_PASTE = """\
import pytest

class Pipeline:
    def answer(self, query):
        found = [{"text": "What your search has found.", "source": "page.md"}]
        return {"answer": f"What you answer to: {query.text}", "contexts": found}

@pytest.fixture(scope="session")
def rag_pipeline():
    return Pipeline()
"""
"""A pipeline of one's own in a ``conftest.py``."""


@pytest.fixture(scope="session")
def rag_session(request: pytest.FixtureRequest, pytestconfig: pytest.Config, rag_scrub: Scrub | None) -> RagSession:
    """Return the state of the run; the other fixtures read it."""
    from rag_harness.frontends.pytest_plugin.experiments import registers_apps

    session = wake(pytestconfig)
    session.scrub, session.knows_scrub = rag_scrub, True
    if session.experiments.tracing.is_marked or registers_apps(session.own_experiments):
        _record_apps(request, session)
    return session


@pytest.fixture(scope="session")
def rag_settings(rag_session: RagSession) -> Settings:
    """Return the effective settings."""
    return rag_session.settings


@pytest.fixture(scope="session")
def rag_index(rag_session: RagSession) -> Index:
    """Return the index over the knowledge base, built once a process."""
    return rag_session.parts.retrieval().index


@pytest.fixture
def rag_trial() -> Trial:
    """Return the trial that a test is about; the plugin parametrizes it."""
    raise pytest.UsageError("rag_trial gets its value from the plugin: ask for rag_result too.")


@pytest.fixture
def rag_pipeline(request: pytest.FixtureRequest, rag_session: RagSession) -> Pipeline:
    """Return the pipeline under test: the one registered for the test's experiment.

    Override it in a conftest.py or a test module, with any scope, to return your own: an object with
    ``async def answer(self, query) -> PipelineOutput`` (a sync method and a plain string are taken too).
    """
    from rag_harness.frontends.pytest_plugin.collection import experiments_of
    from rag_harness.frontends.pytest_plugin.items import trial_of

    trial = trial_of(request.node)
    with _halting(request):
        experiment = trial.experiment if trial else experiments_of(request.node, rag_session.experiments.endpoints)[0]
        _check_known(request, rag_session, experiment)
        return rag_session.experiments.registered(experiment).pipeline


def _check_known(request: pytest.FixtureRequest, session: RagSession, experiment: str) -> None:
    from rag_harness.core.errors import RegistryError
    from rag_harness.pipelines.experiments import is_known, known_experiments

    if not is_known(experiment, session.settings):
        known = known_experiments(session.settings)
        raise RegistryError(_without_pipeline(request.node.nodeid, experiment, known))


def _without_pipeline(test: str, experiment: str, known: Collection[str]) -> str:
    """Return the message for a test whose experiment is none of ``known``; it ends with code to paste."""
    from rag_harness.core.errors import meant

    file = test.partition("::")[0]
    return (
        f"No pipeline answers for {experiment!r}.{meant(experiment, known)} {file} gets a pipeline of your own from a "
        f"fixture rag_pipeline, and no conftest.py above it has one. Paste this into conftest.py:\n\n{_TO_PASTE}"
    )


@pytest.fixture
def rag_result(
    request: pytest.FixtureRequest,
    rag_session: RagSession,
    rag_trial: Trial,
    rag_pipeline: Pipeline,
    rag_scrub: Scrub | None,
) -> ExperimentResult:
    """Return the result of the test's trial; a failed trial is a result too."""
    from rag_harness.frontends.pytest_plugin.items import made_in, own_fixture
    from rag_harness.frontends.pytest_plugin.terminal import stop_tests

    if rag_scrub is not rag_session.scrub:
        raise pytest.UsageError("rag_scrub has two definitions, but trials share one: define it beside the ini file.")
    with _halting(request):
        request.config.stash[OWED].check()
        module = made_in(own_fixture(request.node))
        if rag_session.access.covers_own_calls:
            from rag_harness.frontends.pytest_plugin.experiments import set_up_from

            rag_session.experiments.set_up_from[rag_trial.experiment] = set_up_from(request.node)
        experiment = rag_session.experiments.of(rag_trial.experiment, rag_pipeline, module)
        shipped = _shipped(request, rag_trial, experiment)
    if shipped.critical:
        request.node.stash[REFUSED] = shipped.row.error_text
        stop_tests(request.config, shipped.row.error_text)
    if shipped.error is not None:
        raise shipped.error
    return shipped.row


@pytest.fixture
def rag_scores(request: pytest.FixtureRequest, rag_trial: Trial, rag_result: ExperimentResult) -> Mapping[str, Score]:
    """Return the judged scores of the trial by measure: ``rag_scores["faithfulness"].value``, None with a ``reason``.

    A score is waited for when it is asked for. A measure that neither --rag-measures nor a gate names is judged then.
    """
    scores: Mapping[str, Score] = request.config.stash[TRIALS].judgements.of(rag_trial, rag_result)
    return scores


def _shipped(request: pytest.FixtureRequest, trial: Trial, experiment: Experiment) -> TrialResult:
    """Return the result of a trial, which the teardown's report will carry. Skip the test if the trial was not run."""
    from rag_harness.frontends.pytest_plugin.trial_report import NotRun

    shipped = request.config.stash[TRIALS].result(request.node, trial, experiment)
    if isinstance(shipped, NotRun):
        request.node.stash[NOT_RUN] = trial.id, shipped
        pytest.skip(shipped.said)
    request.node.stash[RESULT] = shipped
    return shipped


@pytest.fixture
def rag_golden_id() -> str:
    """Return the golden entry that a test is about; the plugin parametrizes it."""
    raise pytest.UsageError("rag_golden_id gets its value from the plugin: ask for rag_retrieval too.")


@pytest.fixture
def rag_retrieval(request: pytest.FixtureRequest, rag_session: RagSession, rag_golden_id: str) -> RetrievalResult:
    """Return what the retriever under test found for the golden entry that this test is about.

    If golden set, index and embedder do not fit together, the first test says why. The others are not run: they lack a
    result, and so the gates fail.
    """
    from rag_harness.core.errors import CriticalError, PrerequisiteError
    from rag_harness.frontends.pytest_plugin.terminal import failed

    golden = rag_session.golden
    if golden.broken:
        request.node.stash[REFUSED] = golden.broken
        pytest.skip(f"not run: {golden.broken}")
    try:
        shipped = _shipped(request, rag_session.golden_trial(rag_golden_id), golden.experiment)
        if shipped.critical:
            raise CriticalError(shipped.row.error_text)
    except (CriticalError, PrerequisiteError) as error:
        golden.broken = request.node.stash[REFUSED] = str(error)
        raise failed(golden.broken) from None
    result = request.node.stash[RETRIEVAL] = golden.result(shipped.row)
    return result


@pytest.fixture(scope="session")
def rag_scrub() -> Scrub | None:
    """Return the function that removes private text from recordings: None. Override it in conftest.py.

    It gets each text of a request and the whole text of an answer before they reach the disk.
    """
    return None


@pytest.fixture
def rag_recording(
    request: pytest.FixtureRequest, rag_session: RagSession, rag_scrub: Scrub | None
) -> Iterator[OwnRecording]:
    """Replay the calls that this test makes by httpx, httpx2, urllib3 or aiohttp, and record them in mode record.

    In the modes auto and replay nothing is called. A call without a recording raises a RecordingMissError, which names
    the nearest recording and says how to record the call. In mode live nothing is recorded or replayed.
    """
    from rag_harness.frontends.pytest_plugin.experiments import recording

    with recording(request, rag_session, rag_scrub) as own:
        yield own


@pytest.fixture(scope="session")
def rag_traced(request: pytest.FixtureRequest, rag_session: RagSession) -> RagTraced:
    """Return what makes a pipeline of an app that is instrumented: ``rag_traced(app)``, for ``rag_pipeline`` to return.

    The app is a function of the question's text, or an object with ``answer(query)``. What its spans tell by the
    conventions of OpenInference or OpenTelemetry becomes its rows: searches with hits, rerankers, calls of models,
    tools. ``rag_traced.provider`` is a tracer provider for an app that has none. What the app calls by
    HTTP in a trial is recorded and replayed.
    """
    from rag_harness.frontends.pytest_plugin.experiments import RagTraced

    _record_apps(request, rag_session)
    return RagTraced(rag_session.experiments.tracing)


def _record_apps(request: pytest.FixtureRequest, session: RagSession) -> None:
    from rag_harness.frontends.pytest_plugin.experiments import record_apps

    with _halting(request):
        record_apps(session)


class _halting:  # noqa: N801 - a context manager reads as a verb
    """Ends the run, without a traceback, on an error that would stop every later test, too."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from rag_harness.core.errors import CriticalError, PrerequisiteError
        from rag_harness.frontends.pytest_plugin.terminal import failed, stop_tests

        if isinstance(error, (CriticalError, PrerequisiteError)):
            self._request.node.stash[REFUSED] = str(error)
            # The test's error has the text to paste.
            stop_tests(self._request.config, str(error).partition("\n\n")[0])
            raise failed(error) from None
