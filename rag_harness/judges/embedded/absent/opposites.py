"""Finds words of a claim whose opposite a passage has in their place: accepted and rejected, at least and up to."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.judges.embedded.absent.quantities import Quantity
from rag_harness.judges.embedded.absent.sentences import KnownSentences, Sentence, share_among
from rag_harness.words.number_words import in_digits
from rag_harness.words.opposites import opposite, same_sense, senses
from rag_harness.words.terms import STOPWORDS, stem

_LEAST = 0.75
"""Least share of the rest of a claim in the sentence that has the opposite."""
_ELSEWHERE = 0.5
"""Share of the rest in a sentence that has the claim's own word, from which that sentence may be the one meant."""
_FEWEST = 2
"""Least content words of the rest."""
_PLACED = frozenset(("before", "after"))
"""Function words that are compared, with the word behind them."""
_SIGN = r"[\s-]{0,24}[€$£]?\s{0,24}$"
_UPPER = re.compile(
    r"\b(?:under|below|less than|fewer than|up to|at most|no more than|not more than|(?:a )?maximum(?: of)?"
    rf"|younger than){_SIGN}",
    re.I,
)
_LOWER = re.compile(
    r"\b(?:over|above|more than|at least|no less than|(?:a )?minimum(?: of)?|older than"
    rf"|exceed(?:s|ing)?){_SIGN}",
    re.I,
)


class Bound(NamedTuple):
    """The words before a quantity that bound it, and whether from above."""

    words: str
    is_upper: bool


def turned(claim: Sentence, known: KnownSentences) -> str:
    """Return a word or a bound of a claim whose opposite a passage has in its place; empty where there is none."""
    return _other_bound(claim, known) or _opposite_word(claim, known)


def _other_bound(claim: Sentence, known: KnownSentences) -> str:
    for one in claim.quantities:
        ours = bound_of(claim.text, one)
        if ours is None:
            continue
        same = [(sentence, other) for sentence in known.sentences for other in sentence.quantities if one.same(other)]
        bounds = [bound_of(sentence.text, other) for sentence, other in same if _is_near(claim, sentence)]
        if bounds and all(theirs is not None and theirs.is_upper != ours.is_upper for theirs in bounds):
            return f"“{ours.words}”: the passage says “{bounds[0].words if bounds[0] else ''}”"
    return ""


def _is_near(claim: Sentence, sentence: Sentence) -> bool:
    return share_among(claim.stems, sentence.stems) >= _ELSEWHERE


def bound_of(text: str, one: Quantity) -> Bound | None:
    """Return the bound of a quantity in its text."""
    before = in_digits(text)[max(0, one.start - 24) : one.start]
    for pattern, is_upper in ((_UPPER, True), (_LOWER, False)):
        if found := pattern.search(before):
            return Bound(" ".join(found[0].strip(" -€$£").split()), is_upper)
    return None


def _opposite_word(claim: Sentence, known: KnownSentences) -> str:
    read = claim.read
    for place, word in enumerate(read.words):
        if not senses(word) or (word in STOPWORDS and word not in _PLACED):
            continue
        rest = claim.stems - {stem(word)}
        if len(rest) < _FEWEST:
            continue
        if any(_has(word, one) and share_among(rest, one.stems) >= _ELSEWHERE for one in known.sentences):
            continue
        for sentence in known.sentences:
            found = _in_place(place, word, claim, sentence)
            if found and share_among(rest, sentence.stems) >= _LEAST:
                return f"“{read.written[place]}”: the passage says “{found}”"
    return ""


def _has(word: str, sentence: Sentence) -> bool:
    return any(word == other or same_sense(word, other) or stem(word) == stem(other) for other in sentence.read.words)


def _in_place(place: int, word: str, claim: Sentence, sentence: Sentence) -> str:
    """Return the opposite of a word that a sentence has and the claim has not, where both deny or neither does."""
    if bool(claim.denials - _own(claim)) != bool(sentence.denials - _own(sentence)):
        return ""
    behind = _behind(claim, place)
    for at, other in enumerate(sentence.read.words):
        if (
            opposite(word, other)
            and not _has(other, claim)
            and (word not in _PLACED or behind == _behind(sentence, at))
        ):
            return sentence.read.written[at]
    return ""


def _own(sentence: Sentence) -> frozenset[str]:
    """Return the words that deny something and have opposites of their own: "closed" is no negation here."""
    return frozenset(word for word in sentence.denials if senses(word))


def _behind(sentence: Sentence, place: int) -> str:
    """Return the stem of the next content word."""
    read = sentence.read
    return next((read.stems[at] for at in range(place + 1, len(read.stems)) if read.content[at]), "")
