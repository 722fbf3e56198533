"""The six rules for the end of a sentence, beside each other on the same texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag_harness.words.sentences.asked import asked_sentences
from rag_harness.words.sentences.cited import cited_sentences
from rag_harness.words.sentences.judged import judged_sentences
from rag_harness.words.sentences.quoted import quoted_sentences
from rag_harness.words.sentences.rough import marked_sentences, rough_sentences
from rag_harness.words.sentences.stated import stated_sentences

RULES: dict[str, Callable[[str], list[str]]] = {
    "quoted": quoted_sentences,
    "judged": lambda text: [text[start:end] for start, end in judged_sentences(text)],
    "cited": lambda text: [text[start:end] for start, end in cited_sentences(text, 0, len(text), wrapped=True)],
    "stated": lambda text: [text[start:end].strip() for start, end in stated_sentences(text, 0, len(text))],
    "asked": lambda text: [text[start:end].strip() for start, end in asked_sentences(text, 0)],
    "rough": rough_sentences,
    "marked": lambda text: [found[0] for found in marked_sentences(text)],
}


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Pay €4.90, e.g. Monday. Done!", {"quoted", "judged", "cited", "stated", "asked"}),
        ("See Dr. Meier.", {"quoted", "judged", "stated", "asked"}),
        ("Open Mon. to Fri. at ten.", {"quoted", "judged", "cited", "asked"}),
        ("Pay now; it is due.", {"quoted", "judged", "cited", "asked", "rough", "marked"}),
        ("Wait. iPhones are here.", {"quoted", "judged", "cited", "asked"}),
        ("One line\nanother", {"quoted", "cited", "stated", "asked", "marked"}),
        ("It is 1.5 m.", {"quoted", "judged", "cited", "stated", "asked", "rough"}),
    ],
)
def test_which_rules_keep_a_text_whole(text: str, whole: set[str]) -> None:
    kept = {name for name, rule in RULES.items() if len(rule(text)) == (2 if "Done" in text else 1)}
    assert kept == whole


def test_sentences_that_are_quoted_keep_abbreviations_and_prices_whole() -> None:
    assert quoted_sentences("Pay €4.90, e.g. Monday. Done!") == ["Pay €4.90, e.g. Monday.", "Done!"]


def test_two_plain_sentences_are_two_by_every_rule() -> None:
    assert {tuple(rule("Shops open at ten. They close at six.")) for rule in RULES.values()} == {
        ("Shops open at ten.", "They close at six.")
    }
