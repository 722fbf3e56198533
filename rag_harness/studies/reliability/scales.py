"""What a score of a reranker is worth: its middle, its spread, and what is a large gap. Set by a benchmark.

``benchmarks/reliability.py OUTPUT --scales`` prints them: quantiles of scores alone, no label, of the questions of one
half of the source pages of the retail study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How an absolute score is read.

    Attributes:
        signal: name of the score among those of a hit.
        middle: where relevance is one half: the median of the best hit's score.
        spread: what one unit of the logistic curve is; half of the questions lie within 1.1 of it.
        margin: 90th percentile of the gap to the best hit that says something else.
        dispersion: 90th percentile of the standard deviation of the five best.
        fitted: whether these are quantiles of this reranker's scores, or only the form that its score has.
    """

    signal: str
    middle: float
    spread: float
    margin: float
    dispersion: float
    fitted: bool = True


COSINE = Scale("dense", 0.525, 0.065, 0.101, 0.068)
"""For a reranker that has no score of its own that compares between questions: the cosine of all-MiniLM-L6-v2."""
LOGIT = Scale("logit", 0.0, 1.0, 4.0, 3.0, fitted=False)
"""For a cross-encoder: its training makes 0 the border of relevance. Nothing of it was fitted here."""
SCALES: Mapping[str, Scale] = {
    "embedded/late-interaction": Scale("max_sim", 0.501, 0.045, 0.098, 0.059),
}


def scale_of(reranker: str, has_absolute: bool) -> Scale:
    """Return the scale of a reranker by its model's name; ``has_absolute`` says whether it gives absolute scores."""
    if not has_absolute:
        return COSINE
    return SCALES.get(reranker, LOGIT)
