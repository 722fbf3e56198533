"""Golden sets, JSON, CSV or JSONL, and the gold chunks of one index that they name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from rag_harness.core.errors import DataError
from rag_harness.core.files import meant_beside
from rag_harness.core.text.comparison import composed, numbered
from rag_harness.core.types import Case, Chunk, Metadata
from rag_harness.data.documents import Pages
from rag_harness.data.queries import labelled, read_numbered

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


EXAMPLE_ENTRY = '[{"query": "…", "expected_document_id": "page.md#heading", "justification": "…"}]'
GOLDEN_COLUMNS = ("query", "expected_document_id", "justification")


class RawEntry(NamedTuple):
    """An unchecked entry: its position from 1, its place in the file, and problems found so far."""

    position: int
    where: str
    value: Any
    problem: str = ""


def raw_entries(file: Path) -> list[RawEntry]:
    """Read ``file``; ``.csv`` is CSV with a header, anything else a JSON list.

    Raises:
        DataError: the file is missing or empty, not UTF-8, or neither JSON nor CSV.
    """
    text = _text(file)
    raws = list(_csv_rows(file, text) if file.suffix.lower() == ".csv" else _json_items(file, text))
    if not raws:
        wanted = (
            f"the header {','.join(GOLDEN_COLUMNS)} and a row for each query"
            if file.suffix.lower() == ".csv"
            else EXAMPLE_ENTRY
        )
        raise DataError(f"{file} holds no entry. A golden set is {wanted}.")
    return raws


def kind(value: Any) -> str:
    """Name the JSON type of ``value`` with its article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def no_golden(file: Path) -> str:
    """Return the message of a golden set that is not there."""
    return f"No file {file}.{meant_beside(file)} Name your golden set with --rag-golden FILE."


def _text(file: Path) -> str:
    if not file.is_file():
        raise DataError(no_golden(file))
    try:
        content = file.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}.") from error


def _json_items(file: Path, text: str) -> Iterator[RawEntry]:
    items = _json(file, text) if text.strip() else []
    if not isinstance(items, list):
        raise DataError(f"{file}: expected a list of entries, found {kind(items)}. Write {EXAMPLE_ENTRY}.")
    for position, item in enumerate(items, 1):
        yield RawEntry(position, f"{file}: {_name(position, item)}", item)


def _json(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}."
        raise DataError(f"{what} A golden set is one list: {EXAMPLE_ENTRY}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{file}: no JSON that can be read: {error}. A golden set is one list: {EXAMPLE_ENTRY}."
        ) from error


def _csv_rows(file: Path, text: str) -> Iterator[RawEntry]:
    lines = _csv_lines(file, text)
    first = next(lines, None)
    header = _header(file, *first) if first else []
    for position, (line, row) in enumerate(lines, 1):
        value = {name: cell for name, cell in zip(header, row, strict=False) if name in GOLDEN_COLUMNS or cell.strip()}
        misfit = f"{len(row)} cells under a header of {len(header)}. Quote cells that hold commas."
        where = f"{file}:{line}: {_name(position, value)}"
        yield RawEntry(position, where, value, "" if len(row) == len(header) else misfit)


