"""The experiments of a run: registered ones, those of fixtures, traced apps, and the recording of their own calls."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from rag_harness.core.concurrency import Lazy, is_harness_at_work
from rag_harness.core.errors import PrerequisiteError, SettingsError, unknown
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.items import own_fixture
from rag_harness.frontends.pytest_plugin.stash import APPS_ARE_RECORDED, OWN_CASSETTES, SET_UP
from rag_harness.frontends.pytest_plugin.terminal import failed, stop_tests
from rag_harness.models.recording.cassettes import OWN, Cassettes
from rag_harness.models.recording.patches import is_qdrant, other_transports_patched, own_calls_covered, patched
from rag_harness.models.recording.playback import Playback, answering_app
from rag_harness.models.recording.scrubbing import Scrub, secrets_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from rag_harness.core.protocols import Experiment, Pipeline
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Query
    from rag_harness.frontends.pytest_plugin.session import RagSession, RunCases
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.pipelines.simulated_user import SimulatedUser
    from rag_harness.pipelines.traced_app import TracedPipeline
    from rag_harness.pipelines.user_pipelines import ReplayedParts
    from rag_harness.runs.golden_suite import GoldenSuite


_TRACED = "rag_harness.pipelines.traced_app"
_KNOWN = ("traced",)
"""What a mark may say beside the names of experiments."""


class Tracing:
    """The traced experiments of a run."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._traced: set[str] = set()
        self._provider: Lazy[TracerProvider] = Lazy(_new_provider)

    @property
    def provider(self) -> TracerProvider:
        """A tracer provider for the apps of this run. It is installed nowhere: hand it to an instrumentation.

        Raises:
            PrerequisiteError: the SDK of OpenTelemetry is not installed.
        """
        return self._provider.get()

    def note(self, node: pytest.Item, experiments: list[str]) -> None:
        """Note the experiments of a test whose mark says that they are traced.

        Raises:
            SettingsError: the mark says something else.
        """
        for mark in node.iter_markers("rag_experiment"):
            for name in mark.kwargs:
                if name not in _KNOWN:
                    raise SettingsError(f"{node.nodeid}: rag_experiment: {unknown('argument', name, _KNOWN)}")
            if mark.kwargs.get("traced"):
                self._marked.update(experiments)

    @property
    def is_marked(self) -> bool:
        """Whether the mark of a test says that its experiment is traced."""
        return bool(self._marked)

    def is_of(self, name: str) -> bool:
        """Return whether an experiment is asked below spans. It is known once a test of it runs."""
        return name in self._traced

    def asks_for(self, experiment: Experiment) -> bool:
        """Return whether an experiment is to be traced."""
        return experiment.id in self._marked or type(experiment.pipeline).__module__ == _TRACED

    def traced(self, experiment: Experiment, parts: RunParts) -> Experiment:
        """Return an experiment whose app is asked below spans."""
        from rag_harness.pipelines.traced_app import traced_experiment

        self._traced.add(experiment.id)
        return traced_experiment(experiment, parts, self._provider.made)


