"""Where an experiment's rows and scores lie. Who reads them needs none of what keeps them."""

from __future__ import annotations

from pathlib import Path

from rag_harness.pipelines import result_name
from rag_harness.results.score import SCORES

DERIVED = "derived"
"""Folder beside the result files, for trials that were run again with one thing changed."""


def result_path(output: Path, experiment: str) -> Path:
    """Return the result file of ``experiment``; that of a derived one, ``e3+gold_context``, lies below ``derived/``."""
    if "+" in experiment:
        return output / DERIVED / f"{experiment}.jsonl"
    return output / f"{result_name(experiment)}.jsonl"


def scores_path(output: Path, experiment: str) -> Path:
    """Return the file of the judged scores of ``experiment``; those of a derived one lie beside its rows."""
    if "+" in experiment:
        return output / DERIVED / SCORES / f"{experiment}.jsonl"
    return output / SCORES / f"{result_name(experiment)}.jsonl"
