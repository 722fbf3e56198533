"""Which experiments are traced: apps that ``rag_traced`` was given, and experiments whose mark says ``traced=True``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.work.once import Once

if TYPE_CHECKING:
    import pytest
    from opentelemetry.sdk.trace import TracerProvider

    from rag_harness.pipelines.parts import RunParts
    from rag_harness.pipelines.traced.traced_pipeline import TracedPipeline
    from rag_harness.protocols import Experiment

_TRACED = "rag_harness.pipelines.traced.traced_pipeline"
_KNOWN = ("traced",)
"""What a mark may say beside the names of experiments."""


class Tracing:
    """The traced experiments of a run."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._traced: set[str] = set()
        self._provider: Once[TracerProvider] = Once(_new_provider)

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
        from rag_harness.pipelines.traced.bound import traced_experiment

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
        from rag_harness.pipelines.traced.traced_pipeline import TracedPipeline

        return TracedPipeline(app, provider)


def _new_provider() -> TracerProvider:
    from rag_harness.pipelines.traced.traced_pipeline import in_process

    found: TracerProvider = in_process().new_provider()
    return found
