"""Ingest of documents: their summary, and near duplicates among their chunks."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.protocols import Stores
from rag_harness.core.registry import REVISIONS
from rag_harness.core.text.shingles import PERMUTATIONS, RUN, Hashing, candidates, resemblance, signature
from rag_harness.core.types import Chunk, Document
from rag_harness.data.loaders.child_process import GUESSED, read_in, unread_parts
from rag_harness.models.array_store import key_of

_NAMED = 5
"""Most documents without text that are named."""


@dataclass(frozen=True)
class IngestSummary:
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

    def __add__(self, later: IngestSummary) -> IngestSummary:
        """Return the summary of these and of later documents."""
        return IngestSummary(
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


def about_documents(documents: Sequence[Document], chunks: Sequence[Chunk]) -> IngestSummary:
    """Return the summary of documents that were cut into ``chunks``."""
    empty = [document.doc_id for document in documents if not document.text.strip()]
    hidden = [(n, each.doc_id) for each in documents if (n := int(each.metadata.get("hidden_characters") or 0))]
    return IngestSummary(
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


NEAR_DUPLICATE_SHARE = 0.9
"""Share of common runs from which a report names near-duplicates."""
SHORT_CHUNK = 12
"""Fewest words. Shorter chunks are phrases that documents may share."""
# Tokens that change a statement in otherwise equal words: figures, dates, versions, and "not".
_DECIDES = re.compile(
    r"(?<![^\W\d])\w*\d\w*(?:[.,:/-]\d+)*|\b(?:not|no|never|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def source() -> str:
    """Return the revision of how duplicates are found."""
    return REVISIONS["duplicates"]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A chunk, the similar earlier chunk, and the Jaccard similarity of their runs of three words."""

    chunk: Chunk
    like: Chunk
    share: float


def duplicates(chunks: Sequence[Chunk], least: float, stores: Stores, digest: str = "") -> list[Duplicate]:
    """Return the near-duplicates among ``chunks``, in order. The result is stored under the chunks' ``digest``.

    A chunk is a near-duplicate of an earlier chunk of another document if it shares at least ``least`` of its runs and
    has the same figures and negations. So two versions are not duplicates. The earlier chunk must not be a duplicate
    itself.
    """
    store = stores.open("duplicates", "minhash", source())
    key = key_of(f"{least:g}", digest or _digest(chunks))
    kept = store.get([key])[0]
    if kept is None:
        found = list(_pairs(chunks, least))
        kept = np.array([[-1.0, -1.0, 0.0], *found], dtype=np.float64)
        store.put({key: kept})
    return [Duplicate(chunks[int(one)], chunks[int(like)], float(share)) for one, like, share in kept[1:]]


def _digest(chunks: Sequence[Chunk]) -> str:
    state = blake2b(digest_size=16)
    for chunk in chunks:
        state.update(f"{chunk.doc_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def _pairs(chunks: Sequence[Chunk], least: float) -> Iterator[tuple[int, int, float]]:
    hashing = Hashing()
    numbers, sketches = _sketched(chunks, hashing)
    gone: set[int] = set()
    for row, rows in candidates(sketches).items():
        number, others = numbers[row], [numbers[other] for other in rows]
        share, like = _likest(number, [other for other in others if other not in gone], chunks, hashing, least)
        if share:
            gone.add(number)
            yield number, like, share


def _sketched(chunks: Sequence[Chunk], hashing: Hashing) -> tuple[list[int], npt.NDArray[np.uint32]]:
    numbers, sketches = [], []
    for number, chunk in enumerate(chunks):
        runs = hashing.runs(chunk.text)
        if len(runs) + RUN > SHORT_CHUNK:
            numbers.append(number)
            sketches.append(signature(runs))
    return numbers, np.array(sketches, dtype=np.uint32).reshape(-1, PERMUTATIONS)


def _likest(
    number: int, others: Sequence[int], chunks: Sequence[Chunk], hashing: Hashing, least: float
) -> tuple[float, int]:
    chunk, found = chunks[number], [(0.0, -1)]
    runs = hashing.runs(chunk.text)
    for other in others:
        if chunks[other].doc_id != chunk.doc_id and _same(chunk, chunks[other]):
            share = resemblance(runs, hashing.runs(chunks[other].text))
            found += [(share, -other)] if share >= least else []
    share, like = max(found)
    return share, -like


def _same(one: Chunk, other: Chunk) -> bool:
    return Counter(_decisive(one.text)) == Counter(_decisive(other.text))


def _decisive(text: str) -> list[str]:
    return [found.casefold() for found in _DECIDES.findall(text)]
