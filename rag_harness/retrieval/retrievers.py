"""Retrievers: dense, lexical, hybrid with fusion, and reranked.

With shared computation and rules for query rewriting.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.protocols import Embedder, Index, LexicalIndex, Reranker, Retriever
from rag_harness.core.text.language_detection import asked_language
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.terms import term, terms, tokens
from rag_harness.core.types import Chunk, Hit, Message, Vector

RRF_K = 60
"""Damping of reciprocal rank fusion. Cormack, Clarke & Büttcher 2009 found 60 good, and other values similar."""


class Searchable(Protocol):
    """The parts for the first stage of retrieval. Each is made on first use."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index."""
        ...

    @property
    def index(self) -> Index:
        """The vector index."""
        ...

    @property
    def lexical(self) -> LexicalIndex:
        """The lexical index."""
        ...


@dataclass(frozen=True)
class DenseRetriever:
    """Nearest chunks by cosine."""

    over: Searchable

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.over.index.search(self.over.embedder.embed_queries([query])[0], k)

    def retrieve_many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        """Return the hits of each query and k. An index behind a network gets one request for all."""
        vectors = self.over.embedder.embed_queries([query for query, _ in requests])
        return searched_together(self.over.index, list(vectors), [k for _, k in requests])


def searched_together(index: Index, vectors: Sequence[Vector], depths: Sequence[int]) -> list[list[Hit]]:
    """Return the hits of each vector, as many as its depth. An index's ``search_many`` is called once a depth."""
    search_many = getattr(index, "search_many", None)
    if search_many is None:
        return [index.search(vector, depth) for vector, depth in zip(vectors, depths, strict=True)]
    found: dict[int, list[Hit]] = {}
    # By depth: the hits of a graph depend on the depth, and must not depend on simultaneous requests.
    for depth in set(depths):
        places = [n for n, wanted in enumerate(depths) if wanted == depth]
        found |= dict(zip(places, search_many([vectors[n] for n in places], depth), strict=True))
    return [found[n] for n in range(len(vectors))]


@dataclass(frozen=True)
class LexicalRetriever:
    """Best chunks by BM25."""

    over: Searchable

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.over.lexical.search(query, k)


@dataclass(frozen=True)
class HybridRetriever:
    """Reciprocal rank fusion. The score of a chunk is the sum of 1 / (60 + rank) over the retrievers that found it.

    ``weights`` are factors of the parts of the sum, one a retriever; without any all are 1.

    Source: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """

    retrievers: Sequence[Retriever]
    depth: int = 100
    weights: Sequence[float] = ()

    def retrieve(self, query: str, k: int) -> list[Hit]:
        rankings = (retriever.retrieve(query, max(k, self.depth)) for retriever in self.retrievers)
        return fused(rankings, k, "hybrid", self.weights)


def fused(rankings: Iterable[Sequence[Hit]], k: int, source: str, weights: Sequence[float] = ()) -> list[Hit]:
    """Return the best ``k`` of several rankings, scored by the sum of weight / (60 + rank); weights are 1 by default.

    If a chunk has a signal in several rankings, the highest counts. Of equal chunks, the first one found is first.
    """
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    signals: dict[str, dict[str, float]] = {}
    weighted = zip(rankings, weights, strict=True) if weights else ((ranking, 1.0) for ranking in rankings)
    for hit, weight in ((hit, weight) for ranking, weight in weighted for hit in ranking):
        name = hit.chunk.chunk_id
        scores[name] = scores.get(name, 0.0) + weight / (RRF_K + hit.rank)
        hits.setdefault(name, hit)
        known = signals.setdefault(name, {})
        known.update({signal: max(value, known.get(signal, value)) for signal, value in hit.scores.items()})
    best = sorted(scores, key=lambda name: -scores[name])[:k]
    return [
        Hit(hits[name].chunk, scores[name], n, source, {"rrf": scores[name], **signals[name]})
        for n, name in enumerate(best, 1)
    ]


@dataclass(frozen=True)
class RerankedRetriever:
    """Reranks the first stage's ``candidates``, and never returns more than these."""

    first: Retriever
    reranker: Reranker
    candidates: int

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best of them for ``query``, best first, ranks from 1."""
        return self.reranker.rerank(query, self.first.retrieve(query, self.candidates))[:k]


# Stages shared by experiments. Equal requests of trials are computed once, and queries in flight share a batch.

_Q = TypeVar("_Q")
_R = TypeVar("_R")

_TOGETHER = 16
"""Most requests in a batch. With more, the first model call would wait for the last query's reranking."""
_REMEMBERED = 4096
"""Number of results kept for later equal requests. The scores themselves are in the stores."""