class RagTraced:
    """What the fixture ``rag_traced`` gives: it makes pipelines of apps that are instrumented."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    @property
    def provider(self) -> TracerProvider:
        """A tracer provider that is installed nowhere: ``instrument(tracer_provider=rag_traced.provider)``."""
        return self._tracing.provider

    def __call__(self, app: Any, *, provider: Any = None) -> TracedPipeline:
        """Return a pipeline that asks ``app`` and reads its spans.

        Args:
            app: a function of the question's text, or an object with a method ``answer(query)``.
            provider: the tracer provider of the app's instrumentation. Default: ``rag_traced.provider`` where that was
                asked for, else the global one.

        Raises:
            PrerequisiteError: the app is neither.
        """
        from rag_harness.pipelines.traced_app import TracedPipeline

        return TracedPipeline(app, provider)


def _new_provider() -> TracerProvider:
    from rag_harness.pipelines.traced_app import in_process

    found: TracerProvider = in_process().new_provider()
    return found


_KEPT_PARTS = ("chunker", "embedder")
"""Parts whose results are recorded."""


class Experiments:
    """Builds each experiment once.

    Args:
        settings: of the run.
        cases: of the run.
        parts: that experiments are built of.
        golden: the golden suite, which is an experiment too.

    Attributes:
        tracing: knows which experiments are traced.
        user: who plays the users of scenarios.
        set_up_from: when the oldest recording was made that a pipeline was set up from, by experiment.
    """

    def __init__(
        self, settings: Lazy[Settings], cases: RunCases, parts: Lazy[RunParts], golden: Lazy[GoldenSuite]
    ) -> None:
        self._settings, self._cases, self._parts, self._golden = settings, cases, parts, golden
        self.user: Lazy[SimulatedUser] = Lazy(self._make_user)
        self._registered: dict[str, Experiment] = {}
        # The pipeline as it was handed over, and the experiment that was made of it.
        self._declared: dict[str, tuple[Pipeline, Experiment]] = {}
        self.tracing = Tracing()
        self.set_up_from: dict[str, str] = {}

    def _make_user(self) -> SimulatedUser:
        from rag_harness.pipelines.simulated_user import simulated_user

        return simulated_user(self._settings.get(), self._parts.get)

    def registered(self, name: str) -> Experiment:
        """Return the registered experiment ``name``, built on first use.

        Raises:
            PrerequisiteError: the experiment is unknown, or a key that it needs is missing.
        """
        if name not in self._registered:
            self._registered[name] = self._built(name)
        return self._registered[name]

    def _built(self, name: str) -> Experiment:
        from dataclasses import replace

        from rag_harness.models.endpoints import check_api_keys
        from rag_harness.pipelines.experiments import answering, experiment
        from rag_harness.records.manifest import OWN_HISTORY

        asked = answering(name, self._settings.get())
        if asked != name:
            # One pipeline answers whatever the history is: it is built once, and its limits count once.
            built = self.registered(asked)
            return self._played(replace(built, id=name, ingredients={**built.ingredients, **OWN_HISTORY}))
        if name not in self.endpoints:
            check_api_keys(self._settings.get())
        return experiment(name, self._parts.get())

    def _played(self, experiment: Experiment) -> Experiment:
        """Return an experiment that a simulated user asks with what decides what is said; any other as it is."""
        from dataclasses import replace

        if not self._cases.is_played(experiment.id):
            return experiment
        user = self.user.get()
        ingredients = {**experiment.ingredients, "user": [user.by, dict(user.ingredients)]}
        return replace(experiment, ingredients=ingredients, code={**experiment.code, "user": user.code})

    def of(self, name: str, pipeline: Pipeline | None = None, made_in: str = "") -> Experiment:
        """Return the experiment ``name`` for the ``pipeline`` that a test got; None: for the registered one.

        An object of the user's own declares nothing and is asked nothing. Its code is the code of its class and of the
        module ``made_in``, whose fixture made it.
        """
        if name == GOLDEN:
            return self._golden.get().experiment
        built = self._registered.get(name)
        if pipeline is None or (built is not None and built.pipeline is pipeline):
            return self._made(name, self.registered(name).pipeline, self.registered(name))
        known = self._declared.get(name)
        if known is not None and known[0] is pipeline:
            return known[1]
        from rag_harness.pipelines.user_pipelines import declared

        return self._made(name, pipeline, self._played(declared(name, pipeline, self._cases.data_of(name), made_in)))

    def _made(self, name: str, pipeline: Pipeline, experiment: Experiment) -> Experiment:
        """Return an experiment as it is asked: below spans where it is traced, recorded where it is a user's own."""
        from dataclasses import replace

        from rag_harness.core.registry import is_own_code

        known = self._declared.get(name)
        if known is not None and known[0] is pipeline:
            return known[1]
        if self.tracing.asks_for(experiment):
            experiment = self.tracing.traced(experiment, self._parts.get())
            cast("TracedPipeline", experiment.pipeline).parts = self._replayed_parts(name, experiment)
        elif self._is_recorded(experiment):
            from rag_harness.pipelines.user_pipelines import RecordedPipeline

            experiment = replace(
                experiment, pipeline=RecordedPipeline(pipeline, self._replayed_parts(name, experiment))
            )
        elif pipeline is getattr(self._registered.get(name), "pipeline", None) and not is_own_code(experiment.code):
            return experiment
        if is_own_code(experiment.code):
            experiment = replace(experiment, find_page=self._cases.data.get(experiment.data).find_page)
        self._declared[name] = pipeline, experiment
        return experiment

    def _replayed_parts(self, name: str, experiment: Experiment) -> ReplayedParts:
        """Return what dates answers by recordings: of the pipeline's set-up, and of own parts whose results it has."""
        from rag_harness.core.registry import is_own
        from rag_harness.pipelines.user_pipelines import ReplayedParts

        has_own_parts = any(is_own(module) for part in _KEPT_PARTS for module in experiment.code.get(part, ()))

        def in_set_up() -> str:
            of_parts = self._parts.get().stores.own_recorded_at if has_own_parts else ""
            return min(filter(None, (self.set_up_from.get(name, ""), of_parts)), default="")

        return ReplayedParts(in_set_up)

    def _is_recorded(self, experiment: Experiment) -> bool:
        """Return whether HTTP calls of an experiment's pipeline are recorded or replayed because it is a user's own."""
        from rag_harness.core.registry import is_own_code
        from rag_harness.core.settings import access_of

        return is_own_code(experiment.code) and access_of(self._settings.get()).covers_own_calls

    def handed(self, experiment: Experiment) -> Pipeline:
        """Return the pipeline of an experiment as the fixture of a test has made it."""
        known = self._declared.get(experiment.id)
        return known[0] if known is not None else experiment.pipeline

    def known(self, name: str) -> Experiment | None:
        """Return an experiment that this process knows: registered, or with a pipeline that a fixture here made."""
        from rag_harness.pipelines.experiments import is_known

        # A user's fixture may have taken a registered name. Then the fixture's pipeline has answered.
        if name in self._declared:
            return self._declared[name][1]
        return self.registered(name) if is_known(name, self._settings.get()) else None

    @property
    def endpoints(self) -> Collection[str]:
        """The names of the services that are experiments of this run.

        Raises:
            SettingsError: a service has the name of another experiment.
        """
        if not self._settings.get().endpoints:
            return ()
        from rag_harness.pipelines.experiments import endpoints_of

        return endpoints_of(self._settings.get()).keys()

    def queries(self, experiment: Experiment) -> Sequence[Query]:
        """Return the queries that ``experiment`` will be asked in this run, as far as they are known before it."""
        if experiment.id == GOLDEN:
            return self._golden.get().queries
        return [case.query for case in self._cases.of(experiment.id) if case.has_text]

    def is_registered(self, experiment: Experiment) -> bool:
        """Return whether every process of the run can build an experiment by its name."""
        return self._registered.get(experiment.id) is experiment


