"""Gold for one index: which chunks count as found. It is resolved from golden entries, so gold survives re-chunking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from rag_harness.dataset.golden import GoldenEntry
from rag_harness.dataset.slugs import numbered
from rag_harness.errors import DataError
from rag_harness.types import Chunk

_NEAREST = 3

_Heading = tuple[str, list[Chunk]]


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold of one query.

    ``level`` says whether ``ids`` are documents or chunks. A heading may lie in several chunks, and each of them finds
    it. So ``relevance`` is about the expected ids of the golden set, and ``ranked`` returns these ids. ``evidence`` are
    the chunks that contain a quote, for the text of a failure.
    """

    level: Literal["document", "chunk"]
    ids: frozenset[str]
    relevance: Mapping[str, int]
    expected_of: Mapping[str, tuple[str, ...]]
    evidence: tuple[str, ...] = ()

    def key(self, chunk: Chunk) -> str:
        """Return the id of a chunk to look up in ``ids``."""
        return chunk.doc_id if self.level == "document" else chunk.chunk_id

    def ranked(self, chunks: Iterable[Chunk]) -> list[str]:
        """Return the ranking in ids of ``relevance``: the expected id that a chunk contains, else its ``key``.

        An id is repeated if several chunks contain it; measures count the first.
        """
        keys = map(self.key, chunks)
        return [name for key in keys for name in self.expected_of.get(key, (key,))]


def resolve(entries: Iterable[GoldenEntry], chunks: Sequence[Chunk]) -> dict[str, Gold]:
    """Return the gold of each entry, by ``entry_id``.

    A page is gold at the level of documents. A heading means every chunk of its section and of the sections below.
    If an entry names a heading or a chunk, its pages mean all their chunks.

    Raises:
        DataError: expected ids do not exist; lists each with its entry and the nearest ids.
    """
    names, problems, golds = _Names(chunks), [], {}
    for entry in entries:
        lost = [expected for expected in entry.expected if not names.chunks(expected)]
        problems += [_lost(entry, expected, names) for expected in lost]
        golds[entry.entry_id] = _gold(entry, names)
    if problems:
        raise DataError("\n".join(problems))
    return golds


def _gold(entry: GoldenEntry, names: _Names) -> Gold:
    whole = all(expected in names.by_doc for expected in entry.expected)
    expected_of: dict[str, tuple[str, ...]] = {}
    for expected in entry.expected:
        for found in [expected] if whole else [chunk.chunk_id for chunk in names.chunks(expected)]:
            expected_of[found] = (*expected_of.get(found, ()), expected)
    evidence = tuple(dict.fromkeys(names.quoting(entry)))
    level: Literal["document", "chunk"] = "document" if whole else "chunk"
    return Gold(level, frozenset(expected_of), dict.fromkeys(entry.expected, 1), expected_of, evidence)


def _lost(entry: GoldenEntry, expected: str, names: _Names) -> str:
    near = names.nearest(expected)
    meant = f"Did you mean {' or '.join(map(repr, near))}?" if near else "A heading is named as page.md#heading."
    where = entry.place or f"Golden entry {entry.entry_id}"
    return f"{where}: {entry.said_by} {expected!r} is no page, heading or chunk of the documents. {meant}"


class _Names:
    """All names that gold may use, with the chunks of each."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.by_id = {chunk.chunk_id: chunk for chunk in chunks}
        self.by_doc: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            self.by_doc.setdefault(chunk.doc_id, []).append(chunk)
        self._headings: dict[str, dict[str, list[Chunk]]] = {}
        self._squeezed: dict[str, str] = {}

    def chunks(self, name: str) -> Sequence[Chunk]:
        """Return the chunks of ``name``. Exact ids have priority, because a document's id may contain a ``#``."""
        if name in self.by_doc:
            return self.by_doc[name]
        if name in self.by_id:
            return [self.by_id[name]]
        doc_id, _, anchor = name.rpartition("#")
        return self.headings(doc_id).get(anchor, [])

    def headings(self, doc_id: str) -> Mapping[str, list[Chunk]]:
        """Return the chunks below each heading of a page, by anchor."""
        if doc_id not in self._headings:
            chunks = self.by_doc.get(doc_id, [])
            self._headings[doc_id] = _agreed(_by_anchor(chunks), _by_held(chunks))
        return self._headings[doc_id]

    def quoting(self, entry: GoldenEntry) -> Iterator[str]:
        """Yield the chunks of expected pages that contain a quote. Runs of white space count as one blank."""
        quotes = [" ".join(quote.split()) for quote in entry.evidence]
        for doc_id in dict.fromkeys(chunk.doc_id for name in entry.expected for chunk in self.chunks(name)[:1]):
            for chunk in self.by_doc[doc_id]:
                if quotes and any(quote in self._squeeze(chunk) for quote in quotes):
                    yield chunk.chunk_id

    def nearest(self, name: str) -> list[str]:
        """Return the ids most similar to ``name``: headings and chunks of its page if the page exists, else pages."""
        doc_id, _, _ = name.rpartition("#")
        if doc_id in self.by_doc:
            inner = [f"{doc_id}#{anchor}" for anchor in self.headings(doc_id)]
            return get_close_matches(name, [*inner, *(c.chunk_id for c in self.by_doc[doc_id])], _NEAREST, cutoff=0)
        return get_close_matches(doc_id or name, list(self.by_doc), _NEAREST, cutoff=0.5)

    def _squeeze(self, chunk: Chunk) -> str:
        if chunk.chunk_id not in self._squeezed:
            self._squeezed[chunk.chunk_id] = " ".join(chunk.text.split())
        return self._squeezed[chunk.chunk_id]


def _agreed(by_path: Mapping[str, list[Chunk]], held: Mapping[str, list[Chunk]]) -> dict[str, list[Chunk]]:
    """Return the chunks below each heading. Paths show the levels, but misnumber equal headings in joined chunks."""
    wrong = {
        anchor: chunks
        for anchor, chunks in held.items()
        if not {chunk.chunk_id for chunk in chunks} <= {chunk.chunk_id for chunk in by_path.get(anchor, ())}
    }
    return {**by_path, **wrong}


def _by_held(chunks: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    """Return the chunks of each heading from the metadata of chunks. A chunk's section names only one heading."""
    held: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        for anchor in chunk.metadata.get("section_ids", ()):
            held.setdefault(anchor, []).append(chunk)
    return held


def _by_anchor(chunks: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    """Return the chunks of each heading from their sections. Where the path changes, a new heading begins."""
    headings: list[_Heading] = []
    path: list[_Heading] = []
    for chunk in sorted(chunks, key=lambda chunk: chunk.index):
        path = path[: _shared([title for title, _ in path], chunk.section)]
        begun: list[_Heading] = [(title, []) for title in chunk.section[len(path) :]]
        headings += begun
        path += begun
        for _, below in path:
            below.append(chunk)
    return dict(zip(numbered(title for title, _ in headings), (below for _, below in headings), strict=True))


def _shared(path: Sequence[str], other: Sequence[str]) -> int:
    same = [a == b for a, b in zip(path, other, strict=False)]
    return [*same, False].index(False)
