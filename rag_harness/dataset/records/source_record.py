"""A record of a file: its values by name, and where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record.

    Attributes:
        where: its place, for messages: ``goldens.csv:4``, ``part.parquet, row 7``.
        values: its values by column or key. What is missing is None.
    """

    where: str
    values: Mapping[str, Any]


def given(value: Any) -> Any:
    """Return a value; None for NaN, which pandas writes for what is missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_text(value: Any) -> str:
    """Return a value as one text without white space at its ends; empty for None, NaN, lists and objects."""
    known = given(value)
    if known is None or isinstance(known, (list, tuple, dict)):
        return ""
    return str(known).strip()
