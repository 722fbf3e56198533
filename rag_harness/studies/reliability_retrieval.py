"""Retrieval of the reliability engine: searches, their quality, and the wider search where it is low."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import pstdev
from typing import Any

from rag_harness.core.protocols import ChatModel, Reranker, Retriever
from rag_harness.core.settings.configurations import USUAL, QualityWeights
from rag_harness.core.text.terms import term, terms, tokens
from rag_harness.core.types import Chunk, Decision, Hit, Message
from rag_harness.evaluation.judges.calibration.confidence import FROM_RETRIEVAL, SIGNAL
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.bm25 import language_asked, languages_of
from rag_harness.retrieval.retrievers import Rarity, fused
from rag_harness.studies.retail import FORMAT, searches_in

# How the scores of each reranker are read: middle, spread, and what is a large gap. A benchmark sets the values.
#
# ``benchmarks/reliability.py OUTPUT --scales`` prints them. They are quantiles of scores, without labels, over the
# questions about one half of the source pages of the retail study.


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


# Adds words to a question that found too little: the words come from the best hits, without a model.

FEEDBACK = 3
"""How many of the best hits are assumed to be relevant."""
WORDS = 5
"""How many words are added."""


def expanded(question: str, hits: Sequence[Hit], rarity: Rarity) -> str:
    """Return the question with the most telling words of its best hits: pseudo-relevance feedback (Rocchio 1971).

    A word's weight is the number of hits that have it, times its IDF. Words of the question and figures are not added.
    """
    language = language_asked(question, languages_of(hit.chunk for hit in hits))
    known = {term(token, language) for token in tokens(question)}
    written: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for hit in hits[:FEEDBACK]:
        forms = {term(token, hit.chunk.language): token.lower() for token in tokens(hit.chunk.text)}
        new = {key: token for key, token in forms.items() if key and key not in known and key[0].isalpha()}
        counts.update(new.keys())
        written = new | written
    best = sorted(counts, key=lambda key: (-counts[key] * rarity.of(key), key))[:WORDS]
    return " ".join([question, *(written[key] for key in best)])


# Signals in the form of a row's decisions, for people and for calibration.


def decisions_of(signals: Mapping[str, float | None], reasons: Iterable[tuple[str, str]]) -> tuple[Decision, ...]:
    """Return one decision for each signal; ``reasons`` say why it was not measured, or what to know about its value."""
    why = dict(reasons)
    return tuple(
        Decision(f"{SIGNAL}{name}", "" if value is not None else "not measured", value, reason=why.get(name, ""))
        for name, value in signals.items()
    )


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


def raw_quality(hits: Sequence[Hit], signal: str) -> AbsoluteScores | None:
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
    found, covered = raw_quality(hits, scale.signal), coverage(question, context, rarity)
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


def original_quality(hits: Sequence[Hit]) -> Signals:
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


SOURCE = "hybrid"
"""The source of a chunk that comes from several fused rankings."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: all hits, the context, the signals, the quality made from them, and the raw scores.

    ``raw`` has the values by the score's name, before they are read by a scale.
    """

    retrieved: tuple[Hit, ...]
    context: tuple[Hit, ...]
    signals: Signals
    quality: float
    raw: Mapping[str, AbsoluteScores]


@dataclass(frozen=True)
class Searcher:
    """Searches with every retriever for every sub-question.

    Args:
        retrievers: one by meaning, one by words.
        reranker: orders the fused hits for the question.
        rarity: makes the weights of words, on first use.
        top_k: number of hits in the context.
        original: whether to measure quality as the first design did.
        weights: of the signals in the quality.
    """

    retrievers: Sequence[Retriever]
    reranker: Reranker
    rarity: Callable[[], Rarity]
    top_k: int
    original: bool = False
    weights: QualityWeights = USUAL.weights

    async def search(self, question: str, searches: Sequence[str], k: int, trace: Trace) -> SearchResult:
        """Return the best ``k`` hits of all ``searches``, reranked for ``question``, and note them in ``trace``."""
        rankings = list[list[Hit]]()
        for search in searches:
            for retriever in self.retrievers:
                await trace.retrieve(retriever, search, k)
                rankings.append(trace.retrieved)
        trace.retrieved = by_meaning(fused(rankings, k, SOURCE)) if len(rankings) > 1 else rankings[0]
        await trace.rerank(self.reranker, question, self.top_k)
        return await trace.off_loop("quality", self._rated, question, trace)

    def _rated(self, question: str, trace: Trace) -> SearchResult:
        """Add absolute scores to the hits, and measure their quality."""
        scale = self.scale
        scores = absolute_scores(self.reranker, question, trace.retrieved)
        trace.retrieved = _scored(trace.retrieved, scale.signal, scores)
        by_id = {hit.chunk.chunk_id: hit for hit in trace.retrieved}
        trace.context = [replace(hit, scores=by_id[hit.chunk.chunk_id].scores) for hit in trace.context]
        if self.original:
            found = original_quality(sorted(trace.retrieved, key=lambda hit: -(hit.rerank_score or 0.0)))
        else:
            found = signals(question, trace.retrieved, trace.context, self.rarity(), scale)
        raw = _raw(trace.retrieved, scale)
        return SearchResult(tuple(trace.retrieved), tuple(trace.context), found, quality(found, self.weights), raw)

    @property
    def scale(self) -> Scale:
        """The scale of the reranker's absolute score."""
        return scale_of(self.reranker.model, _absolute(self.reranker) is not None)