class SharedWork(Generic[_Q, _R]):
    """Answers requests of many trials on the local thread.

    Args:
        work: requests -> their results, in the same order.
        key: returns a key; requests with equal keys are the same.
    """

    def __init__(self, work: Callable[[Sequence[_Q]], Sequence[_R]], key: Callable[[_Q], Hashable]) -> None:
        self._work, self._key = work, key
        self._asked: OrderedDict[Hashable, asyncio.Future[tuple[_R, float]]] = OrderedDict()
        self._waiting: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def ask(self, request: _Q) -> tuple[_R, float]:
        """Return the result of ``request``, and its share of the batch's time in milliseconds."""
        key = self._key(request)
        future = self._asked.get(key)
        if future is None:
            future = self._asked[key] = asyncio.get_running_loop().create_future()
            # All trials that asked may be cancelled by then.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._waiting.append((request, future))
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
        if self._busy is None:
            self._busy = asyncio.create_task(self._work_off())
        return await asyncio.shield(future)

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
                await self._do(batch)
        finally:
            self._busy = None

    async def _do(self, batch: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]]) -> None:
        try:
            results, milliseconds = await on_local_thread(lambda: self._timed([request for request, _ in batch]))
        except Exception as error:
            await self._fail(batch, error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result((result, milliseconds / len(batch)))

    async def _fail(self, batch: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]], error: Exception) -> None:
        if len(batch) > 1:
            # A request that fails must not fail the others.
            for each in batch:
                await self._do([each])
            return
        request, future = batch[0]
        self._asked.pop(self._key(request), None)
        future.set_exception(error)

    def _timed(self, requests: Sequence[_Q]) -> tuple[Sequence[_R], float]:
        started = perf_counter()
        results = self._work(requests)
        if len(results) != len(requests):
            raise ValueError(f"{len(requests)} queries were asked, and {len(results)} answered")
        return results, (perf_counter() - started) * 1000


class SharedRetriever:
    """A retriever whose requests are shared by trials."""

    def __init__(self, inner: Retriever) -> None:
        self.inner = inner
        self.shared: SharedWork[tuple[str, int], list[Hit]] = SharedWork(self._many, key=lambda each: each)

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.inner.retrieve(query, k)

    def _many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        if hasattr(self.inner, "retrieve_many"):
            found: list[list[Hit]] = self.inner.retrieve_many(requests)
            return found
        return [self.inner.retrieve(*each) for each in requests]


class SharedReranker:
    """A reranker whose requests are shared by trials.

    Args:
        inner: the reranker. With ``rerank_many``, it gets all requests of a batch at once.
        alone: a lock held during its work, so that other processes find the scores in the store.
    """

    def __init__(self, inner: Reranker, alone: Callable[[], AbstractContextManager[Any]]) -> None:
        self.inner, self._alone = inner, alone
        self.shared: SharedWork[tuple[str, tuple[Hit, ...]], list[Hit]] = SharedWork(self._many, key=_pairs)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def revision(self) -> str:
        return self.inner.revision

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return self.inner.rerank(query, hits)

    def _many(self, requests: Sequence[tuple[str, tuple[Hit, ...]]]) -> list[list[Hit]]:
        with self._alone():
            if hasattr(self.inner, "rerank_many"):
                ranked: list[list[Hit]] = self.inner.rerank_many(requests)
                return ranked
            return [self.inner.rerank(*each) for each in requests]


def _pairs(request: tuple[str, tuple[Hit, ...]]) -> Hashable:
    # Hits with other signals are another request, because the result has the signals of the first request.
    query, hits = request
    return query, tuple((hit.chunk.chunk_id, hit.score, *hit.scores.items()) for hit in hits)


