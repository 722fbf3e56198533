"""E3 as a race chose it: ``tuned.toml`` is what ``rag-harness tune`` wrote for the space in ``tuning.toml``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_harness.pipelines.configured.experiment import build as configured
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.settings.configurations import read_configuration

TUNED = Path(__file__).with_name("tuned.toml")
_OF_RUN = ("chat_model", "embed_model", "rerank_model", "index")
"""What the space does not vary is that of the run's profile, as for every experiment of the study."""


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    chosen = read_configuration(TUNED)
    values = tuple((name, value) for name, value in chosen.values if name not in _OF_RUN)
    built = configured(replace(chosen, name="e3-tuned", values=values), parts)
    # As for e3-plain: running failed trials again would need most of the recordings.
    return replace(built, answer_from=None)
