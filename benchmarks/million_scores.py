"""Judged scores of a large run, seeded: lines of the study's size, 450 bytes on average."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rag_harness.evaluation.measures import measure_named
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest

MEASURES = (
    "context_precision",
    "faithfulness",
    "answer_relevancy",
    "factuality",
    "context_recall",
    "noise_sensitivity",
)
"""The study's four first."""
WHO = Author("embedded", "embedded/alignment", "e7b28f06d0336164")
_CLAIM = "The lamps of the second series can be sent back within thirty days, unused and with their receipt"


def scores_of(row: ExperimentResult, measures: Sequence[str]) -> Iterator[ScoreLine]:
    """Yield the scores of a row; none of one without an answer. One in 200 is a judge that failed."""
    if not row.ok:
        return
    source, digest = random.Random(f"{row.trial_id} scores"), row_digest(row)
    for measure in measures:
        yield ScoreLine(
            measure,
            _version(measure),
            row.experiment,
            row.query_id,
            digest,
            "ea2ffaa2047939b6b4407a2a",
            WHO,
            **_said(source, row),
        )


@cache
def _version(measure: str) -> int:
    return measure_named(measure).version


def _said(source: random.Random, row: ExperimentResult) -> Mapping[str, Any]:
    if row.abstained:
        return {"value": None, "reason": "an abstention, which claims nothing", "undefined": True}
    if source.random() < 0.005:
        return {"value": None, "reason": "the judge is away"}
    values = source.random(), source.random()
    claims = [{"text": _CLAIM[: source.randrange(20, 90)], "value": value} for value in values]
    return {"value": sum(values) / len(values), "detail": {"claims": claims}}