def _csv_lines(file: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the number of its first line."""
    # newline="" keeps the line ends inside quotes.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        advice = "Put cells that hold commas in quotes, and double the quotes inside."
        raise DataError(f"{file}:{line}: no CSV: {error}. {advice}") from error


def _header(file: Path, line: int, row: list[str]) -> list[str]:
    header = [cell.strip() for cell in row]
    if set(GOLDEN_COLUMNS) - set(header) or len(set(header)) < len(header):
        found = f"expected the header {','.join(GOLDEN_COLUMNS)}, found {','.join(header):.80}"
        raise DataError(f"{file}:{line}: {found}. Columns are separated by commas, and each has its own name.")
    return header


def _name(position: int, value: Any) -> str:
    query = value.get("query") if isinstance(value, dict) else None
    start = " ".join(query.split()) if isinstance(query, str) else ""
    short = start if len(start) <= 40 else f"{start[:40].rstrip()}…"
    return f"entry {position} ({short!r})" if short else f"entry {position}"


# Reader of a golden set: JSON, CSV, or questions as JSONL. One error reports all problems with their places.

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]+$", max_length=120)]

_REMEDIES = {
    "missing": "is missing. Add it.",
    "string_too_short": "is empty. Write it, or remove the entry.",
    "string_type": "must be a string, found {found}. Put it in quotes.",
    "string_pattern_mismatch": "becomes a test id: letters, digits and _ . - only. Rename it.",
    "tuple_type": "must be a string or a list of strings, found {found}.",
    "dict_type": "must be an object, found {found}.",
    "model_type": "must be an object with query, expected_document_id and justification, found {found}.",
}


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """A query and the ids that should be found for it.

    ``expected`` names pages (``a.md``), headings (``a.md#return-window``) or chunks (``a.md#chunk_3``). ``metadata``
    are the slices: all other fields of the file, e.g. ``query_type``. ``place`` is where it stands, and ``said_by`` the
    field of the file that has ``expected``: both are for messages.
    """

    entry_id: str
    query: str
    expected: tuple[str, ...]
    justification: str
    evidence: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    place: str = field(default="", compare=False, repr=False)
    said_by: str = field(default="expected_document_id", compare=False, repr=False)


class GoldenLine(BaseModel):
    """One entry of the file. All other fields are slices."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")
    id: _Id | None = None
    query: _Text
    expected_document_id: tuple[Annotated[_Text, AfterValidator(composed)], ...]
    justification: _Text
    evidence: tuple[_Text, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("expected_document_id", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        """Accept one id or a list of ids. An empty list is refused, as is an empty id."""
        return (value or "",) if isinstance(value, str) or value == [] else value

    @field_validator("evidence", mode="before")
    @classmethod
    def _quotes(cls, value: Any) -> Any:
        """Accept a quote, an object with ``filename`` and ``quote``, a list of these, and null."""
        if value is None:
            return ()
        quotes = value if isinstance(value, list) else [value]
        return tuple(each.get("quote", each) if isinstance(each, dict) else each for each in quotes)

    def entry(self, position: int, place: str = "") -> GoldenEntry:
        """Return the line as an entry. Without an id in the file, its position is its id."""
        name = self.id or f"g{position:03}"
        expected = tuple(dict.fromkeys(self.expected_document_id))
        slices = labelled(self.query, {**self.metadata, **(self.model_extra or {})})
        return GoldenEntry(name, self.query, expected, self.justification, self.evidence, slices, place)


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """The entries of a file, and the ids of its answerable questions without a page: nothing is looked up for them."""

    entries: list[GoldenEntry]
    without_page: tuple[str, ...] = ()


def read_golden(file: Path, kb_dir: Path | None = None) -> list[GoldenEntry]:
    """Return the entries of ``read_golden_set``."""
    return read_golden_set(file, kb_dir).entries


def read_golden_set(file: Path, kb_dir: Path | None = None) -> GoldenSet:
    """Read and validate a golden set in JSON or CSV. Of a JSONL file of questions, the entries are those with a page.

    Args:
        file: the golden set.
        kb_dir: the pages that entries name must be in it. Their headings and chunks are looked up by ``resolve``.

    Raises:
        DataError: the file is missing, empty or malformed; lists every problem with its entry and what to do.
    """
    if file.suffix.lower() == ".jsonl":
        return _of_questions(file, kb_dir)
    raws = raw_entries(file)
    lines = [(raw, _parsed(raw)) for raw in raws]
    problems = [f"{raw.where}: {each}" for raw, line in lines if isinstance(line, list) for each in line]
    entries = [(raw, line.entry(raw.position, raw.where)) for raw, line in lines if isinstance(line, GoldenLine)]
    problems += [*_duplicates(entries), *_missing_pages([entry for _, entry in entries], kb_dir)]
    if problems:
        raise DataError("\n".join(problems))
    return GoldenSet([entry for _, entry in entries])


def _missing_pages(entries: Sequence[GoldenEntry], kb_dir: Path | None) -> list[str]:
    pages = None if kb_dir is None else Pages(kb_dir, parts=True)
    return [
        f"{entry.place}: {pages.no_page_said(entry.said_by, name)}"
        for entry in entries
        for name in entry.expected
        if pages is not None and name not in pages
    ]


def _of_questions(file: Path, kb_dir: Path | None) -> GoldenSet:
    """Return an entry for each question that has pages with its answer. Other questions have nothing to find."""
    if not file.is_file():
        raise DataError(no_golden(file))
    read = read_numbered(file, kb_dir, parts=True)
    entries = [
        _entry_of(case, f"{file}:{number}: {case.query.query_id}")
        for number, case in read
        if case.context_reference and not case.scenario
    ]
    if not entries:
        raise DataError(f"{file} holds no question with a context_reference: name the page that should be found.")
    bare = (case for _, case in read if case.answerable and not (case.context_reference or case.scenario))
    return GoldenSet(entries, tuple(case.query.query_id for case in bare))


def _entry_of(case: Case, place: str) -> GoldenEntry:
    quotes = tuple(each.quote for each in case.evidence)
    slices = {**case.metadata, "query_type": case.query_type}
    name, text, expected = case.query.query_id, case.query.text, case.context_reference
    return GoldenEntry(name, text, expected, case.ground_truth, quotes, slices, place, "context_reference")


def _parsed(raw: RawEntry) -> GoldenLine | list[str]:
    """Return the entry, or its fault."""
    if raw.problem:
        return [raw.problem]
    try:
        line = GoldenLine.model_validate(raw.value)
    except ValidationError as error:
        return [*map(_explained, error.errors()), *_misspelt(raw.value)]
    return _misspelt(raw.value) or line


def _explained(error: ErrorDetails) -> str:
    name = "".join(f"[{part}]" if isinstance(part, int) else part for part in error["loc"]).removesuffix("[0]")
    remedy = _REMEDIES.get(error["type"], f"{error['msg']}.")
    return f"{name} {remedy.format(found=kind(error['input']))}".lstrip()


def _misspelt(value: Any) -> list[str]:
    """Return the problem of a misspelt field. An unknown field is a slice, so ``evidnce`` would not be noticed."""
    known = list(GoldenLine.model_fields)
    names = set(value) - set(known) if isinstance(value, dict) else ()
    close = {name: get_close_matches(name, known, n=1, cutoff=0.85) for name in sorted(names)}
    return [f"unknown field {name!r}. Did you mean {best[0]!r}?" for name, best in close.items() if best]


def _duplicates(entries: Sequence[tuple[RawEntry, GoldenEntry]]) -> Iterator[str]:
    queries: dict[str, int] = {}
    names: dict[str, int] = {}
    for raw, entry in entries:
        asked = queries.setdefault(" ".join(entry.query.split()), raw.position)
        if asked != raw.position:
            yield f"{raw.where}: the query stands already in entry {asked}. Remove one: an entry may expect several."
        named = names.setdefault(entry.entry_id, raw.position)
        if named != raw.position:
            yield f"{raw.where}: the id {entry.entry_id!r} stands already in entry {named}. Rename one."


# Gold for one index: which chunks count as found. It is resolved from golden entries, so gold survives re-chunking.

_NEAREST = 3

_Heading = tuple[str, list[Chunk]]


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold of one query.

    ``level`` says whether ``ids`` are documents or chunks. A heading may lie in several chunks, and each of them finds
    it. So ``relevance`` is about the expected ids of the golden set, and ``ranked`` returns these ids. ``evidence`` are
    the chunks that contain a quote. The message of a failure shows them.
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
    return f"{where}: {entry.said_by} {expected!r} is not a page, heading or chunk of the documents. {meant}"


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
