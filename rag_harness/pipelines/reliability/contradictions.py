"""Stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two."""

    first: int
    second: int


def contradictions(texts: Sequence[str]) -> list[Contradiction]:
    """None."""
    return []


def against(answer: str, sources: Sequence[str]) -> list[Contradiction]:
    """None."""
    return []
