"""Domains for plans without a model: TOML files of things and topics, in ``domains``.

An axis is a kind of thing; the names of its things are combinations of parts. Each thing of an axis gets its topics. A
topic has facts (``kind: The <subject> is [value].``, with gaps that ``phrases`` fills), a table, and steps. A step that
begins with ``?`` may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

from rag_harness.errors import DataError
from rag_harness.settings.profiles import parsed_toml

_FACT = re.compile(r"(?P<kind>\w+): (?P<before>[^\[\]]*)\[(?P<value>[^\[\]]+)\](?P<after>[^\[\]]*)")


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """A fact with gaps. ``<`` and ``>`` enclose its subject, before or after the value."""

    kind: str
    before: str
    value: str
    after: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that each thing of an axis gets."""

    axis: str
    category: str
    title: str
    facts: tuple[FactTemplate, ...]
    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """A kind of thing: ``form`` has the names of its parts in braces; two lists of words are combined."""

    form: str
    parts: Mapping[str, tuple[str, ...]]

    @cached_property
    def size(self) -> int:
        """The number of things of this kind."""
        first, second = self.parts.values()
        return len(first) * len(second)


@dataclass(frozen=True, slots=True)
class Domain:
    """The material for plans."""

    name: str
    title: str
    axes: Mapping[str, Axis]
    topics: tuple[Topic, ...]


def domain_names() -> list[str]:
    """Return the names of the shipped domains."""
    return sorted(file.name[:-5].replace("-", " ") for file in _folder().iterdir() if file.name.endswith(".toml"))


@lru_cache(maxsize=4)
def read_domain(name: str) -> Domain:
    """Return the domain of that name; case, hyphens and blanks do not matter.

    Raises:
        DataError: there is no such domain; the message names the shipped ones.
    """
    plain = " ".join(name.casefold().replace("-", " ").split())
    if plain not in domain_names():
        known = ", ".join(repr(each) for each in domain_names())
        what = f"No domain {name!r} is shipped; there are {known}."
        raise DataError(f"{what} Name one of them, or have any other written by a model: --writer llm")
    text = (_folder() / f"{plain.replace(' ', '-')}.toml").read_text(encoding="utf-8")
    return _domain(plain, parsed_toml(text))


def _folder() -> Any:
    return files(__package__ or "") / "domains"


def _domain(name: str, read: Mapping[str, Any]) -> Domain:
    axes = {axis: Axis(told["form"], _parts(told)) for axis, told in read["axes"].items()}
    return Domain(name, read["title"], axes, tuple(_topic(each) for each in read["topics"]))


def _parts(told: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words) for name, words in told.items() if name != "form"}


def _topic(told: Mapping[str, Any]) -> Topic:
    return Topic(
        axis=told["axis"],
        category=told["category"],
        title=told["title"],
        facts=tuple(_fact(each) for each in told["facts"]),
        table=told["table"],
        columns=tuple(told["columns"]),
        rows=tuple(tuple(row) for row in told["rows"]),
        steps=tuple(told["steps"]),
    )


def _fact(text: str) -> FactTemplate:
    found = _FACT.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no fact: expected 'kind: The <subject> is [value].'")
    return FactTemplate(found["kind"], found["before"], found["value"], found["after"])
