"""Ingest of documents: cuts into chunks, windows for the models, near duplicates, and their summary."""

from __future__ import annotations

import json
import pickle
import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from importlib import import_module
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import ChunkTooLongError, PrerequisiteError, UnreadableError
from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.protocols import Embedder, Index, Store, Stores, Tokenizer
from rag_harness.core.registry import REVISIONS
from rag_harness.core.text.shingles import PERMUTATIONS, RUN, Hashing, candidates, resemblance, signature
from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.data.loaders.child_process import GUESSED, Child, fault_in, packed_fault, read_in, unread_parts
from rag_harness.models.array_store import key_of
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings, chunkers
from rag_harness.retrieval.retrievers import searched_together

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


def duplicates_revision() -> str:
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
    store = stores.open("duplicates", "minhash", duplicates_revision())
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


# Cutting of pages: a short page in this process, a long one in a child process with limits.
#
# Cutting takes linear time, but a page of 32 MB with nothing but headings still takes minutes and gigabytes.

HERE = 32 << 10
"""Most characters of a page to cut in this process. No such page took more than 1.2 s and 50 MB."""
CHUNKS = 10_000
"""Most chunks of one page: 15 MB of prose."""
ANSWER_BYTES = 8 << 20
"""Most bytes of the data of a page's chunks besides the text: places, headings, repeated headers."""
_OWN = "rag_harness."
_TOGETHER = 1_024

CutsOf = Callable[[Document, Sequence[Chunk]], list[Any]]


class Cutting:
    """Cuts pages with one chunker. Close it at the end.

    A user's chunker or tokenizer runs in this process for pages of any length, because it may need this process.

    Args:
        chunker: cuts.
        tokenizer: counts tokens.
        settings: longest chunk and overlap.
        cuts_of: makes plain JSON from a page's chunks; a function of a module of this package.
    """

    def __init__(self, chunker: Chunker, tokenizer: Tokenizer, settings: ChunkingSettings, cuts_of: CutsOf) -> None:
        self._chunker, self._tokenizer, self._settings, self._cuts_of = chunker, tokenizer, settings, cuts_of
        self._child = Child()

    def cuts(self, page: Document) -> list[Any]:
        """Return ``cuts_of`` of the chunks of a page.

        Raises:
            UnreadableError: the page passes a limit. PassingError: another run may succeed.
            ChunkTooLongError: a single character is longer than a chunk may be.
        """
        if len(page.text) > HERE and (asked := self._asked(page)):
            found = _answered(self._child.answer(f"{__name__}:{cut_there.__name__}", asked))
        else:
            found = self._cuts_of(page, self._chunker(page, self._tokenizer, self._settings))
        if len(found) > CHUNKS:
            raise UnreadableError(_too_many(len(found)))
        return found

    def close(self) -> None:
        """End the child process, if there is one."""
        self._child.close()

    def _asked(self, page: Document) -> bytes:
        """Return the question for the child process, or nothing if it could not answer."""
        parts = self._chunker, type(self._tokenizer), self._cuts_of
        if not all(part.__module__.startswith(_OWN) for part in parts):
            return b""
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            tokenizer = pickle.dumps(self._tokenizer)
            names = [(part.__module__, part.__name__) for part in (self._chunker, self._cuts_of)]
            return pickle.dumps((names, tokenizer, self._settings, page))
        return b""


