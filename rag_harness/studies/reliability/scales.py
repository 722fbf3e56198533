"""How the scores of each reranker are read: middle, spread, and what is a large gap. A benchmark sets the values.

``benchmarks/reliability.py OUTPUT --scales`` prints them. They are quantiles of scores, without labels, for the
questions about one half of the source pages of the retail study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How an absolute score is read.

    Attributes:
        signal: the score's name in a hit.
        middle: the score at which relevance is one half: the median of the best hit's score.
        spread: one unit of the logistic curve; half of the questions are within 1.1 units of the middle.
        margin: 90th percentile of the gap to the best hit with a different text.
        dispersion: 90th percentile of the standard deviation of the five best.
        fitted: whether these are quantiles of this reranker's scores; if not, they only follow from the kind of score.
    """

    signal: str
    middle: float
    spread: float
    margin: float
    dispersion: float
    fitted: bool = True


COSINE = Scale("dense", 0.525, 0.065, 0.101, 0.068)
"""For a reranker whose own score cannot be compared between questions: the cosine of all-MiniLM-L6-v2."""
LOGIT = Scale("logit", 0.0, 1.0, 4.0, 3.0, fitted=False)
"""For a cross-encoder. Its training makes 0 the border of relevance. Nothing was fitted here."""
SCALES: Mapping[str, Scale] = {
    "embedded/late-interaction": Scale("max_sim", 0.501, 0.045, 0.098, 0.059),
}


def scale_of(reranker: str, has_absolute: bool) -> Scale:
    """Return the scale of a reranker by its model's name; ``has_absolute``: whether it gives absolute scores."""
    if not has_absolute:
        return COSINE
    return SCALES.get(reranker, LOGIT)