class Rarity:
    """The weight of a word of a question: its IDF over the chunks of an index.

    ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N chunks have the word (Robertson & Zaragoza 2009).
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        held = [terms(chunk.text, chunk.language) for chunk in chunks]
        self._count, self._having = len(held), Counter(word for words in held for word in words)

    def of(self, word: str) -> float:
        """Return the weight of a word. A word that no chunk has gets the highest."""
        having = self._having[word]
        return math.log(1 + (self._count - having + 0.5) / (having + 0.5))


# Makes a question that stands alone by rules over words: a turn takes over the words that it lacks.
#
# The rules and their numbers were chosen on the half of the conversations that is for that, before the other half was
# looked at (docs/dev/results/conversations.md). What was tried and gained half a turn of 51 there at most is not in:
# the sentences of the last exchange in place of words, the words since the last change of subject alone, a greater
# weight of what the user said or of what was said last, a second search for the turn alone, and whether the pages
# spoken of have its words.

MOST_CARRIED = 24
"""The most words that a turn takes over.

On the half for fitting, recall@5 of follow-ups is 0.745 with 12, 0.784 with 16, and 0.794 with 20, 24, 30 and 40.
"""
COMPLETE = 2.0
"""How much the words of a turn weigh that needs no others, in words that no page has.

On that half, recall@5 is 0.775 with 1.5, 0.794 with 1.7 and 2, 0.775 with 2.1, and 0.755 where no turn is complete.
"""
_ABOUT = "This is about:"
_ENDS = (".", "?", "!")


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """A self-contained question, by rules. ``words`` are the words that it took over; ``why_not`` tells why none."""

    text: str
    words: tuple[str, ...] = ()
    why_not: str = ""


def with_carried_words(turn: str, earlier: Sequence[Message], rarity: Rarity, longest: int) -> CarriedOver:
    """Return ``turn`` with the weightiest words of ``earlier`` behind it, the latest first.

    A turn that is complete in itself stays as it is: its words weigh much, and no earlier turn has them. So a
    change of subject takes nothing over. Only words that the documents have count, and weigh by their rarity there.

    Args:
        turn: the words of the user.
        earlier: the earlier messages, the oldest first.
        rarity: the weights of words in the documents.
        longest: the most bytes of the result. Words that do not fit are left out, the lightest first.
    """
    if not earlier:
        return CarriedOver(turn, why_not="nothing was said before it")
    language = asked_language(" ".join([*(each.content for each in earlier if each.role == "user"), turn]))
    own = _known_words([turn], rarity, language)
    said = _known_words([each.content for each in reversed(earlier)], rarity, language)
    missing = {key: word for key, word in said.items() if key not in own}
    if _is_complete(own, said, rarity):
        return CarriedOver(turn, why_not="it is complete in itself: its words weigh much, and none was said before")
    begin = _begin(turn, language)
    words = _fitting(missing, rarity, longest - len(begin.encode(errors="replace")))
    if not words:
        return CarriedOver(turn, why_not="there is no room for words" if missing else "no words of the pages were said")
    end = "." if language == ENGLISH else ""
    return CarriedOver(f"{begin} {' '.join(words)}{end}", tuple(words))


def _known_words(texts: Sequence[str], rarity: Rarity, language: str) -> dict[str, str]:
    """Return the words that the documents have, by the form in which they are compared, each in its first spelling."""
    unknown, found = rarity.of(""), dict[str, str]()
    for token in (token for text in texts for token in tokens(text)):
        key = term(token, language)
        if key and rarity.of(key) < unknown:
            found.setdefault(key, token)
    return found


def _is_complete(own: Mapping[str, str], said: Mapping[str, str], rarity: Rarity) -> bool:
    return not own.keys() & said.keys() and sum(map(rarity.of, own)) >= COMPLETE * rarity.of("")


def _begin(turn: str, language: str) -> str:
    # The mark tells a reader which sentence asks, and that the words behind it do not.
    asked = turn.rstrip()
    marked = asked if asked.endswith(_ENDS) else f"{asked}?"
    return f"{marked} {_ABOUT}" if language == ENGLISH else marked


def _fitting(words: Mapping[str, str], rarity: Rarity, room: int) -> list[str]:
    """Return the weightiest words that fit into ``room`` bytes, in the order of ``words``."""
    chosen = set[str]()
    left = room - len(".")
    for key in sorted(words, key=lambda key: -rarity.of(key))[:MOST_CARRIED]:
        left -= len(f" {words[key]}".encode(errors="replace"))
        if left < 0:
            break
        chosen.add(key)
    return [word for key, word in words.items() if key in chosen]
