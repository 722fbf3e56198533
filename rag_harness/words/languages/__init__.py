"""The rules of each language but English: stop words, stems, abbreviations, kinds of questions, "I don't know".

A language is a file that makes one ``LanguageRules``. English has none: its rules stand in the files that use them
(``terms``, ``sentence_ends``), where they were measured. Text in a language without a file gets no rules of another one
where something is judged; its words are cut as English ones are, since cutting must do something.
"""

from __future__ import annotations

from rag_harness.words.languages.dutch import DUTCH
from rag_harness.words.languages.french import FRENCH
from rag_harness.words.languages.german import GERMAN
from rag_harness.words.languages.italian import ITALIAN
from rag_harness.words.languages.language_rules import LanguageRules
from rag_harness.words.languages.portuguese import PORTUGUESE
from rag_harness.words.languages.spanish import SPANISH

__all__ = ["ENGLISH", "LANGUAGES", "LanguageRules", "has_rules", "rules_of"]

ENGLISH = "en"
"""The code of the language whose rules are everywhere, and of documents that name no other."""
LANGUAGES: dict[str, LanguageRules] = {
    each.code: each for each in (GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH)
}
"""The languages with rules, besides English, by their codes of two letters (ISO 639-1)."""


def rules_of(language: str) -> LanguageRules | None:
    """Return the rules of a language; None for English and for a language without rules."""
    return LANGUAGES.get(language)


def has_rules(language: str) -> bool:
    """Return whether a language has rules, as English has."""
    return language == ENGLISH or language in LANGUAGES
