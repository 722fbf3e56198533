"""``structure.json``: the plan of a knowledge base. ``planning`` writes it, and other rooms read it."""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag_harness.authoring.kb.page import At

PLAN_FILE = "structure.json"
PAGE_KINDS = ("tabular", "logical", "mixed")
FACT_KINDS = ("amount", "date", "limit", "condition")
_NAME = re.compile(r'"(?:id|filename)"\s*:\s*("(?:[^"\\]|\\.)*")')


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)


class PlannedFact(_Part):
    """What a page must state, word for word.

    ``statement`` is one sentence with ``subject`` and ``value`` in it; ``kind`` is one of ``FACT_KINDS``. Two pages of
    a version pair give the same fact the same id.
    """

    id: str = Field(min_length=1)
    kind: str
    subject: str = Field(min_length=1)
    value: str = Field(min_length=1)
    statement: str = Field(min_length=1)


class PlannedTable(_Part):
    """A table that a page must show: its header, and rows with as many cells."""

    title: str = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=2)
    rows: tuple[tuple[str, ...], ...] = Field(min_length=1)


class PlanPage(_Part):
    """One planned page. Only the filename is needed; a field that is None is not checked.

    ``facts``, ``tables`` and ``steps`` (of a procedure, in order) are the material for writing the page. If ``mermaid``
    is true, the steps are also drawn. ``links_to`` has ids.
    """

    filename: str
    id: str = ""
    title: str | None = None
    category: str | None = None
    kind: str | None = None
    links_to: tuple[str, ...] | None = None
    version: str | None = None
    status: str | None = None
    effective_date: str | None = None
    supersedes: str | None = None
    mermaid: bool | None = None
    facts: tuple[PlannedFact, ...] | None = None
    tables: tuple[PlannedTable, ...] | None = None
    steps: tuple[str, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _id_from_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and not value.get("id") and isinstance(value.get("filename"), str):
            return {**value, "id": value["filename"].removesuffix(".md")}
        return value


class Conflict(_Part):
    """Two statements about the same fact, word for word. ``fact`` is a planned fact's id, or names the subject."""

    fact: str = ""
    outdated_statement: str = Field(min_length=1)
    current_statement: str = Field(min_length=1)


class VersionPair(_Part):
    """An outdated page and the page that replaced it, by id."""

    outdated: str
    current: str
    conflicts: tuple[Conflict, ...] = ()


class Plan(_Part):
    """The plan. ``rot`` is the share of pages that should be in version pairs.

    ``title`` and ``domain`` say what it is about; ``planned_by`` (``embedded``, or a model) and ``seed`` say who made
    it.
    """

    title: str | None = None
    domain: str | None = None
    planned_by: str | None = None
    seed: int | None = None
    pages: tuple[PlanPage, ...]
    num_pages: int | None = None
    categories: tuple[str, ...] | None = None
    version_pairs: tuple[VersionPair, ...] | None = None
    queries: dict[str, int] | None = None
    rot: float = 0.1
    lines: dict[str, list[int]] = Field(default_factory=dict, exclude=True)

    def line_of(self, name: str, nth: int = 0) -> int | None:
        """Return the line of the ``nth`` entry with this id or filename."""
        lines = self.lines.get(name, [])
        return lines[min(nth, len(lines) - 1)] if lines else None

    def page(self, reference: str) -> PlanPage | None:
        """Return a page by its id or its filename."""
        return self._index.get(reference)

    @cached_property
    def _index(self) -> dict[str, PlanPage]:
        return {page.filename: page for page in self.pages} | {page.id: page for page in self.pages}


def read_plan(file: Path) -> tuple[Plan | None, list[At]]:
    """Return the plan and its problems. A missing file is no plan; an unreadable one is a problem with its line."""
    if not file.is_file():
        return None, []
    try:
        text = file.read_text(encoding="utf-8-sig")
        plan = Plan.model_validate({**_object(text), "lines": _lines(text)})
        return plan, []
    except json.JSONDecodeError as error:
        return None, [At(error.lineno, f"invalid JSON at column {error.colno}: {error.msg}. Mend the file.")]
    except ValidationError as error:
        return None, [At(1, f"{'.'.join(map(str, each['loc']))}: {each['msg']}. Mend it.") for each in error.errors()]
    except RecursionError:
        return None, [At(1, "lists stand in lists, too deep for a plan. Mend the file.")]
    except ValueError as error:
        return None, [At(1, f"{error}. Mend the file, or remove it: a plan is optional.")]


def version_order(value: str) -> tuple[list[int], str]:
    """Order ``10`` after ``9``, ``v2`` after ``v1`` and dates as dates; anything else as text."""
    parts = value.lstrip("v").replace("-", ".").split(".")
    return ([int(part) for part in parts], "") if all(part.isdecimal() for part in parts) else ([], value)


def _object(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if "\\u" in text and not _can_be_written(data):
        raise ValueError("it has half a character (an escape \\ud800 to \\udfff alone), which no file can hold")
    if not isinstance(data, dict):
        raise ValueError(f"expected an object with a list 'pages', found a {type(data).__name__}")
    return data


def _can_be_written(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for match in _NAME.finditer(line):
            found.setdefault(json.loads(match[1]), []).append(number)
    return found
