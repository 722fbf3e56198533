"""Reader of a golden set: JSON, CSV, or questions as JSONL. One error reports all problems with their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from rag_harness.dataset.golden_file import RawEntry, kind, no_golden, raw_entries
from rag_harness.dataset.pages_named import Pages
from rag_harness.dataset.placeholder import labelled
from rag_harness.dataset.queries import read_numbered
from rag_harness.errors import DataError
from rag_harness.types import Case, Metadata
from rag_harness.words.comparison import composed

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
    """Return the entry, or what is wrong with it."""
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
    """Return the problem of a misspelt field. An unknown field is a slice, so nobody would notice ``evidnce``."""
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
