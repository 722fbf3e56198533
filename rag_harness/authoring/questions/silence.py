"""Checks by words that no passage about a thing says what is asked; words with similar meaning count as the same."""

from __future__ import annotations

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.words.terms import term, terms

MANY = 40
"""If more chunks name a thing, it is too common to be sure that nothing is said about it."""
RAREST = 2
"""How many of the rarest words of the question must be missing in passages about the thing."""
_ALIKE = tuple(
    frozenset(map(term, words.split()))
    for words in (
        "price prices cost costs fee fees charge charges rate pay amount surcharge deposit free",
        "default defaults standard initial initially",
        "limit limits maximum max most cap quota up",
        "deadline time period duration timeout term days hours minutes",
        "weight heavy weighs kg",
        "height tall cm size dimensions",
        "warranty guarantee guaranteed covered",
        "raise raises error exception fail fails",
        "support supports supported available unsupported",
    )
)


def nothing_says(thing: str, asked: frozenset[str], collection: DocumentCollection, is_planned: bool = False) -> bool:
    """Whether no passage that names a thing has one of the rarest words asked, or a word of similar meaning.

    If all statements of the pages are planned, and none states this, it is enough that each passage lacks one of these
    words: planned statements often share a word with the question.
    """
    rarest = sorted(asked, key=lambda each: (-collection.rarity(each), each))[:RAREST]
    near = [{word, *(other for alike in _ALIKE if word in alike for other in alike)} for word in rarest]
    says = all if is_planned else any
    named = terms(thing)
    hits = [terms(hit.chunk.text) for hit in collection.nearest(thing, MANY + 1)] if named else []
    naming = [found for found in hits if named <= found]
    return 0 < len(naming) <= MANY and not any(says(words & found for words in near) for found in naming)
