"""Measures of a ranking against judged documents, as trec_eval defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import SettingsError
from rag_harness.evaluation.measures.measure import RankingMeasure
from rag_harness.evaluation.measures.names import measure_named

# Many rankings at once, as arrays. ``ranking`` defines the measures.

Ranked = Sequence[str]
Relevant = Mapping[str, int]
Run = Mapping[str, Ranked]
Qrels = Mapping[str, Relevant]

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

_FEW = 2
"""Up to so many documents, to look each one up in the list is faster than to go through the list once."""


def first_hits(doc_ids: Iterable[str]) -> list[str]:
    """Return each document once, at the position of its first hit."""
    return list(dict.fromkeys(doc_ids))


@dataclass(frozen=True)
class Hits:
    """Relevant documents as arrays: one entry per document, sorted by query and then by rank.

    ``query`` numbers the queries from 0 to n-1, ``rank`` and ``nth`` (first, second, … of its query) count from 1.
    """

    n: int
    query: _Ints
    rank: _Ints
    nth: _Ints
    gain: _Ints

    def sums(self, mask: npt.NDArray[np.bool_], weights: _Floats | _Ints | None = None) -> _Floats:
        """Add up the weights (1 each if None) of the masked entries, per query."""
        chosen = None if weights is None else weights[mask]
        return np.bincount(self.query[mask], chosen, self.n).astype(np.float64)

    def dcg(self, k: int) -> _Floats:
        """Return the discounted cumulated gain of the first ``k`` ranks, per query."""
        return self.sums(self.rank <= k, self.gain / np.log2(self.rank + 1))


@dataclass(frozen=True)
class Found(Hits):
    """The relevant documents that a run returned.

    ``total`` is R for each query; ``relevant`` holds query and gain of every relevant document of the qrels.
    """

    total: _Ints
    relevant: tuple[_Ints, _Ints]

    @cached_property
    def ideal(self) -> Hits:
        """Return the relevant documents of the qrels in their ideal order."""
        query, gain = self.relevant
        best = gain.max(initial=0)
        # Query and gain are sorted as one number: sorting by two keys takes five times as long.
        key = np.sort(query * (best + 1) + best - gain)
        rank = _count_within(query)
        return Hits(self.n, query, rank, rank, best - key % (best + 1))


class Looked(NamedTuple):
    """The ranks of the judged documents of some queries, and their relevance.

    Attributes:
        counts: number of judged documents that were returned, shape (queries,).
        ranks: rank of each of them, by query and rank.
        gains: gain of each of them.
        judged: number of documents in the qrels, shape (queries,).
        judged_gains: gain of each of them, by query.
    """

    counts: _Ints
    ranks: _Ints
    gains: _Ints
    judged: _Ints
    judged_gains: _Ints

    def of(self, chosen: npt.NDArray[np.bool_]) -> Looked:
        """Return only the chosen queries, shape (queries,)."""
        returned, wanted = np.repeat(chosen, self.counts), np.repeat(chosen, self.judged)
        ranks, gains = self.ranks[returned], self.gains[returned]
        return Looked(self.counts[chosen], ranks, gains, self.judged[chosen], self.judged_gains[wanted])

    def found(self) -> Found:
        """Return the relevant documents. Queries are numbered in their order."""
        query, judged = (np.repeat(np.arange(len(each)), each) for each in (self.counts, self.judged))
        found, wanted = self.gains > 0, self.judged_gains > 0
        return Found(
            n=len(self.counts),
            query=query[found],
            rank=self.ranks[found],
            nth=_count_within(query[found]),
            gain=self.gains[found],
            total=np.bincount(judged[wanted], minlength=len(self.counts)),
            relevant=(judged[wanted], self.judged_gains[wanted]),
        )


class Finder:
    """Takes one ranking after another, and keeps only the ranks of judged documents."""

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth
        self._ranks: list[int] = []
        self._gains: list[int] = []
        self._counts: list[int] = []
        self._judged: list[int] = []
        self._judged_gains: list[int] = []

    def add(self, ranked: Ranked, relevant: Relevant) -> None:
        """Look up the first ``depth`` documents in the judgements (None: all of them)."""
        top, places = _judged_places(ranked, relevant, self._depth)
        self._ranks += places
        self._gains += [relevant[top[place - 1]] for place in places]
        self._counts.append(len(places))
        self._judged.append(len(relevant))
        self._judged_gains += relevant.values()

    def looked(self) -> Looked:
        """Return all queries so far, in their order."""
        lists = (self._counts, self._ranks, self._gains, self._judged, self._judged_gains)
        return Looked(*(np.array(each, dtype=np.int64) for each in lists))

    def found(self) -> Found:
        """Return the relevant documents of all queries so far, numbered in their order."""
        return self.looked().found()


def find_relevant(run: Run, qrels: Qrels, depth: int | None) -> Found:
    """Look up the first ``depth`` documents of each query in the qrels (None: all of them)."""
    finder = Finder(depth)
    for query_id, relevant in qrels.items():
        finder.add(run.get(query_id, ()), relevant)
    return finder.found()


def _judged_places(ranked: Ranked, relevant: Relevant, depth: int | None) -> tuple[Ranked, list[int]]:
    """Return the top of the ranking and the ranks of its judged documents, in order.

    Every loop over the documents runs in C, which makes ``evaluate`` fast.
    """
    top = ranked[:depth]
    seen = set(top)
    if len(seen) < len(top):
        top = first_hits(ranked)[:depth]
        seen = set(top)
    found = relevant.keys() & seen
    if len(found) <= _FEW:
        return top, sorted(top.index(doc_id) + 1 for doc_id in found)
    return top, list(compress(count(1), map(found.__contains__, top)))


def _count_within(query: _Ints) -> _Ints:
    """Number the entries of each query 1, 2, …; ``query`` is sorted."""
    counts = np.bincount(query)
    before = np.cumsum(counts) - counts
    return np.arange(1, len(query) + 1) - before[query]


def divide(part: _Floats, whole: _Floats | _Ints) -> _Floats:
    """Return part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


