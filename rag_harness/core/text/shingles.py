"""Shingles, which are runs of words: near duplicates by MinHash, and the page that a text comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rag_harness.core.text.comparison import compared_words, words_of

# Broder 1997, "On the resemblance and containment of documents"; bands as in Leskovec, Rajaraman, Ullman, "Mining of
# Massive Datasets", 3.4. A shingle is called a run of words here. LSH gives candidates; the caller compares them
# exactly.

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


_RUN = 6
"""Words of a run. Five words in a row often occur in two documents, six seldom."""
_FEWEST = 3
"""Fewest words of a text that is looked for: of two words, most documents have some."""
_SHARE = 0.8
"""Least share of a text's runs in its document: a service may add a title, or cut the last word."""
_PRIME = np.uint64(1_000_003)

_Numbers = npt.NDArray[np.uint64]


class TextOrigins:
    """Finds the document that contains a text.

    Args:
        documents: their texts.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._ids: dict[str, int] = {}
        numbered = [self._numbered(words_of(text), grow=True) for text in documents]
        self._folded = [f" {' '.join(map(str, numbers))} " for numbers in numbered]
        runs = [_runs(numbers) for numbers in numbered]
        owners = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
        keys = np.concatenate([*runs, np.empty(0, np.uint64)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._owners = keys[order], owners[order]

    def find(self, text: str) -> int | None:
        """Return the number of the document that contains ``text``. None where no document does, or several do.

        The document contains the text word for word, or most of its runs of six words.
        """
        numbers = self._numbered(words_of(text))
        if len(numbers) < _FEWEST:
            return None
        candidates = (
            self._sharing(_runs(numbers)) if len(numbers) >= _RUN else dict.fromkeys(range(len(self._folded)), 0.0)
        )
        folded = f" {' '.join(map(str, numbers))} "
        whole = [at for at in candidates if folded in self._folded[at]]
        if whole:
            return whole[0] if len(whole) == 1 else None
        best = max(candidates.values(), default=0.0)
        likeliest = [at for at, share in candidates.items() if share == best]
        return likeliest[0] if best >= _SHARE and len(likeliest) == 1 else None

    def shares(self, text: str, number: int) -> bool:
        """Return whether a document has a run of six words of ``text``; of a shorter text, all words in a row."""
        numbers = self._numbered(words_of(text))
        if len(numbers) < _RUN:
            return f" {' '.join(map(str, numbers))} " in self._folded[number]
        return number in self._sharing(_runs(numbers))

    def _numbered(self, words: Sequence[str], grow: bool = False) -> list[int]:
        """Return words as numbers; 0 is a word that no document has."""
        if grow:
            return [self._ids.setdefault(word, len(self._ids) + 1) for word in words]
        return [self._ids.get(word, 0) for word in words]

    def _sharing(self, runs: _Numbers) -> dict[int, float]:
        """Return the documents that share some of ``runs``, each with its share."""
        first, last = (np.searchsorted(self._keys, runs, side) for side in ("left", "right"))
        found: dict[int, int] = {}
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            for owner in set(self._owners[begin:end].tolist()):
                found[owner] = found.get(owner, 0) + 1
        return {owner: n / len(runs) for owner, n in found.items()}


class PageTexts:
    """The texts of pages, and whether they say something. Case, punctuation, marks and white space do not count.

    Args:
        texts: of all pages, by their names.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._squeezed: dict[str, str] = {}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self._texts)}

    @cached_property
    def _origins(self) -> TextOrigins:
        return TextOrigins(list(self._texts.values()))

    def has(self, name: str) -> bool:
        """Whether there is a page of this name."""
        return name in self._texts

    def find(self, text: str) -> str:
        """Return the page that contains a text; empty where none does, or several do."""
        number = self._origins.find(text)
        return "" if number is None else list(self._texts)[number]

    def quotes(self, name: str, text: str) -> bool:
        """Whether a page contains a text literally, Markdown included."""
        if name not in self._squeezed:
            self._squeezed[name] = " ".join(self._texts[name].split())
        return " ".join(text.split()) in self._squeezed[name]

    def says(self, name: str, text: str) -> bool:
        """Whether a page has a text, or a run of six words of it: a pipeline may shorten texts, or join them."""
        # Most texts are there literally, and need no index of all pages.
        return self.quotes(name, text) or self._origins.shares(text, self._numbers[name])


class PagesOfContexts:
    """Finds the page of a context: by the name that the context tells, or, where it tells none, by its words.

    Args:
        by_name: finds a page by a name.
        texts: returns the texts of all pages, by their names; called when words are looked for.
    """

    def __init__(self, by_name: Callable[[str], str], texts: Callable[[], Mapping[str, str]]) -> None:
        self._by_name, self._texts = by_name, texts

    @cached_property
    def _pages(self) -> PageTexts:
        return PageTexts(self._texts())

    def find(self, name: str, text: str) -> str:
        """Return the page; empty where no page, or more than one, goes by the ``name`` or has the ``text``."""
        return self._by_name(name) if name else self._pages.find(text)


def _runs(numbers: Sequence[int]) -> _Numbers:
    """Return a number for each run of words, shape (words - 5,); empty where there are fewer."""
    words = np.asarray(numbers, np.uint64)
    if len(words) < _RUN:
        return np.empty(0, np.uint64)
    total = np.zeros(len(words) - _RUN + 1, np.uint64)
    for at in range(_RUN):
        total = total * _PRIME + words[at : len(words) - _RUN + 1 + at]
    return total