def cut_there(asked: bytes) -> bytes:
    """Cut a page in the child process with limits."""
    names, tokenizer, settings, page = pickle.loads(asked)  # sent by the parent process
    chunker, cuts_of = (getattr(import_module(module), name) for module, name in names)
    try:
        chunks = chunker(page, _tokenizer(tokenizer), settings)
    except ChunkTooLongError as error:
        return json.dumps([[], str(error)]).encode()
    if len(chunks) > CHUNKS:
        return packed_fault(_too_many(len(chunks)))
    answer = json.dumps([cuts_of(page, chunks), ""], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return answer if len(answer) <= ANSWER_BYTES else packed_fault(_too_much(len(chunks), len(answer)))


@lru_cache(1)
def _tokenizer(pickled: bytes) -> Tokenizer:
    return _FewAtOnce(pickle.loads(pickled))


class _FewAtOnce:
    """Counts a few texts at a time, because each token takes a hundred bytes meanwhile."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, texts: Sequence[str]) -> list[int]:
        parts = (texts[start : start + _TOGETHER] for start in range(0, len(texts), _TOGETHER))
        return [count for part in parts for count in self._tokenizer.count(part)]


def _answered(answer: bytes) -> list[Any]:
    fault = fault_in(answer)
    if fault is not None:
        raise fault
    cuts, too_long = json.loads(answer.decode("utf-8", "surrogatepass"))
    if too_long:
        raise ChunkTooLongError(too_long)
    return list(cuts)


def _too_many(chunks: int) -> str:
    return f"would be cut into {chunks:,} chunks, and a document may have {CHUNKS:,}. Split it"


def _too_much(chunks: int, size: int) -> str:
    return (
        f"its {chunks:,} chunks repeat or change {size / (1 << 20):.1f} MB of text, and {ANSWER_BYTES >> 20} MB may be "
        f"kept: long headings, or headers of tables, say. Shorten them, or split it"
    )


# Stored cuts of pages. The chunker and the tokenizer are needed only for new pages.


class RecordedCuts:
    """Cuts pages, and stores the cuts of a page under its text.

    Args:
        store: the store of cuts of one chunker, tokenizer and pair of lengths.
        chunker: returns the chunker, for new pages.
        settings: longest chunk and overlap.
        tokenizer: makes the model's tokenizer, for new pages.

    Attributes:
        refused: the reason for each page that passes a limit, by id. These pages have no chunks.
    """

    def __init__(
        self,
        store: Store,
        chunker: Callable[[], Chunker],
        settings: ChunkingSettings,
        tokenizer: Callable[[], Tokenizer],
    ) -> None:
        self._store, self._chunker, self._settings, self._tokenizer = store, chunker, settings, tokenizer
        self.refused: dict[str, str] = {}

    def chunks(self, documents: Sequence[Document]) -> list[Chunk]:
        """Return the chunks of all pages, in order."""
        keys = [key_of(document.doc_id, document.text) for document in documents]
        kept = self._store.get(keys)
        new = {key: document for key, document, cuts in zip(keys, documents, kept, strict=True) if cuts is None}
        fresh = self._cut(new)
        return [
            chunk
            for key, document, cuts in zip(keys, documents, kept, strict=True)
            for chunk in chunks_from(document, fresh.get(key, []) if cuts is None else json.loads(cuts.tobytes()))
        ]

    def _cut(self, new: dict[bytes, Document]) -> dict[bytes, list[Any]]:
        if not new:
            return {}
        tokenizer, keep = self._tokenizer_or_guess()
        cutting = Cutting(self._chunker(), tokenizer, self._settings, cuts_of)
        fresh: dict[bytes, list[Any]] = {}
        try:
            for key, page in new.items():
                try:
                    fresh[key] = cutting.cuts(page)
                except UnreadableError as error:
                    self.refused[page.doc_id] = str(error)
        finally:
            cutting.close()
        if keep:
            self._store.put({key: _bytes(cuts) for key, cuts in fresh.items()})
        return fresh

    def _tokenizer_or_guess(self) -> tuple[Tokenizer, bool]:
        """Return the tokenizer, or a rough one without it. A rough cut is enough to name the chunk without a vector."""
        try:
            return self._tokenizer(), True
        except PrerequisiteError:
            return _Guess(), False


class _Guess:
    def count(self, texts: Sequence[str]) -> list[int]:
        return [2 + len(re.findall(r"\w{1,5}|[^\w\s]", text)) for text in texts]


def cuts_of(page: Document, chunks: Sequence[Chunk]) -> list[Any]:
    """Return the chunks as plain JSON for ``chunks_from``, without text that the page has."""
    return [_cut_of(page, chunk) for chunk in chunks]


def _cut_of(page: Document, chunk: Chunk) -> list[Any]:
    """Return id, place and section of a chunk, and its text if the page does not have it at that place."""
    name = chunk.chunk_id.removeprefix(f"{page.doc_id}#")
    there = chunk.repeated_header + page.text[chunk.start : chunk.end] == chunk.text
    own = {key: value for key, value in chunk.metadata.items() if page.metadata.get(key) != value}
    text = None if there else chunk.text
    return [name, chunk.start, chunk.end, chunk.repeated_header, list(chunk.section), text, own]


def _bytes(cuts: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(cuts).encode(), dtype=np.uint8).reshape(-1, 1)


def chunks_from(document: Document, cuts: list[Any]) -> list[Chunk]:
    """Return the chunks of a page from the JSON of ``cuts_of``."""
    return [
        Chunk(
            chunk_id=f"{document.doc_id}#{name}",
            doc_id=document.doc_id,
            text=header + document.text[start:end] if text is None else text,
            start=start,
            end=end,
            section=tuple(section),
            index=index,
            repeated_header=header,
            metadata={**document.metadata, **own} if own else document.metadata,
            pages=_pages(document, start, end),
        )
        for index, (name, start, end, header, section, text, own) in enumerate(cuts)
    ]


def _pages(document: Document, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and the last page with text between two offsets. Blanks do not count as text."""
    if not document.pages:
        return None
    text = document.text[start:end]
    first, last = start + len(text) - len(text.lstrip()), start + len(text.rstrip()) - 1
    begins = bisect_right(document.pages, first if first <= last else start)
    return begins, max(begins, bisect_right(document.pages, last))


# Windows of chunks that are longer than the embedder reads. The index has windows; retrieval returns chunks.

QUARTER = 4
"""A window repeats up to a quarter of the one before, so that text at a border has its context in one window. Where
possible, no window is shorter than a quarter."""


def windows_revision() -> str:
    """Return the revision of how windows are cut."""
    return REVISIONS["chunkers/windows"]


def windows_of(chunks: Sequence[Chunk], embedder: Embedder, stores: Stores) -> list[Chunk]:
    """Return the windows of all chunks, in order, with ids ``<chunk_id>~<n>``, n from 0.

    A chunk that fits is its only window, with its own id.
    """
    quarter = embedder.max_tokens // QUARTER
    lengths = ChunkingSettings(embedder.max_tokens, quarter, quarter)
    named = f"windows-{lengths.max_tokens}-{lengths.overlap}-{windows_revision()}"
    store = stores.open("chunks", embedder.model, named)
    cuts = RecordedCuts(store, lambda: chunkers.chunk_window, lengths, embedder.tokenizer)
    read = cuts.chunks([Document(chunk.chunk_id, chunk.text, "") for chunk in chunks])
    by_chunk = groupby(read, key=lambda window: window.doc_id)
    return [named for chunk, (_, parts) in zip(chunks, by_chunk, strict=True) for named in _named(chunk, list(parts))]


def chunk_of_window(chunks: Sequence[Chunk], windows: Sequence[Chunk]) -> dict[str, Chunk]:
    """Return the chunk of each window, by the window's id."""
    own = {chunk.chunk_id: chunk for chunk in chunks}
    return {name: own.get(name) or own[name.rpartition("~")[0]] for name in (each.chunk_id for each in windows)}


def _named(chunk: Chunk, windows: Sequence[Chunk]) -> Iterator[Chunk]:
    if len(windows) == 1:
        yield chunk
        return
    for number, window in enumerate(windows):
        # A repeated header is before the page's own text. Offsets in the page count from after the header.
        start = chunk.start + window.start - len(chunk.repeated_header)
        end = start + len(window.text)
        yield replace(
            chunk,
            chunk_id=f"{chunk.chunk_id}~{number}",
            text=window.text,
            start=max(chunk.start, start),
            end=max(chunk.start, end),
            repeated_header=chunk.repeated_header[window.start : window.end],
        )


class Windowed(Protocol):
    """The parts for searching chunks by their windows."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index."""
        ...

    @property
    def index(self) -> Index:
        """The vector index of the windows."""
        ...

    @property
    def chunk_of_window(self) -> Mapping[str, Chunk]:
        """The chunk of each window, by the window's id."""
        ...


@dataclass(frozen=True)
class WindowedRetriever:
    """Finds whole chunks by their nearest windows, by cosine. A chunk has the score of its best window."""

    over: Windowed

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.retrieve_many([(query, k)])[0]

    def retrieve_many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        """Return the hits of each query and k. An index behind a network gets one first request for all."""
        index = self.over.index
        vectors = list(self.over.embedder.embed_queries([query for query, _ in requests]))
        first = searched_together(index, vectors, [_first_depth(k) for _, k in requests])

        def search(number: int, depth: int) -> Sequence[Hit]:
            known = depth == _first_depth(requests[number][1])
            return first[number] if known else index.search(vectors[number], depth)

        return [folded_windows(partial(search, n), self.over.chunk_of_window, k) for n, (_, k) in enumerate(requests)]


def _first_depth(k: int) -> int:
    return 2 * k


def folded_windows(search: Callable[[int], Sequence[Hit]], chunk_of: Mapping[str, Chunk], k: int) -> list[Hit]:
    """Return the ``k`` chunks whose best windows score highest; fewer only if there are fewer chunks.

    ``search(depth)`` gives the best windows. The depth grows until they contain ``k`` chunks.
    """
    depth = _first_depth(k)
    while True:
        windows = search(depth)
        best: dict[str, Hit] = {}
        for hit in windows:
            chunk = chunk_of[hit.chunk.chunk_id]
            best.setdefault(chunk.chunk_id, replace(hit, chunk=chunk))
        if len(best) >= k or len(windows) < depth:
            return [replace(hit, rank=rank) for rank, hit in enumerate(list(best.values())[:k], 1)]
        depth *= 2
