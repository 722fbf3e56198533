"""The summary of ingested documents, which is added up."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.dataset.ingest.parsed import GUESSED, read_in, unread_parts
from rag_harness.shown.terminal import line as shown
from rag_harness.types import Chunk, Document

_NAMED = 5
"""Most documents without text that are named."""


@dataclass(frozen=True)
class About:
    """A summary of documents and their chunks.

    Attributes:
        documents: number of documents.
        empty: number of documents without text; ``empties`` are the ids of the first ones.
        hidden: number of hidden characters that were left out of ``hiding`` documents.
        worst: the most hidden characters of one document, and its id.
        damaged: a line for each document with unreadable pages or a guessed charset,
            and for each part that was not read.
        characters: number of characters; ``missed`` of them are in no chunk and not blank.
    """

    documents: int = 0
    empty: int = 0
    empties: Sequence[str] = ()
    hidden: int = 0
    hiding: int = 0
    worst: tuple[int, str] = (0, "")
    damaged: Sequence[str] = ()
    characters: int = 0
    missed: int = 0

    def __add__(self, later: About) -> About:
        """Return the summary of these and of later documents."""
        return About(
            self.documents + later.documents,
            self.empty + later.empty,
            [*self.empties, *later.empties][:_NAMED],
            self.hidden + later.hidden,
            self.hiding + later.hiding,
            later.worst if later.worst[0] > self.worst[0] else self.worst,
            [*self.damaged, *later.damaged],
            self.characters + later.characters,
            self.missed + later.missed,
        )

    @property
    def coverage(self) -> float:
        """The share of characters that are in a chunk or blank; 1 without characters."""
        return 1 - self.missed / self.characters if self.characters else 1.0

    def lines(self) -> Iterator[str]:
        """Yield the lines for a person."""
        if self.empty:
            more = ", …" if self.empty > _NAMED else ""
            yield f"empty     {self.empty:,}: {', '.join(map(shown, self.empties))}{more}"
        if self.hiding:
            yield (
                f"hidden    {self.hidden:,} characters of text that nobody would see were left out of "
                f"{self.hiding:,} files, most of {shown(self.worst[1])}"
            )
        yield from self.damaged


def about_documents(documents: Sequence[Document], chunks: Sequence[Chunk]) -> About:
    """Return the summary of documents that were cut into ``chunks``."""
    empty = [document.doc_id for document in documents if not document.text.strip()]
    hidden = [(n, each.doc_id) for each in documents if (n := int(each.metadata.get("hidden_characters") or 0))]
    return About(
        len(documents),
        len(empty),
        empty[:_NAMED],
        sum(n for n, _ in hidden),
        len(hidden),
        max(hidden, key=lambda each: each[0], default=(0, "")),
        list(_damaged(documents)),
        sum(len(document.text) for document in documents),
        _missed_of(documents, chunks),
    )


def _damaged(documents: Sequence[Document]) -> Iterator[str]:
    for each in documents:
        if charset := each.metadata.get(GUESSED):
            yield f"guessed   {shown(each.doc_id)}: {shown(read_in(str(charset)))}; or name its charset: --charset"
        if pages := each.metadata.get("unread_pages"):
            yield f"damaged   {shown(each.doc_id)}: pages that cannot be read: {', '.join(map(str, pages[:10]))}"
        for part in unread_parts(each):
            yield f"unread    {shown(each.doc_id)}: {shown(part)}"


def _missed_of(documents: Sequence[Document], chunks: Sequence[Chunk]) -> int:
    spans: dict[str, list[tuple[int, int]]] = {}
    for chunk in chunks:
        insort(spans.setdefault(chunk.doc_id, []), (chunk.start, chunk.end))
    return sum(_missed(document.text, spans.get(document.doc_id, [])) for document in documents)


def _missed(text: str, spans: Sequence[tuple[int, int]]) -> int:
    missed, covered = 0, 0
    for start, end in [*spans, (len(text), len(text))]:
        if start > covered:
            missed += sum(map(len, text[covered:start].split()))
        covered = max(covered, end)
    return missed
