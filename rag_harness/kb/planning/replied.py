"""A model's reply -> categories, titles or a draft, or the fault that it is told of when it is asked again."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.dataset.slugs import slug
from rag_harness.kb.page import squeeze
from rag_harness.kb.plan import PlannedFact, PlannedTable, PlanPage
from rag_harness.kb.planning.checks import content_faults
from rag_harness.kb.planning.draft import Draft
from rag_harness.kb.planning.told_to_plan import LEAST_FACTS, MOST_CATEGORIES, MOST_FACTS, Outline, PageTask
from rag_harness.models.replies import json_of
from rag_harness.models.until_right import Fault

LONGEST = 40_000
"""Characters of a reply that are looked at."""
_SHAPE = "it is not the JSON object that was asked for. Reply with that object, and nothing else"
_TITLE = 120
"""Characters of a title at most."""
_FILENAME = 200
"""Bytes of an id at most; file systems take 255."""
_NAMED = 5
"""Faults of a page that the model is told of at once."""
_YEAR = re.compile(r"(?:19|20)\d\d\W*\Z")
_WORD = re.compile(r"\w{5,}")
T = TypeVar("T", bound=BaseModel)


class _Said(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class _Outline(_Said):
    title: str
    categories: list[str]


class _Titles(_Said):
    titles: list[str]


class _Fact(_Said):
    kind: str
    subject: str
    value: str
    statement: str


class _Table(_Said):
    title: str
    columns: list[str]
    rows: list[list[str]]


class _Older(_Said):
    fact: int
    value: str
    statement: str


class _Page(_Said):
    facts: list[_Fact]
    table: _Table | None = None
    steps: list[str] = []
    older: _Older | None = None


def outline_of(reply: str) -> Outline | Fault:
    """Return name and categories."""
    read = _read(_Outline, reply)
    if read is None:
        return Fault(_SHAPE)
    categories = tuple(dict.fromkeys(squeeze(each) for each in read.categories if _is_title(each)))
    if not categories or not _is_title(read.title):
        return Fault(f"title or categories are empty, or longer than {_TITLE} characters")
    return Outline(squeeze(read.title), categories[: 2 * MOST_CATEGORIES])


def titles_of(reply: str, count: int, known: Collection[str]) -> list[str] | Fault:
    """Return new titles, ``count`` at most; half of them have to be new. ``known`` are ids of pages."""
    read = _read(_Titles, reply)
    if read is None:
        return Fault(_SHAPE)
    new: dict[str, str] = {}
    for title in map(squeeze, read.titles):
        if _is_title(title) and not _YEAR.search(title) and page_id(title) not in known:
            new.setdefault(page_id(title), title)
    if 2 * len(new) < count:
        what = f"{len(new)} of {count} titles are new, of 1 to {_TITLE} characters, and end with no year"
        return Fault(f"{what}. Write {count} that are")
    return list(new.values())[:count]


def page_id(title: str) -> str:
    """Return the id of a page: what a file can be called, also with a year and a suffix behind it."""
    return slug(title).encode()[:_FILENAME].decode(errors="ignore").strip("-")


def draft_of(task: PageTask, reply: str) -> Draft | Fault:
    """Return the draft that a reply holds, or all that is wrong with it."""
    read = _read(_Page, reply)
    if read is None:
        return Fault(_SHAPE)
    try:
        draft = _drafted(task, read)
    except ValidationError as error:
        return Fault("; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_NAMED]))
    faults = _faults(task, draft, read.older)
    return Fault("; ".join(faults[:_NAMED])) if faults else draft


def _read(shape: type[T], reply: str) -> T | None:
    try:
        return shape.model_validate(json_of(reply[:LONGEST]))
    except ValidationError:
        return None


def _is_title(text: str) -> bool:
    return 0 < len(squeeze(text)) <= _TITLE and bool(page_id(squeeze(text)))


def _drafted(task: PageTask, read: _Page) -> Draft:
    own = page_id(task.title)
    facts = tuple(
        PlannedFact(id=f"{own}-f{number}", **{key: squeeze(text) for key, text in fact.model_dump().items()})
        for number, fact in enumerate(read.facts, 1)
    )
    tables = (PlannedTable.model_validate(read.table.model_dump()),) if read.table and task.kind != "logical" else ()
    steps = tuple(map(squeeze, read.steps)) if task.kind != "tabular" else ()
    about = (*_WORD.findall(task.title.casefold()), task.category)
    older = _older(facts, read.older) if task.versions else None
    return Draft(own, task.title, task.category, task.kind, about, facts, tables, steps, older)


def _older(facts: tuple[PlannedFact, ...], older: _Older | None) -> PlannedFact | None:
    if older is None or not 1 <= older.fact <= len(facts):
        return None
    said = {"value": squeeze(older.value), "statement": squeeze(older.statement)}
    return PlannedFact.model_validate({**facts[older.fact - 1].model_dump(), **said})


def _faults(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    held = PlanPage(filename="page.md", facts=draft.facts, tables=draft.tables, steps=draft.steps)
    faults = [_for_model(fault.text, draft.id) for fault in content_faults(held)]
    if not LEAST_FACTS <= len(draft.facts) <= MOST_FACTS:
        faults.append(f"there are {len(draft.facts)} facts; {LEAST_FACTS} to {MOST_FACTS} are asked for")
    if len({fact.statement for fact in draft.facts}) < len(draft.facts):
        faults.append("two facts have the same statement")
    if task.kind != "logical" and not draft.tables:
        faults.append("there is no table")
    if task.kind != "tabular" and not draft.steps:
        faults.append("there are no steps")
    return [*faults, *_faults_of_older(task, draft, older)]


def _faults_of_older(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    if not task.versions:
        return []
    if draft.older is None:
        found = "is missing" if older is None else f"names fact {older.fact}, there are {len(draft.facts)}"
        return [f'"older" {found}']
    if draft.older.statement in {fact.statement for fact in draft.facts}:
        return ['"older" states what the page still states']
    held = PlanPage(filename="page.md", facts=(draft.older,))
    return [f'"older": {_for_model(fault.text, draft.id)}' for fault in content_faults(held)]


def _for_model(text: str, own: str) -> str:
    """Name facts by their number: the model knows no ids."""
    return text.replace(f"fact {own}-f", "fact ")
