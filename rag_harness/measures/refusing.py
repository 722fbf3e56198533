"""Whether an answer refuses in its own words, and the figures of a text."""

from __future__ import annotations

import re

from rag_harness.words.citation_marks import CITATION
from rag_harness.words.terms import figures

NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"
)  # fmt: skip
_SHORT = 300
"""Most characters of an answer that is only a refusal."""
_FIRST_SENTENCE = re.compile(r"(?:[^.!?]|[.!?](?!\s))*[.!?]?")
_NOT = r"(?:cannot|can['’]?t|could not|couldn['’]t|(?:am |are |was |were )?(?:unable|not able) to)"
_TEXT = r"(?:information|context|sources?|documents?|pages?|passages?|text|material|knowledge base|question|answer)"
_SAY = "address|answer|cover|explain|mention|say|specify|speak|state|tell"
_SAID = "addressed|answered|covered|documented|explained|found|known|mentioned|specified|stated|told"
_REFUSES = re.compile(
    rf"\b{_NOT} (?:be )?(?:\w+ )?(?:answer|determin|find|found|locat|help|provide|tell|say)"
    rf"|\b(?:no|not enough|insufficient|too little)(?: \w+)? {_TEXT}\b"
    rf"|\b(?:not|n['’]t)(?: \w+)? (?:{_SAY}|{_SAID})\b|\bnothing (?:is |was )?(?:\w+ )?(?:about|{_SAID}|on that)\b"
    rf"|\b{_TEXT}\b.{{0,60}}?(?:\bnot|n['’]t) (?:contain|give|have|include|provide)"
    r"|\bsilent (?:on|about)\b|\b(?:not|im)\s?possible to (?:answer|determine|say|tell)\b|\bunclear from\b"
    r"|\bdo(?: not|n['’]t) (?:have|know)\b|\bsorry\b|\bno idea\b",
    re.I,
)
"""A sentence that refuses. A sentence about the subject, "delivery is not included", does not."""
_NUMBER_WORD = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.I)


def refuses(answer: str) -> bool:
    """Return whether an answer says in its own words that it does not know, and names no figure after that."""
    plain = CITATION.sub(" ", answer[: _SHORT + 1]).strip()
    first = _FIRST_SENTENCE.match(plain)
    return len(answer) <= _SHORT and first is not None and bool(_REFUSES.search(first[0])) and not figures_of(plain)


def figures_of(text: str) -> frozenset[str]:
    """Return the numbers of a text, small ones in words too, without those of its citations."""
    in_digits = _NUMBER_WORD.sub(lambda found: str(NUMBER_WORDS.index(found[1].lower())), CITATION.sub(" ", text))
    return frozenset(map(_trimmed, figures(in_digits)))


def _trimmed(number: str) -> str:
    """Return 9.90 as 9.9, and 30.0 as 30."""
    whole, point, rest = number.partition(".")
    return f"{whole}.{rest.rstrip('0')}".rstrip(".") if point and rest.isdigit() else number
