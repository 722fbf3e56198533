"""An app under test as the pipeline of an experiment: with the documents that its chunks are looked up in."""

from __future__ import annotations

from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.pipelines.context_limit import most_contexts
from rag_harness.pipelines.endpoint.placing import placing_in
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.traced.traced_output import SOURCE
from rag_harness.pipelines.traced.traced_pipeline import TracedPipeline
from rag_harness.protocols import Experiment

CODE = ("rag_harness.pipelines.traced.traced_pipeline", "rag_harness.traces.in_process.trial_spans")
"""The modules that decide what is read off a trace."""


def traced_experiment(experiment: Experiment, parts: RunParts, provider: Any) -> Experiment:
    """Return an experiment whose app is asked below spans. Its documents are part of what decides its rows.

    Args:
        experiment: its pipeline is the app, or one that is traced already.
        parts: have the documents.
        provider: the tracer provider where the pipeline names none; None: the global one.

    Raises:
        SettingsError: trials run on other machines.
    """
    from dataclasses import replace

    if parts.settings.engine == "ray":
        raise SettingsError(
            f"Experiment {experiment.id!r} is traced, and spans are collected in the process that asks. Leave "
            f"--rag-engine=ray out."
        )
    data = parts.data(experiment.data)
    placing = placing_in(data, experiment.id, SOURCE, most_contexts(parts.settings))
    pipeline = (
        experiment.pipeline if isinstance(experiment.pipeline, TracedPipeline) else TracedPipeline(experiment.pipeline)
    )
    known = {**experiment.ingredients, "traced": True, "documents": data.digest if data.has_documents else ""}
    bound = pipeline.bound(experiment.id, placing, provider)
    return replace(experiment, pipeline=bound, ingredients=known, code={**experiment.code, "traces": CODE})
