"""Types of an answer's parts. Each function returns the value, or raises an error that says what was expected."""

from __future__ import annotations

from math import isfinite
from typing import Any


class WrongKindError(Exception):
    """A value has the wrong type; the message says what was expected."""


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise WrongKindError("text")
    return value


def name(value: Any) -> str:
    """Return a name: a text, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise WrongKindError("text")
    return str(value)


def number(value: Any) -> float:
    """Return a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise WrongKindError("a number")
    return float(value)


def share(value: Any) -> float:
    """Return a number from 0 to 1."""
    if not 0 <= number(value) <= 1:
        raise WrongKindError("a number from 0 to 1")
    return number(value)


def count(value: Any) -> int:
    """Return a whole number that is not negative."""
    if number(value) < 0 or number(value) != int(value):
        raise WrongKindError("a whole number, 0 or more")
    return int(value)


def truth(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise WrongKindError("true or false")
    return value


def places(value: Any) -> tuple[int | str, ...]:
    """Return citations: numbers or names."""
    if not isinstance(value, list) or not all(isinstance(each, (int, str)) for each in value):
        raise WrongKindError("a list of places among the contexts, from 1, or of their names")
    return tuple(value)


def items(value: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise WrongKindError("a list")
    return value
