"""The reader reads and declines in the language of the question; English prompts give what they gave."""

from __future__ import annotations

import pytest

from rag_harness.core.text.refusals import declines
from rag_harness.models.reader import ReaderAnswer, reader_answer

SHIPPING = (
    "Sperrige Waren, z. B. Anhänger, liefert eine Spedition. Die Lieferungen dauern 3 bis 5 Werktage. Sie gelten seit "
    "dem 3. März 2025 für alle Länder."
)


def read(question: str, *sources: str) -> ReaderAnswer:
    context = "\n\n".join(f"[Source {n}: p{n}.md]\n{text}" for n, text in enumerate(sources, 1))
    return reader_answer([{"role": "user", "content": f"{context}\n\nQuestion: {question}"}])


def test_a_german_question_is_answered_by_the_sentence_with_other_forms_of_its_words() -> None:
    assert read("Wie lange dauert eine Lieferung?", SHIPPING).answer == (
        "Die Lieferungen dauern 3 bis 5 Werktage. [Source 1]"
    )


def test_a_sentence_is_quoted_whole_behind_an_abbreviation() -> None:
    said = read("Wer liefert sperrige Waren?", SHIPPING).answer
    assert said.startswith("Sperrige Waren, z. B. Anhänger, liefert eine Spedition. [Source 1]")


@pytest.mark.parametrize(
    ("question", "source", "said"),
    [
        ("Wo parke ich mein Auto?", SHIPPING, "Das weiß ich nicht."),
        ("Où est-ce que je peux garer ma voiture ?", "La livraison est faite dans les cinq jours.", "Je ne sais pas."),
        ("Where do I park my car?", "Returns are free and they take five days.", "I don't know."),
    ],
)
def test_the_reader_declines_in_the_language_of_the_question(question: str, source: str, said: str) -> None:
    answer = read(question, source).answer
    assert answer.startswith(said)
    assert declines(answer)


def test_without_a_context_it_says_no_more() -> None:
    assert read("Wie lange dauert eine Lieferung?").answer == "Das weiß ich nicht."


def test_a_language_without_rules_is_declined_in_english() -> None:
    assert read("返金には何日かかりますか？", "送料は無料です。").answer.startswith("I don't know.")


def test_a_question_that_tells_nothing_is_read_as_its_sources_are() -> None:
    assert read("Lieferung?", SHIPPING).answer == "Die Lieferungen dauern 3 bis 5 Werktage. [Source 1]"
