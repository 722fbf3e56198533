"""The experiments of a run in this process: registered ones, and those of pipelines that fixtures have made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, cast

from rag_harness.plugin.tracing import Tracing
from rag_harness.types import GOLDEN
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.engine.golden.suite import GoldenSuite
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.pipelines.recorded_pipeline import ReplayedParts
    from rag_harness.pipelines.traced.traced_pipeline import TracedPipeline
    from rag_harness.plugin.run_cases import RunCases
    from rag_harness.protocols import Experiment, Pipeline
    from rag_harness.settings import Settings
    from rag_harness.types import Query
    from rag_harness.users.simulated_user import SimulatedUser


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
        self, settings: Once[Settings], cases: RunCases, parts: Once[RunParts], golden: Once[GoldenSuite]
    ) -> None:
        self._settings, self._cases, self._parts, self._golden = settings, cases, parts, golden
        self.user: Once[SimulatedUser] = Once(self._make_user)
        self._registered: dict[str, Experiment] = {}
        # The pipeline as it was handed over, and the experiment that was made of it.
        self._declared: dict[str, tuple[Pipeline, Experiment]] = {}
        self.tracing = Tracing()
        self.set_up_from: dict[str, str] = {}

    def _make_user(self) -> SimulatedUser:
        from rag_harness.users.simulated_user import simulated_user

        return simulated_user(self._settings.get(), self._parts.get)

    def registered(self, name: str) -> Experiment:
        """Return the registered experiment ``name``, built on first use.

        Raises:
            PrerequisiteError: there is no such experiment, or a key that it needs is missing.
        """
        if name not in self._registered:
            self._registered[name] = self._built(name)
        return self._registered[name]

    def _built(self, name: str) -> Experiment:
        from dataclasses import replace

        from rag_harness.models.api_keys import check_api_keys
        from rag_harness.pipelines import answering, experiment
        from rag_harness.pipelines.history_names import OWN_HISTORY

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

        An object of the user's own declares nothing and is asked nothing. Its code is that of its class, and of the
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
        from rag_harness.pipelines.declared import declared

        return self._made(name, pipeline, self._played(declared(name, pipeline, self._cases.data_of(name), made_in)))

    def _made(self, name: str, pipeline: Pipeline, experiment: Experiment) -> Experiment:
        """Return an experiment as it is asked: below spans where it is traced, recorded where it is a user's own."""
        from dataclasses import replace

        from rag_harness.registry.own_parts import is_own_code

        known = self._declared.get(name)
        if known is not None and known[0] is pipeline:
            return known[1]
        if self.tracing.asks_for(experiment):
            experiment = self.tracing.traced(experiment, self._parts.get())
            cast("TracedPipeline", experiment.pipeline).parts = self._replayed_parts(name, experiment)
        elif self._is_recorded(experiment):
            from rag_harness.pipelines.recorded_pipeline import RecordedPipeline

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
        from rag_harness.pipelines.recorded_pipeline import ReplayedParts
        from rag_harness.registry.own_parts import is_own

        has_own_parts = any(is_own(module) for part in _KEPT_PARTS for module in experiment.code.get(part, ()))

        def in_set_up() -> str:
            of_parts = self._parts.get().stores.own_recorded_at if has_own_parts else ""
            return min(filter(None, (self.set_up_from.get(name, ""), of_parts)), default="")

        return ReplayedParts(in_set_up)

    def _is_recorded(self, experiment: Experiment) -> bool:
        """Return whether HTTP calls of an experiment's pipeline are recorded or replayed, for it is a user's own."""
        from rag_harness.registry.own_parts import is_own_code
        from rag_harness.settings import access_of

        return is_own_code(experiment.code) and access_of(self._settings.get()).covers_own_calls

    def handed(self, experiment: Experiment) -> Pipeline:
        """Return the pipeline of an experiment as the fixture of a test has made it."""
        known = self._declared.get(experiment.id)
        return known[0] if known is not None else experiment.pipeline

    def known(self, name: str) -> Experiment | None:
        """Return an experiment that this process knows: registered, or with a pipeline that a fixture here made."""
        from rag_harness.pipelines import is_known

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
        from rag_harness.pipelines import endpoints_of

        return endpoints_of(self._settings.get()).keys()

    def queries(self, experiment: Experiment) -> Sequence[Query]:
        """Return the queries that ``experiment`` will be asked in this run, as far as they are known before it."""
        if experiment.id == GOLDEN:
            return self._golden.get().queries
        return [case.query for case in self._cases.of(experiment.id) if case.has_text]

    def is_registered(self, experiment: Experiment) -> bool:
        """Return whether every process of the run can build an experiment by its name."""
        return self._registered.get(experiment.id) is experiment
