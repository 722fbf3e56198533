"""Paths of an experiment's rows and scores."""

from __future__ import annotations

from pathlib import Path

from rag_harness.pipelines.experiments import result_name
from rag_harness.records.scores import SCORES

DERIVED = "derived"
"""Folder beside the result files for trials that were run again with one thing changed."""


def result_path(output: Path, experiment: str) -> Path:
    """Return the result file of ``experiment``. A derived one, ``e3+gold_context``, has it below ``derived/``."""
    if "+" in experiment:
        return output / DERIVED / f"{experiment}.jsonl"
    return output / f"{result_name(experiment)}.jsonl"


def scores_path(output: Path, experiment: str) -> Path:
    """Return the file of ``experiment``'s judged scores; for a derived one it lies beside its rows."""
    if "+" in experiment:
        return output / DERIVED / SCORES / f"{experiment}.jsonl"
    return output / SCORES / f"{result_name(experiment)}.jsonl"
