"""Changes of a question that must not change its answer. Pure; figures are never changed.

Each function takes a text and a seed, and returns the changed text, or an empty one and why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from rag_harness.words.language import asked_language
from rag_harness.words.languages import ENGLISH
from rag_harness.words.terms import STOPWORDS

_WORDS_A_TYPO = 8
"""One word in so many gets a typo; at least one word does."""
_LONG_ENOUGH = 5
_TYPO_WORD = re.compile(r"(?<![\w’'-])[^\W\d_]{5,}(?![\w’'-])")
_POLITE = (
    ("Could you please tell me: ", " Thank you!"),
    ("Hello, please help me with this: ", " Thanks in advance!"),
    ("Excuse me, I would like to know: ", " Many thanks!"),
)
_WORD = r"[^\W\d_][\w’'-]{0,30}"
_ITEM = rf"{_WORD}(?: {_WORD}){{0,2}}"
_LISTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w’'-])(?P<items>{_WORD}(?:, {_ITEM}){{1,10}}?)(?P<comma>,?) (?P<word>and|or) (?P<last>{_WORD})",
        rf"\b(?:both|between|either) (?P<items>{_WORD})(?P<comma>) (?P<word>and|or) (?P<last>{_WORD})",
        rf"\b(?P<items>[A-Z]{_WORD})(?P<comma>) (?P<word>and|or) (?P<last>[A-Z]{_WORD})",
    )
)
_LEADS = frozenset(("both", "between", "either", "compare"))
_BEFORE = re.compile(r"(?:^|[.?!:;(]\s*|(?<![\w’'-])(?P<word>[\w’'-]+),?\s)$")
_BEHIND = re.compile(r"\s*(?:$|[.?!:;,)]|(?P<word>[\w’'-]+))")


class Changed(NamedTuple):
    """A changed question; ``text`` is empty where nothing could be changed, and ``why`` says why."""

    text: str
    why: str = ""


QuestionChange = Callable[[str, int], Changed]


def in_capitals(text: str, seed: int) -> Changed:  # noqa: ARG001 - there is only one way to do it
    """Write the question in capitals. A question in capitals cannot be changed again."""
    if not any(letter.lower() != letter.upper() for letter in text):
        return Changed("", "no letter of the question has a capital")
    capitals = text.upper()
    return Changed(capitals) if capitals != text else Changed("", "the question is in capitals")


def with_typos(text: str, seed: int) -> Changed:
    """Swap two neighbouring letters inside one word in eight. Words need at least five letters and no capital.

    First and last letters stay, for readers need them most. Codes, names and figures are not changed.
    """
    places = [word.span() for word in _TYPO_WORD.finditer(text) if word[0].islower() and _swaps(word[0])]
    if not places:
        return Changed("", f"no word of {_LONG_ENOUGH} letters that could be mistyped")
    drawn = Random(f"{seed} {text}")
    wanted = min(len(places), max(1, len(text.split()) // _WORDS_A_TYPO))
    for start, end in sorted(drawn.sample(places, wanted)):
        place = start + drawn.choice(_swaps(text[start:end]))
        text = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    return Changed(text)


def _swaps(word: str) -> list[int]:
    """Return the positions of different neighbours inside a word."""
    return [n for n in range(1, len(word) - 2) if word[n] != word[n + 1]]


def politely(text: str, seed: int) -> Changed:
    """Add a please before the question and thanks after it. A question that has them is not changed."""
    if any(text.startswith(before) for before, _ in _POLITE):
        return Changed("", "the question is polite already")
    language = asked_language(text)
    if language != ENGLISH:
        return Changed("", f"no rules for {language}: the polite words are English")
    before, behind = Random(f"{seed} {text}").choice(_POLITE)
    said = text.strip()
    end = "" if said.endswith((".", "?", "!")) else "."
    return Changed(f"{before}{said}{end}{behind}") if said else Changed("", "the question is empty")


def enumerated_otherwise(text: str, seed: int) -> Changed:  # noqa: ARG001 - there is only one way to do it
    """Reverse what the question lists: "A, B and C", "both A and B", or two names. To do it twice restores it.

    Nothing with a figure is moved: "between 5 and 10" is no list. A list must stand between words like "the", "in" or
    "are", or at a border of a sentence: other words might belong to it.
    """
    language = asked_language(text)
    if language != ENGLISH:
        return Changed("", f"no rules for {language}: lists are read in English")
    for pattern in _LISTS:
        for found in pattern.finditer(text):
            items = [*found["items"].split(", "), found["last"]]
            if items != items[::-1] and _is_a_list(text, found, items):
                return Changed(_reversed(text, found, items))
    return Changed("", "the question lists nothing")


def _is_a_list(text: str, found: re.Match[str], items: Sequence[str]) -> bool:
    if any(word.lower() in STOPWORDS for item in items for word in item.split()):
        return False
    before, behind = _BEFORE.search(text[: found.start("items")]), _BEHIND.match(text[found.end() :])
    return before is not None and behind is not None and _is_border(before["word"]) and _is_border(behind["word"])


def _is_border(word: str | None) -> bool:
    return word is None or word.lower() in STOPWORDS or word.lower() in _LEADS


def _reversed(text: str, found: re.Match[str], items: Sequence[str]) -> str:
    listed = f"{', '.join(items[:0:-1])}{found['comma']} {found['word']} {items[0]}"
    return f"{text[: found.start('items')]}{listed}{text[found.end() :]}"


QUERY_CHANGES: Mapping[str, QuestionChange] = {
    "metamorphic_case": in_capitals,
    "metamorphic_typos": with_typos,
    "metamorphic_politeness": politely,
    "metamorphic_enumeration": enumerated_otherwise,
}
"""The changes, by their measure."""
