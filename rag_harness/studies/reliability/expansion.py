"""Adds words to a question that found too little: the words come from the best hits, without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag_harness.retrieval.lexical import language_asked, languages_of
from rag_harness.retrieval.rarity import Rarity
from rag_harness.types import Hit
from rag_harness.words.terms import term, tokens

FEEDBACK = 3
"""How many of the best hits are assumed to be relevant."""
WORDS = 5
"""How many words are added."""


def expanded(question: str, hits: Sequence[Hit], rarity: Rarity) -> str:
    """Return the question with the most telling words of its best hits: pseudo-relevance feedback (Rocchio 1971).

    A word's weight is the number of hits that have it, times its IDF. Words of the question and figures are not added.
    """
    language = language_asked(question, languages_of(hit.chunk for hit in hits))
    known = {term(token, language) for token in tokens(question)}
    written: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for hit in hits[:FEEDBACK]:
        forms = {term(token, hit.chunk.language): token.lower() for token in tokens(hit.chunk.text)}
        new = {key: token for key, token in forms.items() if key and key not in known and key[0].isalpha()}
        counts.update(new.keys())
        written = new | written
    best = sorted(counts, key=lambda key: (-counts[key] * rarity.of(key), key))[:WORDS]
    return " ".join([question, *(written[key] for key in best)])
