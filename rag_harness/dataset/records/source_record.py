"""A record of a file: its values by name, and where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_YES = frozenset({"true", "t", "yes", "y", "1", "1.0", "answerable", "partial", "conversational"})
_NO = frozenset({"false", "f", "no", "n", "0", "0.0", "unanswerable"})


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record.

    Attributes:
        where: its place, for messages: ``goldens.csv:4``, ``part.parquet, row 7``.
        values: its values by column or key. What is missing is None.
        number: its line in a CSV file, its row in a Parquet file, from 1; 0 elsewhere.
        beside: of the first record, what else stands in the object that holds the list of records.
    """

    where: str
    values: Mapping[str, Any]
    number: int = 0
    beside: Sequence[str] = ()


def given(value: Any) -> Any:
    """Return a value; None for NaN, which pandas writes for what is missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_text(value: Any) -> str:
    """Return a value as one text without white space at its ends; empty for None, NaN, lists and objects."""
    known = given(value)
    if known is None or isinstance(known, (list, tuple, dict)):
        return ""
    return str(known).strip()


def said_flag(value: Any) -> bool | None:
    """Return what a value says: true, false, or None where it says neither. The first item of a list counts."""
    first = value[0] if isinstance(value, list) and value else value
    word = plain_text(first).casefold()
    return True if word in _YES else False if word in _NO else None
