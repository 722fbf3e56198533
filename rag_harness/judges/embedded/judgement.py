"""Computes the models' judgement of a text and its source, from texts to numbers, without stores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_harness.judges.embedded.absent import absent
from rag_harness.judges.embedded.alignment import EncodedSource
from rag_harness.judges.embedded.encoding import Encoded, Float32s
from rag_harness.judges.embedded.features import features
from rag_harness.judges.embedded.model import Coefficients, at_even_odds
from rag_harness.judges.embedded.response import response_features
from rag_harness.judges.embedded.words import SplitText

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
HALLUCINATION_BELOW = 0.4
"""Score below which an answer is called hallucinated, here and among the kinds of answers."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """The results of the models.

    Attributes:
        unsupported: P(a sentence contains something that the source does not support), at even odds, in the text's
            order; at least 1 - ALLOWED where a rule has found such a thing.
        passages: the passage that each sentence is nearest to.
        hallucinated: P(the text contains something that the source does not support).
        score: the same as support, see ``score_of``.
    """

    unsupported: tuple[float, ...]
    passages: tuple[int, ...]
    hallucinated: float
    score: float


def judge(
    text: Encoded, source: EncodedSource, question: Encoded, fitted: Coefficients, written: SplitText
) -> Judgement:
    """Compare ``text`` with ``source``. Neither may be empty. The rules read ``written``, of the same sentences."""
    held = [features(part, source, question) for part in parts(text)]
    rows = np.concatenate([values for values, _ in held])
    passages = [place for _, found in held for place in source.passage_of[found.top[:, 0]].tolist()]
    unsupported = fitted.sentence.probabilities(rows)
    missed = np.array(
        [bool(why) for why in absent(written, [each.text for each in source.passages], question.text.text)]
    )
    known = fitted.response.probabilities(response_features(unsupported, rows)[None])
    hallucinated = float(with_missed(known, missed.sum(), fitted.threshold)[0])
    even = at_even_odds(unsupported, fitted.base)
    return Judgement(
        tuple(np.where(missed, np.maximum(even, 1 - ALLOWED), even).round(DECIMALS).tolist()),
        tuple(passages),
        round(hallucinated, DECIMALS),
        score_of(hallucinated, fitted.threshold),
    )


def score_of(hallucinated: float, threshold: float) -> float:
    """Return the support of a text as it is printed, from P(hallucinated): it ranks as that does.

    The odds are moved so that the threshold is at HALLUCINATION_BELOW: score, ``hallucinated``, kinds of answers and
    gates are one number.
    """
    moved = (1 - threshold) / threshold * (1 - HALLUCINATION_BELOW) / HALLUCINATION_BELOW
    odds = hallucinated / max(1 - hallucinated, 1e-9) * moved
    return round(1 / (1 + odds), DECIMALS)


def is_hallucinated(score: float) -> bool:
    """Return whether an answer with a score is called hallucinated."""
    return score < HALLUCINATION_BELOW


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


def with_missed(hallucinated: Doubles, missed: npt.ArrayLike, threshold: float) -> Doubles:
    """Return P(hallucinated) of texts, given the number of sentences in which rules found something.

    Any such sentence lifts it above the threshold: a claim that is capped is flagged everywhere.
    """
    count = np.asarray(missed)
    odds = hallucinated / (1 - hallucinated) * np.exp(MISSED * np.minimum(count, MOST_MISSED))
    found: Doubles = odds / (1 + odds)
    lifted: Doubles = np.where(count > 0, threshold + (1 - threshold) * found, found)
    return lifted


def alignment_with(wanted: Encoded, passage: Encoded) -> float:
    """Return how much of ``wanted`` a passage has: weighted mean of each word's best cosine there, in [-1, 1]."""
    if not len(wanted.text.spans) or not len(passage.text.spans):
        return 0.0
    best = (wanted.vectors @ passage.vectors.T).max(axis=1)
    weights: Float32s = wanted.weights + 1e-3
    return round(float((best * weights).sum() / weights.sum()), DECIMALS)
