"""Reads a judge's reply. Missing or malformed parts get a named reason; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rag_harness.models.replies import json_of


class Missing(Enum):
    """Reasons for a missing verdict. Stores of verdicts keep the position in this list: add new ones at the end."""

    UNREADABLE = "the judge's reply is not the JSON that was asked for"
    LEFT_OUT = "the judge gave no verdict for it"
    TWICE = "the judge gave two verdicts for it"
    WORD = "the judge gave a verdict that it was not offered"
    NUMBERS = "the judge's numbers do not fit what it was asked"
    PASSAGE = "the judge named a passage that is not there"


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A verdict, 1 or 0, with the number of its supporting passage; or the reason why there is none."""

    value: float | None = None
    passage: int | None = None
    missing: Missing | None = None


def read_verdicts(text: str, count: int, words: Mapping[str, float], passages: int = 0) -> list[PassageVerdict]:
    """Return the verdicts of a reply on items 1 to ``count``, in their order.

    Args:
        text: the reply.
        count: number of items in the question.
        words: the offered verdicts, with their values.
        passages: number of passages; 0 where verdicts name none.
    """
    found = entries_of(text, count)
    if isinstance(found, Missing):
        return [PassageVerdict(missing=found)] * count
    return [verdict_of(entries, words, passages) for entries in found]


def entries_of(text: str, count: int) -> list[list[Mapping[str, Any]]] | Missing:
    """Return what a reply says of each of the items 1 to ``count``; or why nothing of it can be read."""
    entries = objects_of(json_of(text), "verdicts")
    if entries is None:
        return Missing.UNREADABLE
    by_number: dict[int | None, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_number.setdefault(whole_number(entry.get("index")), []).append(entry)
    if not by_number.keys() <= set(range(1, count + 1)):
        # The reply may count from 0, for example: then no other number can be trusted either.
        return Missing.NUMBERS
    return [by_number.get(number, []) for number in range(1, count + 1)]


def objects_of(found: Mapping[str, Any] | None, name: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the list of objects under ``name``; None where there is none, or where an item is no object."""
    listed = found.get(name) if found is not None else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        return None
    return listed


def verdict_of(entries: Sequence[Mapping[str, Any]], words: Mapping[str, float], passages: int) -> PassageVerdict:
    """Return the verdict of the entries on one item, of which there should be one."""
    if len(entries) != 1:
        return PassageVerdict(missing=Missing.TWICE if entries else Missing.LEFT_OUT)
    value = offered(entries[0].get("verdict"), words)
    if value is None:
        return PassageVerdict(missing=Missing.WORD)
    passage = whole_number(entries[0].get("passage")) or 0
    if not value or not passage:
        return PassageVerdict(value)
    return PassageVerdict(value, passage) if 1 <= passage <= passages else PassageVerdict(missing=Missing.PASSAGE)


def offered(said: object, words: Mapping[str, float]) -> float | None:
    """Return the value of a word that was offered; None for anything else."""
    return words.get(said.strip().lower()) if isinstance(said, str) else None


def whole_number(said: object) -> int | None:
    """Return an integer, also where it was written as text; None for anything else."""
    if isinstance(said, str) and said.strip().isdecimal() and len(said) <= 9:
        return int(said)
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        return None
    return int(said) if abs(said) < 1e9 and said == int(said) else None


def words_of(said: object) -> str:
    """Return a text; empty for anything else, or a blank text. Lone surrogates are replaced: no file can hold them."""
    if not isinstance(said, str) or not said.strip():
        return ""
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
