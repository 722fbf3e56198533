"""Looks at what an agent has found, and says what to search for next: by rules, over words of the question alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rag_harness.retrieval.rarity import Rarity
from rag_harness.types import Chunk
from rag_harness.words.language import asked_language
from rag_harness.words.terms import term, terms, tokens

COVERED = 0.75
"""The share of a part's words, by weight, that one chunk has to have. With less, nothing was found for the part."""
FEWEST_MISSING = 2
"""The fewest words that are worth a search of their own."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What an agent sees when it looks at what it has found.

    Attributes:
        search: what to search for next; empty where it has enough, or nothing is left to search for.
        why: the reason, for the row.
        missing: words of the question that no chunk has, in its order.
    """

    search: str
    why: str
    missing: tuple[str, ...] = ()


def looked(plan: Sequence[str], asked: Collection[str], found: Sequence[Chunk], rarity: Rarity) -> Looked:
    """Return what to search for next.

    First comes the part of the plan that the found chunks cover least; where each part is covered or was asked, the
    words of the question that no chunk has.

    Args:
        plan: the question, then its parts.
        asked: what was searched for already.
        found: the chunks that were found.
        rarity: the weights of words.
    """
    left = {part: _covered(part, found, rarity) for part in plan if part not in asked}
    worst = min(left, key=lambda part: left[part], default="")
    missing = _missing(plan[0], found)
    if worst and left[worst] < COVERED:
        return Looked(worst, f"the best chunk has {left[worst]:.0%} of what this part asks", missing)
    words = " ".join(missing)
    if len(missing) >= FEWEST_MISSING and words not in asked:
        return Looked(words, "no chunk has these words", missing)
    return Looked("", "each part is covered" if not missing else "nothing is left to search for", missing)


def _covered(part: str, found: Sequence[Chunk], rarity: Rarity) -> float:
    """Return the largest share of a part's words that a chunk has, by weight; 1 for a part without words."""
    weights = {word: rarity.of(word) for word in terms(part, asked_language(part))}
    whole = sum(weights.values())
    held = (sum(weights[word] for word in weights.keys() & terms(chunk.text, chunk.language)) for chunk in found)
    return max(held, default=0.0) / whole if whole else 1.0


def _missing(question: str, found: Sequence[Chunk]) -> tuple[str, ...]:
    """Return the words of a question that no chunk has, each once, as they are written."""
    language, have = asked_language(question), set[str]()
    for chunk in found:
        have |= terms(chunk.text, chunk.language)
    words = {term(token, language): token for token in reversed(tokens(question))}
    return tuple(word for form, word in reversed(words.items()) if form and form not in have)
