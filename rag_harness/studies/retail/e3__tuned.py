"""E3 as a race chose it: ``tuned.toml`` is what ``rag-harness tune`` wrote for the space in ``tuning.toml``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_harness.pipelines.configured.experiment import build as configured
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.settings.configurations import read_configuration

_TUNED = Path(__file__).with_name("tuned.toml")


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    built = configured(replace(read_configuration(_TUNED), name="e3-tuned"), parts)
    # As for e3-plain: running failed trials again would need most of the recordings.
    return replace(built, answer_from=None)
