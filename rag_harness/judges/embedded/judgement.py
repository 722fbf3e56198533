"""Computes the models' judgement of a text and its source, from texts to numbers, without stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rag_harness.judges.embedded.absent import absent
from rag_harness.judges.embedded.alignment import EncodedSource
from rag_harness.judges.embedded.encoding import Encoded, Float32s
from rag_harness.judges.embedded.features import features
from rag_harness.judges.embedded.model import Coefficients, at_even_odds
from rag_harness.judges.embedded.response import response_features
from rag_harness.judges.embedded.rules import declines
from rag_harness.judges.embedded.words import SplitText
from rag_harness.words.comparison import compared_words

DECIMALS = 6
"""Decimals of all kept and returned numbers. Further ones depend on the number of threads, in single precision."""
TOGETHER = 400
"""About as many words of a text are aligned with its source at once: 60 MB against 10,000 words."""
ALLOWED = 0.5
"""Highest support of a sentence where a rule has found something that the source does not say."""
MISSED, MOST_MISSED = 0.5, 3
"""Log odds that each such sentence adds to a hallucinated text, and the most sentences that add.

Chosen, not fitted: on RAGTruth 0.5 and 1 do about equally well.
"""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """The results of the models.

    Attributes:
        unsupported: P(a sentence contains something that the source does not support), at even odds, in the text's
            order; at least 1 - ALLOWED where a rule has found such a thing.
        passages: the passage that each sentence is nearest to.
        share: estimated supported share of the whole text, in [0, 1], at even odds.
        hallucinated: P(the text contains something that the source does not support).
    """

    unsupported: tuple[float, ...]
    passages: tuple[int, ...]
    share: float
    hallucinated: float


def judge(text: Encoded, source: EncodedSource, question: Encoded, fitted: Coefficients) -> Judgement:
    """Compare ``text`` with ``source``. Neither may be empty."""
    held = [features(part, source, question) for part in parts(text)]
    rows = np.concatenate([values for values, _ in held])
    passages = [place for _, found in held for place in source.passage_of[found.top[:, 0]].tolist()]
    unsupported = fitted.sentence.probabilities(rows)
    missed = np.array(
        [bool(why) for why in absent(text.text, [each.text for each in source.passages], question.text.text)]
    )
    known = fitted.response.probabilities(response_features(unsupported, rows)[None])
    hallucinated = with_missed(known, missed.sum())
    estimates = shares(unsupported, float(hallucinated[0]), _pair_precision(text, source))
    share = fitted.share.probabilities(estimates[None])[0] * (1 - (1 - ALLOWED) * missed.mean())
    even = at_even_odds(unsupported, fitted.base)
    return Judgement(
        tuple(np.where(missed, np.maximum(even, 1 - ALLOWED), even).round(DECIMALS).tolist()),
        tuple(passages),
        round(float(share), DECIMALS),
        round(float(hallucinated[0]), DECIMALS),
    )


def parts(text: Encoded) -> list[Encoded]:
    """Return ``text`` in parts of whole sentences, so that memory does not grow with it."""
    count = len(text.text.spans)
    if count <= 2 * TOGETHER:
        return [text]
    ends, begin = [], 0
    for first in [*text.text.firsts.tolist(), count]:
        if first - begin >= TOGETHER or first == count:
            ends.append((begin, first))
            begin = first
    return [_part(text, first, last) for first, last in ends if last > first]


def _part(text: Encoded, first: int, last: int) -> Encoded:
    whole = text.text
    chosen = np.flatnonzero((whole.firsts >= first) & (whole.firsts < last))
    sentences = tuple(whole.sentences[place] for place in chosen)
    cut = SplitText(whole.text, sentences, whole.spans[first:last], whole.firsts[chosen] - first)
    return replace(text, text=cut, halves=text.halves[first:last], weights=text.weights[first:last])


def with_missed(hallucinated: Doubles, missed: npt.ArrayLike) -> Doubles:
    """Return P(hallucinated) of texts, given the number of sentences in which rules found something."""
    odds = hallucinated / (1 - hallucinated) * np.exp(MISSED * np.minimum(missed, MOST_MISSED))
    found: Doubles = odds / (1 + odds)
    return found


SHARE_WEIGHTS = {"response": 0.25, "sentences": 0.25, "pairs": 0.5}
"""The estimators of the share, with their weights in standard deviations: half for models, half for word pairs.

Chosen by published figures, not fitted. Against people's faithfulness ratings, models of this kind and word pairs alone
do about equally well (Spearman 0.645 and 0.636 on MTRAG), and averages of unlike estimators do better.
"""


def shares(unsupported: Doubles, hallucinated: float, pairs_found: float) -> Doubles:
    """Return the estimates of the supported share, in the order of SHARE_WEIGHTS. Higher means more support.

    They are the log odds of the response model, the mean support of the sentences, and ``pair_precision``.
    """
    edge = min(max(hallucinated, 1e-6), 1 - 1e-6)
    return np.array([np.log((1 - edge) / edge), 1 - unsupported.mean(), pairs_found])


def _pair_precision(text: Encoded, source: EncodedSource) -> float:
    sentences = [text.text.text[start:end] for start, end in text.text.sentences]
    return pair_precision(sentences, [passage.text.text for passage in source.passages])


def pair_precision(sentences: Sequence[str], passages: Sequence[str]) -> float:
    """Return the share of the sentences' pairs of neighbouring words that the passages have too.

    A sentence that says that something is not said has no pairs. 1 where there are no pairs at all.
    """
    said = [pair for sentence in sentences if not declines(sentence) for pair in pairs(sentence)]
    known = {pair for passage in passages for pair in pairs(passage)}
    return sum(pair in known for pair in said) / len(said) if said else 1.0


def pairs(text: str) -> list[tuple[str, str]]:
    """Return each pair of neighbouring words, in lower case."""
    return list(pairwise(compared_words(text)))


def alignment_with(wanted: Encoded, passage: Encoded) -> float:
    """Return how much of ``wanted`` a passage has: weighted mean of each word's best cosine there, in [-1, 1]."""
    if not len(wanted.text.spans) or not len(passage.text.spans):
        return 0.0
    best = (wanted.vectors @ passage.vectors.T).max(axis=1)
    weights: Float32s = wanted.weights + 1e-3
    return round(float((best * weights).sum() / weights.sum()), DECIMALS)
