"""BM25 over a changing set of chunks. Words of a chunk are counted once, and each state of the set has a view.

The scores equal those of ``Bm25Index`` over the same chunks, to the last bit; tests check that.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.retrieval.lexical import Bm25Index, Postings, StemsByLanguage, cut, length_parts
from rag_harness.types import Chunk

_LEAST_DEAD = 1_000
"""Number of removed chunks from which their words are deleted. Fewer cost nothing."""

ChunkPositions = npt.NDArray[np.int64]


@dataclass
class _Counted:
    """Words of chunks by slot. Entries are only added, because views of older states read them in other threads."""

    chunks: list[Chunk] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    having: dict[str, tuple[array[int], array[int]]] = field(default_factory=dict)

    def add(self, chunks: Sequence[Chunk]) -> None:
        known = StemsByLanguage()
        for chunk in chunks:
            slot, words = len(self.chunks), cut(chunk.text, known[chunk.language])
            for word, count in Counter(words).items():
                slots, counts = self.having.setdefault(word, (array("q"), array("q")))
                # A reader takes the slots first, so each slot must already have its count.
                counts.append(count)
                slots.append(slot)
            self.lengths.append(len(words))
            self.chunks.append(chunk)
            self.slots[id(chunk)] = slot

    def kept(self, chunks: Sequence[Chunk]) -> _Counted:
        """Return a copy with only these chunks."""
        own = [self.slots[id(chunk)] for chunk in chunks]
        places = np.full(len(self.chunks), -1, np.int64)
        places[own] = np.arange(len(own))
        made = _Counted(list(chunks), {id(chunk): place for place, chunk in enumerate(chunks)})
        made.lengths.extend(self.lengths[slot] for slot in own)
        for word, (slots, counts) in self.having.items():
            now = places[_read(slots)]
            if (now >= 0).any():
                own_counts = _read(counts)[now >= 0]
                made.having[word] = array("q", now[now >= 0].tobytes()), array("q", own_counts.tobytes())
        return made


def _read(numbers: array[int]) -> ChunkPositions:
    # Copied while Python's lock is held, because an array cannot grow while NumPy has a view of it.
    return np.frombuffer(numbers.tobytes(), np.int64)


class LiveWords:
    """The words of all chunks of a collection. Only one thread at a time makes views; other threads read them."""

    def __init__(self) -> None:
        self._counted = _Counted()

    def view(self, chunks: Sequence[Chunk]) -> Bm25Index:
        """Return BM25 over these chunks; new chunks are counted. Chunks are compared by identity, not by equality."""
        counted = self._counted
        counted.add([chunk for chunk in chunks if id(chunk) not in counted.slots])
        if len(counted.chunks) > max(2 * len(chunks), len(chunks) + _LEAST_DEAD):
            counted = self._counted = counted.kept(chunks)
        return _View(chunks, counted)


class _View(Bm25Index):
    def __init__(self, chunks: Sequence[Chunk], counted: _Counted) -> None:
        super().__init__(lambda: chunks)
        self._own = counted
        self._slots = np.array([counted.slots[id(chunk)] for chunk in chunks], np.int64)
        self._all = len(counted.chunks)

    @cached_property
    def _counted(self) -> tuple[Postings, npt.NDArray[np.float64]]:
        places = np.full(self._all, -1, np.int64)
        places[self._slots] = np.arange(len(self._slots))
        lengths = _read(self._own.lengths)[self._slots].astype(np.float64)
        return _Postings(self._own, places), length_parts(lengths)


class _Postings(Mapping[str, tuple[ChunkPositions, ChunkPositions]]):
    """The places of one state's chunks that have a word, and its count in each."""

    def __init__(self, counted: _Counted, places: ChunkPositions) -> None:
        self._counted, self._places = counted, places

    def __getitem__(self, word: str) -> tuple[ChunkPositions, ChunkPositions]:
        slots, counts = self._counted.having[word]
        read = _read(slots)
        read = read[: np.searchsorted(read, len(self._places))]
        places = self._places[read]
        return places[places >= 0], _read(counts)[: len(read)][places >= 0]

    def __contains__(self, word: object) -> bool:
        return word in self._counted.having

    def __iter__(self) -> Iterator[str]:
        return iter(self._counted.having)

    def __len__(self) -> int:
        return len(self._counted.having)
