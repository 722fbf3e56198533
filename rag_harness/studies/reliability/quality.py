"""The quality of retrieval: four signals in [0, 1] and one number made from them; also as the first design had it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import pstdev

from rag_harness.judges.calibration.told import FROM_RETRIEVAL
from rag_harness.retrieval.lexical import language_asked, languages_of
from rag_harness.retrieval.rarity import Rarity
from rag_harness.settings.reliability_numbers import USUAL, QualityWeights
from rag_harness.studies.reliability.scales import Scale
from rag_harness.studies.reliability.told import decisions_of
from rag_harness.types import Chunk, Decision, Hit
from rag_harness.words.terms import terms

SET_WEIGHTS = QualityWeights()
SAME = 0.7
"""Two chunks are near-duplicates if this share of all their words is in both."""
_TOP = 5
_NO_WORDS = "the question has no content words"


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of retrieval, each in [0, 1]; None if one could not be measured.

    ``reasons`` say by name why a signal is missing, or what else to know about it.
    """

    relevance: float | None = None
    margin: float | None = None
    coverage: float | None = None
    dispersion: float | None = None
    reasons: tuple[tuple[str, str], ...] = ()

    def items(self) -> dict[str, float | None]:
        """Return the signals by name."""
        return {name: getattr(self, name) for name in FROM_RETRIEVAL}

    def decisions(self) -> tuple[Decision, ...]:
        """Return the signals for the row."""
        return decisions_of(self.items(), self.reasons)


@dataclass(frozen=True, slots=True)
class AbsoluteScores:
    """The raw absolute scores of a search: the best, its gap to the next different text, and the spread.

    ``spread`` is the standard deviation of the five best; None for a single hit. ``gap`` is None if all hits have the
    same text.
    """

    best: float
    gap: float | None
    spread: float | None


def raw(hits: Sequence[Hit], signal: str) -> AbsoluteScores | None:
    """Return the raw values of the hits' scores named ``signal``; None if no hit has such a score."""
    scored = sorted((hit for hit in hits if signal in hit.scores), key=lambda hit: -hit.scores[signal])
    if not scored:
        return None
    values = [hit.scores[signal] for hit in scored]
    other = next((hit.scores[signal] for hit in scored if not same_text(scored[0].chunk, hit.chunk)), None)
    gap = None if other is None else values[0] - other
    return AbsoluteScores(values[0], gap, pstdev(values[:_TOP]) if len(values) > 1 else None)


def signals(question: str, hits: Sequence[Hit], context: Sequence[Hit], rarity: Rarity, scale: Scale) -> Signals:
    """Return the signals of ``hits``, by their absolute score ``scale.signal``, and of the ``context``."""
    found, covered = raw(hits, scale.signal), coverage(question, context, rarity)
    if found is None:
        return Signals(coverage=covered, reasons=_unscored(covered, scale))
    return Signals(
        relevance=_sigmoid((found.best - scale.middle) / scale.spread),
        margin=_of(found.gap, scale.margin),
        coverage=covered,
        dispersion=_of(found.spread, scale.dispersion),
        reasons=tuple(_notes(found, covered, scale)),
    )


def _of(value: float | None, large: float) -> float | None:
    return None if value is None else min(1.0, value / large)


def _notes(found: AbsoluteScores, covered: float | None, scale: Scale) -> Iterator[tuple[str, str]]:
    if not scale.fitted:
        yield "relevance", "scale not fitted"
    if found.gap is None:
        yield "margin", "no other hit says anything else"
    if covered is None:
        yield "coverage", _NO_WORDS
    if found.spread is None:
        yield "dispersion", "one hit only"


def _unscored(covered: float | None, scale: Scale) -> tuple[tuple[str, str], ...]:
    scored = tuple((name, f"no hit has a score {scale.signal}") for name in ("relevance", "margin", "dispersion"))
    return scored if covered is not None else (*scored, ("coverage", _NO_WORDS))


def coverage(question: str, context: Sequence[Hit], rarity: Rarity) -> float | None:
    """Return the share, by IDF, of the question's content words that the context has; None if there are none."""
    chunks = [hit.chunk for hit in context]
    wanted = sorted(terms(question, language_asked(question, languages_of(chunks))))
    held = frozenset[str]().union(*(terms(chunk.text, chunk.language) for chunk in chunks))
    total = sum(map(rarity.of, wanted))
    return sum(rarity.of(word) for word in wanted if word in held) / total if total else None


def quality(found: Signals, weights: QualityWeights = USUAL.weights) -> float:
    """Return the weighted mean of the measured signals, in [0, 1]; 0 if none with a weight was measured."""
    known, of = {name: value for name, value in found.items().items() if value is not None}, asdict(weights)
    weight = sum(of[name] for name in known)
    return sum(of[name] * value for name, value in known.items()) / weight if weight else 0.0


def original(hits: Sequence[Hit]) -> Signals:
    """Return the four signals of the first design, for reranked hits in their order.

    They are: sigmoid of the top rerank score; its margin to the second; distinct documents among the top five; 1 minus
    the spread of these five. So coverage counts documents here, and dispersion is called "consistency" in that design.
    """
    scores = [hit.rerank_score for hit in hits if hit.rerank_score is not None][:_TOP]
    if not scores:
        return Signals(reasons=tuple((name, "no hit was reranked") for name in FROM_RETRIEVAL))
    documents = {hit.chunk.doc_id for hit in hits[:_TOP]}
    return Signals(
        relevance=_sigmoid(scores[0]),
        margin=min(1.0, max(0.0, scores[0] - scores[1])) if len(scores) > 1 else 1.0,
        coverage=len(documents) / _TOP,
        dispersion=max(0.0, 1 - pstdev(scores)),
    )


def same_text(one: Chunk, other: Chunk) -> bool:
    """Whether two chunks are near-duplicates: most of their words are the same."""
    ours, theirs = terms(one.text, one.language), terms(other.text, other.language)
    return len(ours & theirs) >= SAME * len(ours | theirs)


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, value))))
