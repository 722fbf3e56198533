"""MinHash and LSH: find texts that share most of their shingles, without comparing all pairs.

Broder 1997, "On the resemblance and containment of documents"; bands as in Leskovec, Rajaraman, Ullman, "Mining of
Massive Datasets", 3.4. A shingle is called a run of words here. LSH gives candidates; the caller compares them exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rag_harness.words.comparison import compared_words

RUN = 3
"""Words of a run."""
PERMUTATIONS, ROWS = 128, 8
"""Rows of a signature, and rows of a band. A pair shares one of the 16 bands with probability 0.9999 at Jaccard 0.9,
0.95 at 0.8, and 0.06 at 0.5."""
_MOST_TRIED = 20
"""A text is compared with at most so many texts of the same band, the first ones. More would add no new groups."""

_random = np.random.default_rng(20)
_FACTORS = _random.integers(0, 1 << 31, PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
_SHIFTS = _random.integers(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)

Runs = npt.NDArray[np.uint64]


class Hashing:
    """Hashes the runs of texts. It caches the hashes of words."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def runs(self, text: str) -> Runs:
        """Return the sorted, distinct hashes of the runs of words, shape (n,). A text shorter than a run is one run."""
        words = compared_words(text)
        hashes = np.array([self._word(word) for word in words], dtype=np.uint64)
        length = min(RUN, len(words))
        mixed = np.zeros(max(0, len(words) - length + 1), dtype=np.uint64)
        for at in range(length):
            mixed = _mixed(mixed + hashes[at : at + len(mixed)])
        return np.unique(mixed)

    def _word(self, word: str) -> int:
        found = self._known.get(word)
        if found is None:
            data = word.encode("utf-8", "surrogatepass")
            found = self._known[word] = crc32(data) << 32 | crc32(data, 1)
        return found


def _mixed(values: Runs) -> Runs:
    """Mix 64 bits as the end of SplitMix64 does. The multiplications overflow on purpose."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def signature(runs: Runs) -> npt.NDArray[np.uint32]:
    """Return the smallest hash of ``runs`` under each permutation, shape (128,). There is at least one run."""
    # Processors multiply eight numbers of 32 bits at a time. The multiplications overflow on purpose.
    permuted = np.multiply.outer(_FACTORS, (runs >> np.uint64(32)).astype(np.uint32))
    permuted += _SHIFTS[:, None]
    sketch: npt.NDArray[np.uint32] = permuted.min(axis=1)
    return sketch


def resemblance(first: Runs, second: Runs) -> float:
    """Return the exact Jaccard similarity of two sets of runs."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / max(1, len(first) + len(second) - shared)


class Resemblances:
    """Exact similarities of one text to many at once, for texts that share so many phrases that pairs are too many."""

    def __init__(self, runs: Sequence[Runs]) -> None:
        """``runs`` has one element for each text: its distinct runs, at least one."""
        lengths = np.array([len(each) for each in runs], dtype=np.int64)
        known, numbers = np.unique(np.concatenate(runs), return_inverse=True)
        self._numbers = np.split(numbers, np.cumsum(lengths)[:-1])
        self._lengths = lengths
        self._is_own = np.zeros(len(known), dtype=np.bool_)

    def to(self, text: int, others: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the Jaccard similarity of ``text`` to each of ``others``, by their numbers; shape (len(others),)."""
        if not others:
            return np.zeros(0)
        lengths = self._lengths[others]
        self._is_own[self._numbers[text]] = True
        found = self._is_own[np.concatenate([self._numbers[other] for other in others])]
        self._is_own[self._numbers[text]] = False
        shared = np.add.reduceat(found, np.cumsum(lengths) - lengths, dtype=np.int64)
        similarities: npt.NDArray[np.float64] = shared / (lengths + self._lengths[text] - shared)
        return similarities


def candidates(sketches: npt.NDArray[np.uint32], rows: int = ROWS) -> dict[int, list[int]]:
    """Return the earlier rows that share a band with a row, by row; ``sketches`` has the shape (n, 128).

    Rows without such a partner are left out. A band has ``rows`` of the 128 values. With 2, a pair with Jaccard 0.3
    shares one of the 64 bands with probability 0.998.
    """
    found: dict[int, set[int]] = defaultdict(set)
    for start in range(0, PERMUTATIONS, rows):
        for group in _alike(np.ascontiguousarray(sketches[:, start : start + rows])):
            for at, number in enumerate(group[1:], 1):
                found[number].update(group[: min(at, _MOST_TRIED)])
    return {number: sorted(found[number]) for number in sorted(found)}


def _alike(band: npt.NDArray[np.uint32]) -> Iterator[list[int]]:
    """Yield each group of two or more equal rows, as their numbers in order."""
    rows = band.view(np.dtype((np.void, band.dtype.itemsize * band.shape[1]))).ravel()
    order = np.argsort(rows, kind="stable")
    borders = np.flatnonzero(rows[order][1:] != rows[order][:-1]) + 1
    return (group.tolist() for group in np.split(order, borders) if len(group) > 1)
