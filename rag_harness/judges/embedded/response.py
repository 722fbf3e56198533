"""Features of the response model: probabilities of an answer's sentences, and their features over the answer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_harness.judges.embedded.features import NAMES as COLUMNS
from rag_harness.judges.embedded.rules import NAMES as RULES

Doubles = npt.NDArray[np.float64]

_MANY = 0.3
_EDGE = 1e-4
_SPREAD = (
    *("recall_all", "recall_top1", "pairs_all", "max_sim", "cosine", "unknown_content", "question:mean"),
    *("run:mean", "novel_run:max", "novel_name:max"),
)
_CONSTANT = ("structured", "log_source", "log_sentences")
_FOUND = ("max", "top2", "top3", "mean", "any", "many")
NAMES = (
    *_FOUND,
    *(f"{name}:sum" for name in RULES),
    *_CONSTANT,
    "log_claims",
    *(f"{name}:{way}" for way in ("mean", "high", "low") for name in _SPREAD),
)
"""The columns of ``response_features``."""

_PLACES = {name: place for place, name in enumerate(COLUMNS)}
_RULES, _ALL, _CHOSEN = ([_PLACES[name] for name in names] for names in (RULES, _CONSTANT, _SPREAD))


def response_features(unsupported: npt.ArrayLike, rows: npt.ArrayLike) -> Doubles:
    """Return the value of each of NAMES for one answer.

    Args:
        unsupported: P(unsupported) of each sentence, shape (n,).
        rows: the features of each, shape (n, columns).
    """
    values = np.asarray(rows, np.float64)
    ordered = np.sort(values[:, _CHOSEN], axis=0)
    return np.concatenate(
        [
            _probabilities(np.asarray(unsupported, np.float64)),
            np.log1p(values[:, _RULES].sum(axis=0)),
            values[:, _ALL].mean(axis=0),
            [np.log1p(len(values))],
            ordered.mean(axis=0),
            ordered[-2:].mean(axis=0),
            ordered[:2].mean(axis=0),
        ]
    )


def _probabilities(unsupported: Doubles) -> list[float]:
    """Return log odds of the worst sentences, of all, of any unsupported one if independent; and their number."""
    worst = np.sort(np.clip(unsupported, _EDGE, 1 - _EDGE))[::-1]
    means = [worst[0], worst[:2].mean(), worst[:3].mean(), worst.mean()]
    odds = [float(np.log(mean / (1 - mean))) for mean in means]
    return [*odds, float(np.log(-np.log1p(-worst).sum())), float(np.log1p((worst > _MANY).sum()))]
