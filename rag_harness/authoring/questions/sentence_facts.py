"""Finds what a sentence states: a condition, a purpose, a definition, a property, a quantity, a permission."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from rag_harness.authoring.questions import conditions, properties
from rag_harness.authoring.questions.askable import FactParts
from rag_harness.authoring.questions.clauses import clause
from rag_harness.authoring.questions.persons import asked_by_reader, lower_first
from rag_harness.authoring.questions.quantities import quantity
from rag_harness.authoring.questions.quotable_passages import QuotablePassage

StatedFact = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and statement: see ``facts.Fact``."""
FEWEST_SENTENCE_WORDS, MOST_SENTENCE_WORDS = 5, 45
"""The fewest and the most words of a sentence that is read."""
_CONTEXT = re.compile(r"\b(?:now|below|above|following|here|earlier|previous|next|again)\b", re.I)
"""Words of a statement that depends on its context."""
_POINTER = re.compile(
    r"^(?:please )?(?:see|refer to|check out|read|visit|have a look|look at|follow|check)\b|\b(?:see|refer to) "
    r"(?:also )?(?:the |our )?[A-Z\[]|\bfor (?:more|details|further|full|an? (?:complete|full))\b|\bdocs?\b"
    r"|\bdocumentation\b|\bread (?:how|that|the|about)\b|\b(?:that|the|this) page\b|\bexample\b|\bsection\b|\bguide\b",
    re.I,
)
_ASIDE = re.compile(r"\s\([^()]{1,200}\)")


def read_sentence(passage: QuotablePassage, names: Collection[str]) -> Iterator[StatedFact]:
    """Yield what a sentence states, as kind, answer, parts and statement."""
    text = lower_first(_ASIDE.sub("", passage.text), names)
    found = next(filter(None, (reads(text) for reads in _READERS)), None) if _stands_alone(text) else None
    if found:
        kind, answer, parts = found
        yield kind, answer, {name: asked_by_reader(part) for name, part in parts.items()}, passage.text


def _stands_alone(text: str) -> bool:
    whole = text.endswith((".", "!")) and not text.endswith((" .", "…", "..."))
    return (
        whole
        and FEWEST_SENTENCE_WORDS <= len(text.split()) <= MOST_SENTENCE_WORDS
        and not (_POINTER.search(text) or _CONTEXT.search(text))
    )


def _quantity(text: str) -> FactParts:
    found = clause(text)
    return quantity(found) if found and not found.negated else None


_READERS: tuple[Callable[[str], FactParts], ...] = (
    conditions.wanted_purpose, _quantity, conditions.condition, conditions.purpose, conditions.used, conditions.by,
    properties.definition, properties.stated_property, properties.permission, conditions.condition_behind,
)  # fmt: skip