def by_meaning(hits: Sequence[Hit]) -> list[Hit]:
    """Return fused hits with their cosine as score. Hits found only by words get the lowest cosine.

    Some rerankers combine the given score with a word score of their own. The fused score would count words twice.
    """
    known = [hit.scores["dense"] for hit in hits if "dense" in hit.scores]
    return [replace(hit, score=hit.scores.get("dense", min(known))) for hit in hits] if known else list(hits)


def absolute_scores(reranker: Reranker, question: str, hits: Sequence[Hit]) -> Sequence[float]:
    """Return a score for each hit that can be compared between questions; empty if the reranker has none."""
    scores = _absolute(reranker)
    return list(scores(question, hits)) if scores and hits else []


def _absolute(reranker: Reranker) -> Callable[[str, Sequence[Hit]], Sequence[float]] | None:
    # The reranker may be wrapped in the cache that trials share.
    found: Any = getattr(getattr(reranker, "inner", reranker), "absolute", None)
    return found if callable(found) else None


def _raw(hits: Sequence[Hit], scale: Scale) -> dict[str, AbsoluteScores]:
    """Return the raw values of the absolute scores, by the score's name."""
    found = {name: raw_quality(hits, name) for name in (scale.signal, COSINE.signal)}
    return {name: raw for name, raw in found.items() if raw is not None}


def _scored(hits: Sequence[Hit], signal: str, scores: Sequence[float]) -> list[Hit]:
    if not scores:
        return list(hits)
    return [replace(hit, scores={**hit.scores, signal: score}) for hit, score in zip(hits, scores, strict=True)]


SYSTEM = (
    "A search of a company's documents found little. Put the question into other words that its documents may use: one "
    'or two searches, without answering. Reply as JSON: {"searches": ["..."]}'
)


@dataclass(frozen=True)
class Fallback:
    """Searches again.

    Args:
        searcher: finds sources and rates them.
        rewriter: finds other words; None if they come from the best hits.
        rarity: makes the weights of words, on first use.
    """

    searcher: Searcher
    rewriter: ChatModel | None
    rarity: Callable[[], Rarity]

    async def better(self, question: str, best: SearchResult, k: int, tried: int, trace: Trace) -> SearchResult:
        """Return the better of ``best`` and fallback ``tried``: other words, and each time twice as many hits."""
        words, how = await self._other_words(question, best, tried, trace)
        found = await self.searcher.search(question, [question, *words], k * 2**tried, trace)
        is_better = found.quality > best.quality
        outcome = "better" if is_better else "no better"
        trace.decisions.append(Decision("fallback", outcome, found.quality, best.quality, f"{how}: {'; '.join(words)}"))
        return found if is_better else best

    async def _other_words(self, question: str, best: SearchResult, tried: int, trace: Trace) -> tuple[list[str], str]:
        if self.rewriter is not None:
            asked = f"Question: {question}\nTry {tried}: found were {', '.join(_names(best))}"
            messages = [Message("system", SYSTEM), Message("user", asked)]
            said = await trace.complete(self.rewriter, messages, FORMAT, stage="rewrite", role="rewrite")
            searches, why_not = searches_in(said.text)
            if not why_not:
                return searches, "by model"
        with trace.stage("rewrite"):
            return [expanded(question, best.retrieved, self.rarity())], "by words of the best hits"


def _names(found: SearchResult) -> list[str]:
    return list(dict.fromkeys(hit.chunk.doc_id for hit in found.context))
