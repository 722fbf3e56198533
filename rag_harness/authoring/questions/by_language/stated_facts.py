"""The facts of a document in another language than English, and the questions that they answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.authoring.questions.by_language.question_forms import (
    AMOUNT,
    DURATION,
    MONEY,
    QUESTION_FORMS,
    THING,
    WEIGHT,
    QuestionForms,
)
from rag_harness.authoring.questions.quotable_passages import QuotablePassage
from rag_harness.words.languages import LANGUAGES, LanguageRules

StatedFact = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and statement: see ``facts.Fact``."""
MOST_WORDS = 45
_MONEY = re.compile(r"[€$£]\s?\d|\d\s?(?:€|EUR\b|USD\b|GBP\b|CHF\b|%|euros?\b|Euro\b)")
_WEIGHT = re.compile(r"\d\s?(?:k?g|kilos?|Kilo|t)\b")
_FEWEST_LETTERS = re.compile(r"[^\W\d_]{2}")
_EMPTY = re.compile(r"[\W_]*$|n/?a$|[✓✔✅❌✗✘]")


def facts_stated(passage: QuotablePassage, language: str) -> Iterator[StatedFact]:
    """Yield what a passage states: a sentence of a known form, or the cells of a row; nothing without forms."""
    forms, rules = QUESTION_FORMS.get(language), LANGUAGES.get(language)
    if forms and rules:
        yield from _row(passage, forms) if passage.names else _sentence(passage, forms, rules)


def answers_it(text: str, stated: str, rules: LanguageRules) -> bool:
    """Return whether a text has what a question for ``stated`` asks for: money, a duration, a weight."""
    if stated == DURATION:
        return _duration(rules).search(text) is not None
    if stated == AMOUNT:
        return any(character.isdigit() for character in text)
    patterns = {MONEY: _MONEY, WEIGHT: _WEIGHT}
    return stated == THING or patterns[stated].search(text) is not None


def _duration(rules: LanguageRules) -> re.Pattern[str]:
    return next(answered for name, _, answered in rules.kinds if name == "a duration")


def _sentence(passage: QuotablePassage, forms: QuestionForms, rules: LanguageRules) -> Iterator[StatedFact]:
    text = passage.text
    if len(text.split()) > MOST_WORDS:
        return
    for stated, pattern in forms.patterns.items():
        found = pattern.match(text)
        if not found or not _is_subject(found["s"], rules) or not answers_it(found["a"], stated, rules):
            continue
        subject, verb, answer = found["s"], found["v"], found["a"]
        if stated == THING:
            answer = f"{verb.split()[-1]} {answer}"
        asked = forms.asked(stated, subject, verb, _duration(rules).search(answer) is not None)
        kind = "definition" if stated == THING else "quantity"
        yield kind, answer, {"asked": asked, "stated": stated, "about": subject, "verb": verb.lower()}, text
        return


def _is_subject(subject: str, rules: LanguageRules) -> bool:
    """Return whether words are a subject that stands alone: a noun, and no "it", "this" or "who" before it."""
    first, *others = subject.lower().split()
    rest = [word for word in (first, *others) if rules.plain(word)]
    points = first in rules.stop_words and not others
    return bool(rest) and not points and len(subject.split()) <= 8


def _row(passage: QuotablePassage, forms: QuestionForms) -> Iterator[StatedFact]:
    row, *cells = passage.cells
    _, *names = passage.names
    if len(set(names)) < len(names) or not _FEWEST_LETTERS.search(row):
        return
    for name, cell in zip(names, cells, strict=True):
        if _FEWEST_LETTERS.search(name) and not _EMPTY.match(cell) and cell != row:
            asked = forms.cell.format(row=row, name=name)
            yield "cell", cell, {"asked": asked, "about": row}, f"{row} – {name}: {cell}"
