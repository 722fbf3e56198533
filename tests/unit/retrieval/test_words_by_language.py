"""BM25 and word weights read each chunk by its own language, and each question by its own."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.core.types import LANGUAGE, Chunk
from rag_harness.retrieval.bm25 import Bm25Index, LiveWords, bm25_words
from rag_harness.retrieval.retrievers import Rarity
from tests.unit.hits import chunks_of

GERMAN, ENGLISH, FRENCH = (
    "Die Rücksendungen der Räder sind kostenlos.",
    "Returned bicycles are sent back for free.",
    "L'assurance des vélos coûte 12 €.",
)


def _chunks(*languages: str) -> list[Chunk]:
    texts = {"de": GERMAN, "en": ENGLISH, "fr": FRENCH}
    made = chunks_of([texts[language] for language in languages])
    return [replace(chunk, metadata={LANGUAGE: language}) for chunk, language in zip(made, languages, strict=True)]


def _found(chunks: list[Chunk], query: str) -> list[str]:
    return [hit.chunk.language for hit in Bm25Index(lambda: chunks).search(query, 5)]


def test_a_german_question_finds_other_forms_of_its_words() -> None:
    assert _found(_chunks("de"), "Rücksendung eines Rades") == ["de"]
    assert _found([replace(_chunks("de")[0], metadata={})], "Rücksendung eines Rades") == []


def test_in_a_mixed_collection_each_question_finds_what_is_in_its_language() -> None:
    mixed = _chunks("de", "en", "fr")
    assert _found(mixed, "Ist die Rücksendung von einem Rad möglich?") == ["de"]
    assert _found(mixed, "Can I return the bicycle that was sent to me?") == ["en"]
    assert _found(mixed, "Quelles sont les assurances pour un vélo ?") == ["fr"]


def test_stop_words_are_those_of_the_language() -> None:
    assert bm25_words("Die Frist ist 30 Tage", "de") == ["frist", "30", "tag"]
    assert bm25_words("l'assurance du vélo", "fr") == bm25_words("assurance vélo", "fr")
    assert bm25_words("Die Frist", "zh") == bm25_words("Die Frist")


def test_a_changing_collection_scores_as_one_that_stands() -> None:
    mixed = _chunks("de", "en", "fr")
    live = LiveWords().view(mixed)
    for query in ("Rücksendung der Räder", "returning bicycles for free", "assurances"):
        assert live.scores(query) == Bm25Index(lambda: mixed).scores(query)


def test_word_weights_are_by_language() -> None:
    assert Rarity(_chunks("de", "en")).of("rucksend") < Rarity(_chunks("en", "en")).of("rucksend")
