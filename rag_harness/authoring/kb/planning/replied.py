"""Reads categories or titles from a model's reply, or returns the fault for asking again."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.kb.planning.told_to_plan import MOST_CATEGORIES, Outline
from rag_harness.dataset.slugs import slug
from rag_harness.models.replies import json_of
from rag_harness.models.until_right import Fault

LONGEST_PLAN_REPLY = 40_000
"""How many characters of a reply are read."""
SHAPE = "it is not the JSON object that was asked for. Reply with that object, and nothing else"
_TITLE = 120
"""The most characters of a title."""
_FILENAME = 200
"""The most bytes of an id; file systems allow 255."""
_YEAR = re.compile(r"(?:19|20)\d\d\W*\Z")
_T = TypeVar("_T", bound=BaseModel)


class ReplyPart(BaseModel):
    """A part of a reply. A number in place of a text is read as its digits."""

    model_config: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)


class _Outline(ReplyPart):
    title: str
    categories: list[str]


class _Titles(ReplyPart):
    titles: list[str]


def outline_of(reply: str) -> Outline | Fault:
    """Return name and categories."""
    read = read_as(_Outline, reply)
    if read is None:
        return Fault(SHAPE)
    categories = tuple(dict.fromkeys(squeeze(each) for each in read.categories if _is_title(each)))
    if not categories or not _is_title(read.title):
        return Fault(f"title or categories are empty, or longer than {_TITLE} characters")
    return Outline(squeeze(read.title), categories[: 2 * MOST_CATEGORIES])


def titles_of(reply: str, count: int, known: Collection[str]) -> list[str] | Fault:
    """Return new titles, at most ``count``. Half of the reply's titles must be new; ``known`` are ids of pages."""
    read = read_as(_Titles, reply)
    if read is None:
        return Fault(SHAPE)
    new: dict[str, str] = {}
    for title in map(squeeze, read.titles):
        if _is_title(title) and not _YEAR.search(title) and page_id(title) not in known:
            new.setdefault(page_id(title), title)
    if 2 * len(new) < count:
        what = f"{len(new)} of {count} titles are new, of 1 to {_TITLE} characters, and end with no year"
        return Fault(f"{what}. Write {count} that are")
    return list(new.values())[:count]


def page_id(title: str) -> str:
    """Return the id of a page. It is valid as a file name, also with a year and a suffix after it."""
    return slug(title).encode()[:_FILENAME].decode(errors="ignore").strip("-")


def read_as(shape: type[_T], reply: str) -> _T | None:
    """Return the contents of a reply; None if it has another form."""
    try:
        return shape.model_validate(json_of(reply[:LONGEST_PLAN_REPLY]))
    except ValidationError:
        return None


def _is_title(text: str) -> bool:
    return 0 < len(squeeze(text)) <= _TITLE and bool(page_id(squeeze(text)))
