"""MinHash and LSH: which texts share most of their runs of words, without comparing each with each.

Broder 1997, "On the resemblance and containment of documents"; bands as in Leskovec, Rajaraman, Ullman, "Mining of
Massive Datasets", 3.4. Candidates only: whoever asks compares their runs exactly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

RUN = 3
"""Words."""
PERMUTATIONS, ROWS = 128, 8
"""Of a signature; of a band. A pair with Jaccard 0.9 shares one of the 16 bands with probability 0.9999, with 0.8
0.95, with 0.5 0.06."""
_MOST_TRIED = 20
"""Texts of a band that another is compared with, the first ones: of a thousand alike, one is enough."""
_WORD = re.compile(r"\w+")

_random = np.random.default_rng(20)
_FACTORS = _random.integers(0, 1 << 31, PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
_SHIFTS = _random.integers(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)

Runs = npt.NDArray[np.uint64]


class Hashing:
    """Texts -> hashes of their runs; remembers those of words."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def runs(self, text: str) -> Runs:
        """Return the sorted hashes of the different runs of words; a shorter text is one run. Shape (n,)."""
        words = _WORD.findall(text.casefold())
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
    """Spread 64 bits, as the end of SplitMix64 does; overflow is meant."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def signature(runs: Runs) -> npt.NDArray[np.uint32]:
    """Return the least hash of ``runs``, of which there is one at least, under each permutation. Shape (128,)."""
    # 32 bits, which processors multiply eight at a time; overflow is meant.
    permuted = np.multiply.outer(_FACTORS, (runs >> np.uint64(32)).astype(np.uint32))
    permuted += _SHIFTS[:, None]
    sketch: npt.NDArray[np.uint32] = permuted.min(axis=1)
    return sketch


def resemblance(first: Runs, second: Runs) -> float:
    """Return the Jaccard similarity of two sets of runs, exactly."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / max(1, len(first) + len(second) - shared)


class Resemblances:
    """Of one text to many others at once, exactly: where phrases are shared by all, candidates are too many to pair."""

    def __init__(self, runs: Sequence[Runs]) -> None:
        """``runs`` has one text's an element, each different and one at least."""
        lengths = np.array([len(each) for each in runs], dtype=np.int64)
        known, numbers = np.unique(np.concatenate(runs), return_inverse=True)
        self._numbers = np.split(numbers, np.cumsum(lengths)[:-1])
        self._lengths = lengths
        self._is_own = np.zeros(len(known), dtype=np.bool_)

    def to(self, text: int, others: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the Jaccard similarity of ``text`` to each of ``others``, by their numbers. Shape (len(others),)."""
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
    """Return for each row of ``sketches``, of shape (n, 128), the earlier rows that share a band with it, if any.

    A band has ``rows`` of the 128; with 2 a pair with Jaccard 0.3 shares one of 64 with probability 0.998.
    """
    found: dict[int, set[int]] = defaultdict(set)
    for start in range(0, PERMUTATIONS, rows):
        for group in _alike(np.ascontiguousarray(sketches[:, start : start + rows])):
            for at, number in enumerate(group[1:], 1):
                found[number].update(group[: min(at, _MOST_TRIED)])
    return {number: sorted(found[number]) for number in sorted(found)}


def _alike(band: npt.NDArray[np.uint32]) -> Iterator[list[int]]:
    """Yield the numbers of rows that are equal, in order, of two and more."""
    rows = band.view(np.dtype((np.void, band.dtype.itemsize * band.shape[1]))).ravel()
    order = np.argsort(rows, kind="stable")
    borders = np.flatnonzero(rows[order][1:] != rows[order][:-1]) + 1
    return (group.tolist() for group in np.split(order, borders) if len(group) > 1)
