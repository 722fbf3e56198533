"""Reader of ``queries.jsonl``: validated cases. One error reports all problems with file and line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from rag_harness.dataset.ingest import page_files
from rag_harness.dataset.placeholder import labelled
from rag_harness.errors import DataError
from rag_harness.types import NEGATIVE, Case, Evidence, Query

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# Ids become test ids and file names: no white space, no brackets, no characters with a meaning in a shell or pytest.
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]+$", max_length=120)]


class EvidenceLine(BaseModel):
    """One quote of a query line."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    filename: _Text
    quote: _Text


class QueryLine(BaseModel):
    """One line of ``queries.jsonl``."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")
    query_id: _Id
    query_type: _Text = "direct"
    query: _Text
    inputs: dict[str, Any] = Field(default_factory=dict)
    answerable: bool | None = None
    ground_truth: str = ""
    context_reference: tuple[_Text, ...] = ()
    qrels: dict[_Text, Annotated[int, Field(strict=True)]] = Field(default_factory=dict)
    evidence: tuple[EvidenceLine, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("context_reference", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        """Accept a single file name, null or a list. All three occur in practice."""
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value

    @field_validator("metadata", "inputs")
    @classmethod
    def _strict_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Refuse NaN and Infinity. The parser accepts them, but a row with them would be no JSON."""
        json.dumps(value, allow_nan=False)
        return value

    def case(self) -> Case:
        """Return the line as a case."""
        evidence = tuple(Evidence(each.filename, each.quote) for each in self.evidence)
        answerable = self.query_type != NEGATIVE if self.answerable is None else self.answerable
        return Case(
            Query(self.query_id, self.query, self.inputs),
            self.query_type,
            self.ground_truth,
            dict.fromkeys(self.context_reference, 1) | self.qrels,
            evidence,
            answerable,
            labelled(self.query, self.metadata),
        )


def read_queries(file: Path, kb_dir: Path | None = None) -> list[Case]:
    """Read and validate ``file``. With ``kb_dir``, references must be ids of pages in it.

    Raises:
        DataError: the file is missing or empty, or lines are malformed; lists every problem as ``file:line: …``.
    """
    pages = [page.relative_to(kb_dir).as_posix() for page in page_files(kb_dir)] if kb_dir else []
    problems: list[str] = []
    cases: list[Case] = []
    first_line: dict[str, int] = {}
    for number, text in _lines(file):
        line = _parse(text, f"{file}:{number}", problems)
        if line is None:
            continue
        if line.query_id in first_line:
            seen = first_line[line.query_id]
            problems.append(f"{file}:{number}: query_id {line.query_id!r} stands already on line {seen}.")
        first_line.setdefault(line.query_id, number)
        problems += _missing_pages(line, f"{file}:{number}", kb_dir, pages)
        cases.append(line.case())
    if problems:
        raise DataError("\n".join(problems))
    if not cases:
        raise DataError(f"{file} holds no query: each line is an object with query_id, query_type and query.")
    return cases


def _lines(file: Path) -> Sequence[tuple[int, str]]:
    if not file.is_file():
        raise DataError(
            f"No file {file}. Name your questions with --rag-queries FILE; to have some drafted for documents: "
            f"rag-harness kb queries DIR -o {file.name}"
        )
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    # split("\n") and not splitlines(): U+2028 inside a JSON string does not end a line.
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _parse(text: str, where: str, problems: list[str]) -> QueryLine | None:
    try:
        return QueryLine.model_validate_json(text)
    except ValidationError as error:
        for each in error.errors():
            field = ".".join(str(part) for part in each["loc"]) or "line"
            problems.append(f"{where}: {field}: {each['msg']}")
        return None


def _missing_pages(line: QueryLine, where: str, kb_dir: Path | None, pages: Sequence[str]) -> list[str]:
    if kb_dir is None:
        return []
    named = dict.fromkeys([*line.context_reference, *line.qrels, *(each.filename for each in line.evidence)])
    return [
        f"{where}: {line.query_id} refers to {name!r}, which is no page of {kb_dir}.{_meant(name, pages)}"
        for name in named
        if name not in pages
    ]


def _meant(name: str, pages: Sequence[str]) -> str:
    close = get_close_matches(name, pages, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def distribution(cases: Sequence[Case]) -> dict[str, int]:
    """Count the cases of each query type."""
    return dict(Counter(case.query_type for case in cases))
