"""The plan of a knowledge base.

Structure.json, the request for a plan, the brief of each page, and superseded facts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag_harness.authoring.kb.page import TextAtLine
from rag_harness.core.errors import DataError
from rag_harness.core.json_text import read_json
from rag_harness.core.text.comparison import quotable
from rag_harness.data.queries import refuse_other_form
from rag_harness.data.query_lines import rows_of_line, turns_of_line, with_turns

# ``structure.json``: the plan of a knowledge base. Both planners write it; other packages read it.

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


def read_plan(file: Path) -> tuple[Plan | None, list[TextAtLine]]:
    """Return the plan and its problems. A missing file gives no plan; an unreadable one is a problem with its line."""
    if not file.is_file():
        return None, []
    try:
        text = file.read_text(encoding="utf-8-sig")
        plan = Plan.model_validate({**_object(text), "lines": _lines(text)})
        return plan, []
    except json.JSONDecodeError as error:
        return None, [TextAtLine(error.lineno, f"invalid JSON at column {error.colno}: {error.msg}. Mend the file.")]
    except ValidationError as error:
        return None, [
            TextAtLine(1, f"{'.'.join(map(str, each['loc']))}: {each['msg']}. Mend it.") for each in error.errors()
        ]
    except RecursionError:
        return None, [TextAtLine(1, "lists are in lists, too deep for a plan. Mend the file.")]
    except ValueError as error:
        return None, [TextAtLine(1, f"{error}. Mend the file, or remove it: a plan is optional.")]


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


# A plan as JSON text. Each fact, row and list of links has its own line, for readers and for git.

_INDENT = "  "
_HEAD = ("title", "domain", "planned_by", "seed", "num_pages", "rot", "categories")


def plan_text(plan: Plan) -> str:
    """Return ``structure.json``; unknown fields are left out."""
    told = plan.model_dump(exclude_none=True)
    head = {key: told.pop(key) for key in _HEAD if key in told}
    pages, pairs = told.pop("pages"), told.pop("version_pairs", ())
    return "\n".join(_json_lines({**head, **told, "pages": pages, "version_pairs": pairs}, "")) + "\n"


def _json_lines(value: Any, indent: str, before: str = "", after: str = "") -> Iterator[str]:
    """Yield a value as JSON: on one line if it contains no other list or object."""
    if not _broken(value):
        yield f"{indent}{before}{_json(value)}{after}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{before}{opening}"
    entries = _entries(value)
    for number, (key, each) in enumerate(entries, 1):
        yield from _json_lines(each, indent + _INDENT, key, "," if number < len(entries) else "")
    yield f"{indent}{closing}{after}"


def _broken(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(isinstance(each, (dict, list, tuple)) for each in inner)


def _entries(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"{_json(key)}: ", each) for key, each in value.items()]
    return [("", each) for each in value]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


MOST_PAGES = 10_000
USUAL_KIND_SHARES = {"tabular": 0.3, "logical": 0.4, "mixed": 0.3}
_SLACK = 0.005
"""Shares of thirds are written as 0.33 and still count as a sum of 1."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The wish for a plan.

    Attributes:
        domain: what the pages are about, in words.
        pages: how many pages, outdated ones included.
        rot: share of the pages that are in version pairs, 0 to 1.
        shares: share of the pages of each kind; they sum to 1.
        seed: another one draws other pages.
        least: fewest pages of a plan; it depends on who writes it.
    """

    domain: str
    pages: int
    rot: float = 0.1
    shares: Mapping[str, float] = field(default_factory=lambda: USUAL_KIND_SHARES)
    seed: int = 0
    least: int = 1

    @property
    def pairs(self) -> int:
        """The number of version pairs closest to the share; at least one if ``rot`` is above 0."""
        return min(self.pages // 2, max(1, round(self.rot * self.pages / 2))) if self.rot else 0

    def check(self) -> None:
        """Raise an error if the wish cannot be planned.

        Raises:
            DataError: the message lists all faults, each with what to do.
        """
        if problems := list(self._problems()):
            raise DataError("\n".join(problems))

    def _problems(self) -> Iterator[str]:
        if not self.domain.strip():
            yield "the domain is empty. Say what the pages are about: --domain 'retail support'"
        if not self.least <= self.pages <= MOST_PAGES:
            yield f"{self.pages} pages are asked for; a plan has {self.least} to {MOST_PAGES:,}. Set --pages."
        if not 0 <= self.rot <= 1:
            yield f"rot is {self.rot:g}; it is the share of pages in version pairs, 0 to 1. Set --rot."
        elif self.rot and self.pages == 1:
            yield "1 page bears no version pair, which has 2. Set --rot 0, or ask for more pages."
        yield from self._wrong_shares()

    def _wrong_shares(self) -> Iterator[str]:
        known = ", ".join(PAGE_KINDS)
        for kind in sorted(self.shares.keys() - set(PAGE_KINDS)):
            yield f"kind {kind!r} is unknown; known are {known}. Use one of them in --kinds."
        told = ", ".join(f"{kind}={share:g}" for kind, share in self.shares.items())
        if any(not 0 <= share <= 1 for share in self.shares.values()):
            yield f"shares of kinds are 0 to 1 each; found {told}. Mend --kinds."
        elif not math.isclose(total := sum(self.shares.values()), 1, abs_tol=_SLACK + 1e-9):
            yield f"the shares of kinds sum to {total:g}, not to 1: {told}. Mend --kinds."


_ABOUT = 3
"""How many subjects of a page another page is told about."""


@dataclass(frozen=True)
class Brief:
    """A page with the pages of its links. ``older`` and ``newer`` are its other versions, if planned."""

    page: PlanPage
    goals: tuple[PlanPage, ...] = ()
    older: PlanPage | None = None
    newer: PlanPage | None = None

    @cached_property
    def foreign(self) -> tuple[PlannedFact, ...]:
        """Facts that another version of the page states differently."""
        own = {fact.statement for fact in self.page.facts or ()}
        others = chain.from_iterable((other.facts or ()) for other in (self.older, self.newer) if other)
        return tuple(fact for fact in others if fact.statement not in own)

    def told(self) -> dict[str, Any]:
        """Return the page and short descriptions of the pages that it links to, as JSON: all that a writer gets."""
        return {
            **self.page.model_dump(mode="json", exclude_none=True, exclude={"id", "links_to"}),
            "links": [{**about_page(goal), "is": self.relation(goal)} for goal in self.goals],
        }

    def relation(self, goal: PlanPage) -> str:
        """Return how ``goal`` relates to the page: older or newer version, same category, or another category."""
        versions = {other.filename: name for name, other in self._versions() if other}
        if goal.filename in versions:
            return versions[goal.filename]
        return "same category" if goal.category == self.page.category else "other category"

    def known(self) -> Iterator[str]:
        """Yield every text whose figures may stand on the page."""
        others = (other for _, other in self._versions() if other)
        told = [self.page.model_dump(mode="json", exclude_none=True), *map(about_page, (*self.goals, *others))]
        dates = [other.effective_date or "" for _, other in self._versions() if other]
        subjects = (fact.subject for goal in self.goals for fact in goal.facts or ())
        return chain(_texts(told), dates, subjects)

    def _versions(self) -> tuple[tuple[str, PlanPage | None], ...]:
        return ("older version", self.older), ("newer version", self.newer)


def about_page(page: PlanPage) -> dict[str, Any]:
    """Return what other pages may say about a page: its title and its subjects."""
    subjects = list(dict.fromkeys(fact.subject for fact in page.facts or ()))[:_ABOUT]
    return {
        "title": page.title or page.id,
        "filename": page.filename,
        "category": page.category,
        "about": subjects,
        "tables": [table.title for table in page.tables or ()],
        "steps": bool(page.steps),
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))


def briefs(plan: Plan) -> Iterator[Brief]:
    """Yield the brief of every page, in the order of the plan. Links to unplanned pages are left out."""
    older, newer = {}, {}
    for pair in plan.version_pairs or ():
        before, now = plan.page(pair.outdated), plan.page(pair.current)
        if before and now:
            older[now.id], newer[before.id] = before, now
    for page in plan.pages:
        goals = (plan.page(reference) for reference in dict.fromkeys(page.links_to or ()))
        known = tuple(goal for goal in goals if goal and goal.filename != page.filename)
        yield Brief(page, known, older.get(page.id), newer.get(page.id))


# Finds queries about facts that a superseded page states differently: metadata for ``stale_answer``.


class SupersededQueries(NamedTuple):
    """The lines of a query file, as JSON; how many queries have superseded statements, and how many there are."""

    lines: tuple[str, ...]
    marked: int
    queries: int


def mark_superseded(folder: Path, queries: Path | None = None) -> SupersededQueries:
    """Return the queries, with ``superseded`` and ``version_pair`` in the metadata of affected ones.

    A query is affected if one of its quotes from the current page contains the current statement of a conflict, or is
    part of it; white space and bold do not matter. Old values of those two keys are replaced; everything else stays.

    Raises:
        DataError: a plan with version pairs is missing, or a line is not a query; the message says what to do.
    """
    facts = list(_facts(_plan(folder)))
    file = queries or folder / "queries.jsonl"
    marked = [_marked_line(line, facts) for line in _queries(file)]
    lines = tuple(json.dumps(line, ensure_ascii=False) for line, _ in marked)
    found = [is_concerned for _, questions in marked for is_concerned in questions]
    return SupersededQueries(lines, sum(found), len(found))


class _Fact(NamedTuple):
    outdated: str
    current: str
    conflict: Conflict


def _plan(folder: Path) -> Plan:
    plan, problems = read_plan(folder / PLAN_FILE)
    if plan is None or not plan.version_pairs:
        why = problems[0].text if problems else "it has no version_pairs"
        raise DataError(f"{folder / PLAN_FILE} names no page that has replaced another: {why}")
    return plan


def _facts(plan: Plan) -> Iterator[_Fact]:
    for pair in plan.version_pairs or ():
        current = plan.page(pair.current)
        for conflict in pair.conflicts:
            yield _Fact(pair.outdated, current.filename if current else pair.current, conflict)


def _queries(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Name the queries with --queries.") from error
    refuse_other_form(file, text)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _query(line, f"{file}:{number}")


def _query(line: str, where: str) -> dict[str, Any]:
    try:
        query = read_json(line)
    except ValueError as error:
        raise DataError(f"{where}: no JSON: {error}. Mend the line.") from error
    if not isinstance(query, dict) or not isinstance(query.get("metadata", {}), dict):
        raise DataError(f"{where}: no query: an object is expected, and one in its metadata. Mend the line.")
    if "turns" in query and (wrong := turns_of_line(query)[1]):
        raise DataError(f"{where}: no conversation: {wrong[0]}. Mend the line.")
    return query


def _marked_line(line: dict[str, Any], facts: list[_Fact]) -> tuple[dict[str, Any], list[bool]]:
    """Return a line with its question, or the turns of its conversation, marked; and which of them are concerned."""
    if "turns" not in line:
        query, is_concerned = _marked(line, facts)
        return query, [is_concerned]
    turns = [_marked(turn, facts) for turn in rows_of_line(line)]
    return with_turns(line, [turn for turn, _ in turns]), [is_concerned for _, is_concerned in turns]


def _marked(query: dict[str, Any], facts: list[_Fact]) -> tuple[dict[str, Any], bool]:
    concerned = [fact for fact in facts if any(_carries(quote, fact) for quote in query.get("evidence", ()))]
    kept = {key: value for key, value in query.get("metadata", {}).items() if key not in ("superseded", "version_pair")}
    if not concerned:
        return ({**query, "metadata": kept} if "metadata" in query else query), False
    statements = ("outdated_statement", "current_statement")
    superseded = [{name: getattr(fact.conflict, name) for name in statements} for fact in concerned]
    metadata = {**kept, "version_pair": concerned[0].outdated, "superseded": superseded}
    return {**query, "metadata": metadata}, True


def _carries(quote: Mapping[str, Any], fact: _Fact) -> bool:
    if quote.get("filename") != fact.current:
        return False
    said, stated = quotable(str(quote.get("quote", ""))), quotable(fact.conflict.current_statement)
    return bool(said) and (stated in said or said in stated)