def record_apps(session: RagSession) -> None:
    """Replay and record what pipelines of a user's own call by HTTP, from now on until the run ends.

    HTTP libraries are patched before the first test: ``rag_recording`` patches them for a test, and takes only its own
    patch away.

    Raises:
        DataError: answers are to be stored in a folder that cannot be written.
    """
    if APPS_ARE_RECORDED in session.config.stash or not session.access.covers_own_calls:
        return
    session.config.stash[APPS_ARE_RECORDED] = True
    session.closing.enter_context(own_calls_covered(session.settings, session.scrub))


def registers_apps(experiments: Collection[str]) -> bool:
    """Return whether another package has registered one of the experiments."""
    from rag_harness.core.registry import registered

    return not registered("pipelines").keys().isdisjoint(experiments)


@contextmanager
def making_app(session: RagSession, item: pytest.Item, fixture: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Record and replay what a fixture calls that a test's own ``rag_pipeline`` is made of.

    It may embed the documents, for example. That is done before the first trial, in a fixture of any scope.

    Raises:
        RecordingMissError: what it has called is not recorded, and this mode calls nobody.
    """
    if fixture not in _makers(item):
        yield
        return
    record_apps(session)
    with answering_app() as calls:
        yield
    if calls.refused is not None:
        raise calls.refused
    session.config.stash.setdefault(SET_UP, {})[fixture] = calls.oldest


def set_up_from(item: pytest.Item) -> str:
    """Return when the oldest recording was made that a test's own pipeline was set up from; empty without one."""
    dates = item.config.stash.get(SET_UP, {})
    return min(filter(None, (dates.get(fixture, "") for fixture in _makers(item))), default="") if dates else ""


def _makers(item: pytest.Item) -> set[Any]:
    """Return the fixtures that make a test's own pipeline; none where it gets the plugin's."""
    own = own_fixture(item)
    found: set[Any] = set()
    waiting = [own] if own is not None else []
    known: Mapping[str, Any] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    while waiting:
        fixture = waiting.pop()
        if fixture not in found and not str(fixture.func.__module__).startswith("rag_harness."):
            found.add(fixture)
            waiting += [known[name][-1] for name in fixture.argnames if known.get(name)]
    return found


@dataclass(frozen=True)
class OwnRecording:
    """What a test has replayed and recorded so far."""

    used: list[Path]
    """Files that were replayed or written, in the order of their first use."""
    made: list[Path]
    """Files that were written."""


@contextmanager
def recording(request: pytest.FixtureRequest, session: RagSession, scrub: Scrub | None) -> Iterator[OwnRecording]:
    """Replay and record the HTTP calls that a test makes in the block, by the rules of the run."""
    own = OwnRecording([], [])
    try:
        playback = _playback(request, session, scrub, own)
    except PrerequisiteError as error:
        _stop(request, error)
    if playback is None:
        yield own
        return

    def skips(url: object) -> bool:
        return is_harness_at_work() or is_qdrant(url, session.settings)

    with patched(playback, lambda asked: skips(asked.url)), other_transports_patched(playback, skips):
        yield own
    if playback.broken:
        _stop(request, playback.broken)


def _playback(
    request: pytest.FixtureRequest, session: RagSession, scrub: Scrub | None, own: OwnRecording
) -> Playback | None:
    """Return the rules of the run; None if all calls are live.

    Raises:
        PrerequisiteError: a setting cannot be used, or the folder cannot be written.
    """
    settings, node = session.settings, request.node
    if not session.access.reads_recordings:
        return None
    records = session.access.records
    return Playback(
        own_cassettes(session.config.stash, settings, scrub),
        may_call=records,
        keep=records,
        ask_again=settings.rerecord,
        refuse=f"Record it: pytest {shlex.quote(node.nodeid)} --rag-mode=record",
        tell=_Teller(node, own),
    )


class _Teller:
    """Tells a test what its recording did. A miss is shown below the test: SDKs hide it behind "Connection error"."""

    def __init__(self, node: Any, own: OwnRecording) -> None:
        self._node, self._own = node, own
        self._misses: set[str] = set()

    def __call__(self, what: str, about: Any) -> None:
        if what == "missed":
            if about not in self._misses:
                self._node.add_report_section("call", "rag_recording", about)
            self._misses.add(about)
            return
        if what == "made" and about not in self._own.made:
            self._own.made.append(about)
        if about not in self._own.used:
            self._own.used.append(about)


def own_cassettes(stash: pytest.Stash, settings: Settings, scrub: Scrub | None) -> Cassettes:
    """Return the recordings of the user's own calls, cleaned by ``scrub``. One object a process and ``scrub``."""
    # A conftest.py of a subfolder may define another scrub.
    known = stash.setdefault(OWN_CASSETTES, {})
    if scrub not in known:
        folder = settings.folder("cassettes") / OWN
        known[scrub] = Cassettes(folder, secrets_of(settings), scrub, settings.abridge)
    return known[scrub]


def _stop(request: pytest.FixtureRequest, error: Exception) -> NoReturn:
    stop_tests(request.config, error)
    raise failed(error) from None
