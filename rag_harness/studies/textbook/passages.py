"""Finds the sections that hold a selected text, anywhere in the book: the cosine of the question may not find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_harness.errors import QueryTooLongError
from rag_harness.protocols import Retriever
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.studies.textbook.selection import Selection
from rag_harness.types import Chunk, Decision, Hit

LOOKED_AT = 20
"""How many sections are looked at: those with most of the selection's words, by BM25."""
MOST = 5
"""The most sections that are added. A text that more of them hold does not say which one the student reads."""
SEARCHED = 400
"""The most characters of a selection that are searched with the question. An embedding model reads little text."""


@dataclass(frozen=True)
class Passages:
    """Finds the sections that hold a selection.

    Args:
        retrieval: has the sections, and their vectors by way of its embedder.
        words: finds sections by words.
    """

    retrieval: Retrieval
    words: Retriever

    def beside(self, hits: Sequence[Hit], asked: str, selection: Selection) -> tuple[list[Hit], Decision]:
        """Return ``hits`` and, after them, the sections with the selection that are missing; and the decision.

        A section that is added has its own cosine to the question, and no higher score than the hits. So without a
        boost it stays behind them.
        """
        holding = [
            hit.chunk for hit in self.words.retrieve(selection.text, LOOKED_AT) if selection.is_in(hit.chunk.text)
        ]
        known = {hit.chunk.chunk_id for hit in hits}
        missing = [chunk for chunk in holding if chunk.chunk_id not in known]
        if len(holding) > MOST:
            missing = []
        added = self._added(missing, asked, min((hit.score for hit in hits), default=1.0), len(hits))
        return [*hits, *added], _decided(len(holding), len(added))

    def searched(self, asked: str, selection: Selection) -> tuple[str, Decision]:
        """Return the question with the selection behind it, as one text to search for; and the decision.

        It is the question alone if both are too long for the embedding model.
        """
        part = selection.text[:SEARCHED]
        try:
            self.retrieval.embedder.check_query(f"{asked} {part}")
        except QueryTooLongError as error:
            why = (
                f"with the selection the question has {error.tokens} tokens, and the embedding model reads {error.most}"
            )
            return asked, Decision("search", "question alone", reason=why)
        return f"{asked} {part}", Decision("search", "question and selection", float(len(part)))

    def _added(self, chunks: Sequence[Chunk], asked: str, most: float, before: int) -> list[Hit]:
        found = sorted(((self._cosine(asked, chunk), chunk) for chunk in chunks), key=lambda pair: -pair[0])
        return [
            Hit(chunk, min(cosine, most), rank, source="passage", scores={"dense": cosine})
            for rank, (cosine, chunk) in enumerate(found, before + 1)
        ]

    def _cosine(self, asked: str, chunk: Chunk) -> float:
        """Return the cosine of the section's best window, as the index has it."""
        embedder = self.retrieval.embedder
        windows = embedder.embed_documents(self._windows[chunk.chunk_id])
        return float((windows @ embedder.embed_queries([asked])[0]).max())

    @cached_property
    def _windows(self) -> Mapping[str, list[str]]:
        """The texts of the index, by the id of their section."""
        found: dict[str, list[str]] = {}
        for window in self.retrieval.indexed:
            found.setdefault(self.retrieval.chunk_of_window[window.chunk_id].chunk_id, []).append(window.text)
        return found


def _decided(holding: int, added: int) -> Decision:
    if not holding:
        return Decision("passage", "not found", 0.0, reason="no section was found that holds the selection")
    if holding > MOST:
        why = f"more than {MOST} sections hold the selection: it does not say which one is read"
        return Decision("passage", "not told apart", 0.0, float(MOST), why)
    sections = "1 section holds" if holding == 1 else f"{holding} sections hold"
    if not added:
        return Decision(
            "passage",
            "found",
            0.0,
            reason=f"{sections} the selection, and cosine found {'it' if holding == 1 else 'them'}",
        )
    return Decision("passage", "added", float(added), reason=f"{sections} the selection, and cosine missed {added}")
