"""One thing changed in a question that must not change its answer. Pure; a figure is never touched.

Each takes a text and a seed and returns the changed text, or an empty one and why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from rag_harness.words.terms import STOPWORDS

_WORDS_A_TYPO = 8
"""One word in so many gets a typo; at least one does."""
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


Change = Callable[[str, int], Changed]


def in_capitals(text: str, seed: int) -> Changed:  # noqa: ARG001 - there is one way to do it
    """Write it in capitals. Done twice, there is nothing left to change."""
    if not any(letter.lower() != letter.upper() for letter in text):
        return Changed("", "no letter of the question has a capital")
    capitals = text.upper()
    return Changed(capitals) if capitals != text else Changed("", "the question is in capitals")


def with_typos(text: str, seed: int) -> Changed:
    """Swap two neighbouring letters inside one of eight words, of those of five letters and more without a capital.

    First and last letter stay, as readers need them most; codes, names and figures are left alone.
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
    """Return where two neighbours inside a word differ."""
    return [n for n in range(1, len(word) - 2) if word[n] != word[n + 1]]


def politely(text: str, seed: int) -> Changed:
    """Put a please before it and thanks behind it. What is polite like that already is left alone."""
    if any(text.startswith(before) for before, _ in _POLITE):
        return Changed("", "the question is polite already")
    before, behind = Random(f"{seed} {text}").choice(_POLITE)
    said = text.strip()
    end = "" if said.endswith((".", "?", "!")) else "."
    return Changed(f"{before}{said}{end}{behind}") if said else Changed("", "the question is empty")


def enumerated_otherwise(text: str, seed: int) -> Changed:  # noqa: ARG001 - there is one way to do it
    """Reverse what the question lists: "A, B and C", "both A and B", or two names. Done twice it is as it was.

    Nothing with a figure in it is moved: "between 5 and 10" is no list. Only what stands between words like "the", "in"
    or "are", or at a border of a sentence, is taken for a list: of other words nobody knows whether they belong to it.
    """
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


QUERY_CHANGES: Mapping[str, Change] = {
    "metamorphic_case": in_capitals,
    "metamorphic_typos": with_typos,
    "metamorphic_politeness": politely,
    "metamorphic_enumeration": enumerated_otherwise,
}
"""By the measure that they are for."""
