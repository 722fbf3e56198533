"""What a demand may be: a text, texts, a number, ``true``. Each function returns what is wrong; empty: nothing is."""

from __future__ import annotations

from math import isfinite
from typing import Any

LONGEST_TEXT = 2_000


def text_problem(wanted: Any) -> str:
    """A text with at least one character that is no blank."""
    if not isinstance(wanted, str) or not wanted.strip():
        return f"a text was expected; found {wanted!r:.40}"
    return f"longer than {LONGEST_TEXT:,} characters" if len(wanted) > LONGEST_TEXT else ""


def texts_problem(wanted: Any) -> str:
    """A list of such texts."""
    if not isinstance(wanted, list) or not wanted:
        return f"a list of texts was expected; found {wanted!r:.40}"
    return next(filter(None, map(text_problem, wanted)), "")


def number_problem(wanted: Any) -> str:
    """A finite number."""
    is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool) and isfinite(wanted)
    return "" if is_number else f"a number was expected; found {wanted!r:.40}"


def most_problem(wanted: Any) -> str:
    """A number of 0 or more."""
    return number_problem(wanted) or ("" if wanted >= 0 else f"a number of 0 or more was expected; found {wanted}")


def true_problem(wanted: Any) -> str:
    """``true``: the opposite is written with ``not``."""
    return "" if wanted is True else f'write true, and for the opposite {{"not": …}}; found {wanted!r:.40}'