class _AtK(RankingMeasure):
    """Has a cutoff."""

    @property
    def k(self) -> int:
        assert self.cutoff is not None
        return self.cutoff


class Recall(_AtK):
    """Relevant documents in the top k / R (trec_eval ``recall_k``)."""

    called = "recall"

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= self.k), found.total)


class Precision(_AtK):
    """Relevant documents in the top k / k, also where fewer than k were returned (trec_eval ``P_k``)."""

    called = "precision"

    def batch(self, found: Found) -> _Floats:
        return found.sums(found.rank <= self.k) / self.k


class HitRate(_AtK):
    """1 if a relevant document is in the top k, else 0 (trec_eval ``success_k``). Spelt ``hit@k``."""

    called = "hit"

    def batch(self, found: Found) -> _Floats:
        return found.sums((found.rank <= self.k) & (found.nth == 1))


class AllFound(Recall):
    """1 if every relevant document is in the top k, else 0: what a multi-hop answer needs. Spelt ``all@k``."""

    called = "all"

    def batch(self, found: Found) -> _Floats:
        whole: _Floats = (super().batch(found) == 1.0).astype(np.float64)
        return whole


class ReciprocalRank(_AtK):
    """1 / rank of the first relevant document in the top k, else 0 (TREC-8 QA, Voorhees 1999; MS MARCO's ``MRR@k``).

    For one query this is the reciprocal rank. The measure is named after its mean over queries, like ``map``.
    """

    called = "mrr"

    def batch(self, found: Found) -> _Floats:
        return found.sums((found.rank <= self.k) & (found.nth == 1), 1.0 / found.rank)


class AveragePrecision(_AtK):
    """Sum of the precision at each relevant document's rank in the top k / R (trec_eval ``map_cut_k``). ``map@k``."""

    called = "map"

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= self.k, found.nth / found.rank), found.total)


class NDCG(_AtK):
    """DCG@k / DCG@k of the best possible order of the judged documents (trec_eval ``ndcg_cut_k``).

    DCG@k = sum of relevance / log2(rank + 1), of Järvelin & Kekäläinen 2002 with trec_eval's linear gain and discount.
    """

    called = "ndcg"

    def batch(self, found: Found) -> _Floats:
        return divide(found.dcg(self.k), found.ideal.dcg(self.k))


class RPrecision(RankingMeasure):
    """Relevant documents in the top R / R (trec_eval ``Rprec``)."""

    called = "r_precision"
    takes_cutoff = False

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= found.total[found.query]), found.total)


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score every query of ``qrels`` on every ranking measure: {measure as written: {query: value}}.

    A query without results in the run scores 0. Queries that only the run has are left out.

    Raises:
        SettingsError: there is no such measure, or it is not of a ranking.
    """
    wanted = dict(zip(measures, map(_ranking_measure, measures), strict=True))
    cutoffs = [measure.cutoff for measure in wanted.values()]
    depth = None if None in cutoffs else max((k for k in cutoffs if k is not None), default=0)
    found = find_relevant(run, qrels, depth)
    return {text: dict(zip(qrels, measure.batch(found).tolist(), strict=True)) for text, measure in wanted.items()}


def _ranking_measure(text: str) -> RankingMeasure:
    measure: object = measure_named(text)
    if not isinstance(measure, RankingMeasure):
        raise SettingsError(f"Measure {text!r} is not of a ranking.")
    return measure
