"""Tells whether a part of a sentence can be used in a question."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.verbs import BASES, TOLD_TO_DO
from rag_harness.words.terms import terms

FactParts = tuple[str, str, dict[str, str]] | None
"""Kind, answer and parts of a fact: see ``facts.Fact``."""
LONGEST_PART = 18
"""The most words of a part."""
_SPOKEN = re.compile(
    r"\b(?:we(?:'re|’re| are|'ll|'ve| have| run| want| need| see| look| start| use| can| now)|let's|say)\b", re.I
)


def can_be_asked(part: str) -> bool:
    """Whether a part fits into a question: it refers to nothing outside, and is no fragment or author's "we"."""
    dashes = part.startswith("whether") or "—" in part or "–" in part
    whole = not dashes and part.count("(") == part.count(")") and part.count('"') % 2 == 0
    return whole and not POINTING.search(part) and not _SPOKEN.search(part) and 2 <= len(part.split()) <= LONGEST_PART


def does(part: str) -> bool:
    """Whether a part begins with a verb, names its object, and can be used in a question."""
    verb, thing, *_ = [*part.split(), "", ""]
    return verb in BASES | TOLD_TO_DO and thing != "that" and can_be_asked(part)


def tells_to_do(text: str) -> bool:
    """Whether a clause tells its reader to do something."""
    said = re.sub(r"^(?:(?:please|simply|just|always|never|do not|don't) )*", "", text)
    return said.split(" ", 1)[0].lower().rstrip(".,") in BASES | TOLD_TO_DO


def tells_apart(subject: str) -> bool:
    """Whether a subject is specific: a name, a code, or two words. "The limit" is not: it may be any limit."""
    coded = re.search(r"[A-Z0-9_.]", subject) is not None
    return coded or len(terms(subject)) > 1
