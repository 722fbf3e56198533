"""Many rankings at once, as arrays of relevant documents. ``ranking`` has the measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
