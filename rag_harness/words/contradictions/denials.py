"""Negations of a sentence, and words that make two sentences hard to compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.words.contradictions.vocabulary import word_set

HISTORY = re.compile(
    r"\b(?:formerly|former|previously|previous|used to|earlier|older|in the past|back then|at that time|was replaced"
    r"|were replaced|superseded|obsolete|originally|once was"
    r"|(?:until|before|till|up to) (?:the end of )?(?:[a-z]{3,9} )?(?:19|20)[0-9]{2}|in (?:19|20)[0-9]{2},)\b",
    re.I,
)
"""Words for the past: the sentence does not say what holds now."""
EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g|say you|suppose|imagine|example)\b", re.I)
HEDGES = word_set("most mostly usually typically normally generally often average")
RESTRICTS = word_set("only except otherwise else other")
OBLIGES = word_set("must required needed need needs have has mandatory obligatory")
_LIFTS = word_set("needn't have need required necessary obliged")
_NOT = word_set("not never cannot neither")
_FORBIDS = word_set("forbidden prohibited")
_NONE = word_set("no without none nobody nothing only")
# "not only", "not until": the words after these are affirmed.
_SOFTENS = word_set("only just always all every necessarily yet more less later earlier fewer longer until before even")


@dataclass(frozen=True, slots=True)
class Denial:
    """A negation at token ``place``; ``terms`` are the terms after it in its clause.

    ``lifts``: it only says that something is not required. ``always``: it holds under every condition.
    """

    terms: tuple[str, ...]
    place: int
    lifts: bool
    always: bool


def denials(
    lower: Sequence[str], terms: Sequence[str], clauses: Sequence[int], conditions: frozenset[int]
) -> Iterator[Denial]:
    """Return the denials of a sentence of the tokens ``lower``. A negation in a condition is no denial."""
    for place, said in enumerate(lower):
        if place in conditions or not _denies(lower, place):
            continue
        end = next(clause for clause in clauses if clause >= place)
        denied = ("allow",) if said in _FORBIDS else tuple(filter(None, terms[place + 1 : end]))
        near = frozenset(lower[max(0, place - 1) : place + 4])
        yield Denial(denied, place, bool(_LIFTS & near), said == "never")


def negates(lower: Sequence[str]) -> bool:
    """Return whether a sentence has a negation, or a word such as "only"."""
    return any(word in _NONE or _denies(lower, place) for place, word in enumerate(lower))


def _denies(lower: Sequence[str], place: int) -> bool:
    said, after = lower[place], lower[place + 1] if place + 1 < len(lower) else ""
    if said in _FORBIDS or (said == "no" and after == "longer"):
        return True
    return (said in _NOT or said.endswith("n't")) and after not in _SOFTENS
