"""Rewords a question so that it shares fewer words with its page: by fixed turns, and by a list of synonyms.

Names, codes, numbers and quoted words stay. The list replaces few words: docs/dev/results/drafted-questions.md has
the figures.
"""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

from rag_harness.authoring.questions.inflection import Forms, read_forms
from rag_harness.authoring.questions.wordlists import word_set
from rag_harness.words.terms import STOPWORDS

TURNED = 0.7
"""The share of the questions that are turned, of those that can be. People also ask in the plain way."""

_TURNS = tuple(
    (re.compile(asked, re.I), said)
    for asked, said in (
        (r"\bwhat is the (?:price|cost) (?:for|of) ([^?.]{1,200})\?", "how much do I have to pay for {0}?"),
        (r"\bwhat is the (?:fee|charge) for ([^?.]{1,200})\?", "what do I have to pay for {0}?"),
        (r"\bwhat is the weight of ([^?.]{1,200})\?", "how heavy is {0}?"),
        (r"\bwhat is the height of ([^?.]{1,200})\?", "how tall is {0}?"),
        (r"\bwhat is the length of ([^?.]{1,200})\?", "how long is {0}?"),
        (r"\bwhat is the lifetime for ([^?.]{1,200})\?", "how long does {0} last?"),
        (r"\bwhat is the default for ([^?.]{1,200})\?", "what is taken for {0} if I say nothing?"),
        (r"\bhow much does ([^?.]{1,200}?) cost([^?.]{0,200})\?", "what do I have to pay for {0}{1}?"),
        (r"\bwhat happens ((?:if|when|once|unless) [^?.]{1,200})\?", "{0}, what then?"),
        (r"\b((?:if|when|once|unless) [^?.]{1,200}), what happens\?", "{0}, what follows?"),
        (r"\bwhat exactly is ([^?.]{1,200})\?", "what is meant by {0}?"),
        (r"\bhow often\b", "at what intervals"),
        (r"\bwhat is the way to\b", "how would I"),
        (r"\bwhat do I have to do to\b", "how would I"),
    )
)
_FREE = re.compile(r"(?<![\w.@/=_'\"“(:-])[a-z]+(?![\w(=/_@:'’\"-]|\.\w)")
"""A small word that is no part of a code, a path or a quote."""
_VERBAL = word_set("to i you we can could should must will would do does did not don't may might")
_BEFORE_ING = word_set("by when for of from without before after while is are not keep")
_BEFORE_PAST = word_set("is are was were be been has have had not i you get gets being")
_NOMINAL = word_set("the a an my your our its their this each every any some no of")


def in_other_words(question: str, chance: Random) -> str:
    """Return the question with words replaced from the list; the same question if the list has none of them."""
    turned = _turned(question) if chance.random() < TURNED else question
    quoted = [
        found.span() for found in re.finditer(r"\"[^\"]{0,400}\"|“[^”]{0,400}”|(?<!\w)'[^']{0,400}'(?!\w)", turned)
    ]
    return _FREE.sub(lambda word: word[0] if _inside(word.start(), quoted) else _other(word), _phrases(turned))


def _turned(question: str) -> str:
    for pattern, said in _TURNS:
        match = pattern.search(question)
        if match:
            new = said.format(*match.groups())
            new = new[:1].upper() + new[1:] if match[0][:1].isupper() else new[:1].lower() + new[1:]
            return question[: match.start()] + new + question[match.end() :]
    return question


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)


def _phrases(question: str) -> str:
    for written, said in _known().phrases.items():
        question = re.sub(rf"(?<![\w-]){re.escape(written)}(?![\w-])", said, question)
    return question


def _other(word: re.Match[str]) -> str:
    before = word.string[: word.start()].split()
    after = word.string[word.end() :].split()
    if after and after[0][:1].isupper() and after[0] != "I":
        return word[0]
    last = before[-1].lower() if before else ""
    for kind, said in _known().words.get(word[0], ()):
        if _fits(kind, last, after[0] if after else "", bool(before and before[-1][:1].isupper() and len(before) > 1)):
            return said
    return word[0]


def _fits(kind: str, last: str, following: str, behind_name: bool) -> bool:
    if kind == "base":
        return last in _VERBAL
    if kind in ("ing", "past"):
        return last in (_BEFORE_ING if kind == "ing" else _BEFORE_PAST)
    if kind == "noun" and following and following.strip(".,;:?!)").lower() not in STOPWORDS:
        return False  # the noun stands before another noun: "price match"
    if kind == "third":
        return last not in _NOMINAL and not behind_name
    return kind != "noun" or not behind_name


@lru_cache(maxsize=1)
def _known() -> Forms:
    return read_forms()
