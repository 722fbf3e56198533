"""Types of questions: those that the harness knows, and names that are probably a misspelling of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from rag_harness.types import NEGATIVE

KNOWN_TYPES = ("direct", "multi_hop", "comparison", NEGATIVE, "unlabelled")
"""The types that checks, measures and drafts of this package know. Any other type is a slice of the user's own."""

_UNANSWERABLE = (NEGATIVE, "unanswerable")
_NEAR = 0.8
"""Similarity from which a name is a misspelling: ``direkt`` has 0.83 with ``direct``, ``multi_doc`` 0.78 with
``multi_hop``."""


def types_named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the values of ``rag_query_types``, each of which may hold several, with commas between."""
    return tuple(name for value in values for each in value.split(",") if (name := each.strip()))


@lru_cache(1024)
def type_problem(query_type: str, answerable: bool | None, further: tuple[str, ...] = ()) -> str:
    """Say why a type cannot be meant as it is written; empty if it can.

    A type that is near no known one is a type of the user's own. Its questions count as answerable.

    Args:
        query_type: the type of a question.
        answerable: what the question itself says of that; None if it says nothing.
        further: types beside the known ones, from ``rag_query_types``.
    """
    known = (*KNOWN_TYPES, *further)
    if query_type not in known and (meant := _meant(query_type, known)):
        return (
            f"query_type {query_type!r} is not known. Did you mean {meant!r}? Known: {', '.join(known)}. "
            f"If it is a type of your own, name it: --rag-query-types={query_type} (ini rag_query_types)."
        )
    if query_type != NEGATIVE and answerable is None and any(word in _plain(query_type) for word in _UNANSWERABLE):
        return (
            f"query_type {query_type!r} says that no page has the answer, but only {NEGATIVE!r} means this by itself. "
            f'Write {NEGATIVE!r}, or add "answerable": false.'
        )
    return ""


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the known type that a name is near; empty where it is near none."""
    plain = {_plain(each): each for each in known}
    if _plain(name) in plain:
        return plain[_plain(name)]
    # A known type with something in front or behind is made on purpose: indirect, negative_hard. "s" is a plural.
    if any(each in _plain(name) and _plain(name) != f"{each}s" for each in plain):
        return ""
    return next((plain[each] for each in get_close_matches(_plain(name), plain, n=1, cutoff=_NEAR)), "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
