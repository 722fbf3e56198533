"""The weights of words in a collection that changes: a chunk is counted when it comes, and again when it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rag_harness.retrieval.rarity import Rarity
from rag_harness.types import Chunk
from rag_harness.words.terms import terms


class LiveTerms:
    """Counts how many chunks of a collection have each word. Used by one thread at a time."""

    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}
        self._having: Counter[str] = Counter()

    def over(self, chunks: Sequence[Chunk]) -> Rarity:
        """Return the weights over these chunks. Chunks of the last state are not counted again."""
        now = {id(chunk): chunk for chunk in chunks}
        # A copy, since questions under way read the last counts.
        having = self._having.copy()
        having.update(_words(now[each] for each in now.keys() - self._chunks.keys()))
        gone = _words(self._chunks[each] for each in self._chunks.keys() - now.keys())
        having.subtract(gone)
        for word in gone:
            if having[word] == 0:
                del having[word]
        self._chunks, self._having = now, having
        return _Counted(len(chunks), having)


def _words(chunks: Iterable[Chunk]) -> list[str]:
    return [word for chunk in chunks for word in terms(chunk.text, chunk.language)]


class _Counted(Rarity):
    def __init__(self, count: int, having: Counter[str]) -> None:
        super().__init__(())
        self._count, self._having = count, having
