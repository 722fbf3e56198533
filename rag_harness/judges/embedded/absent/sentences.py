"""Sentences in the form that the rules need: content words, quantities, negations. Each sentence is read only once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rag_harness.judges.embedded.absent.quantities import Quantity, quantities
from rag_harness.judges.embedded.words import SplitText, split_text
from rag_harness.words.contradictions.vocabulary import OPENERS, word_set

_AROUND = 12
"""Number of words on either side of a figure that show what it is about."""
_NEGATIONS = re.compile(r"not|no|never|none|nobody|neither|nor|cannot|without|\w+n['’]t", re.I)
_DENIALS = re.compile(
    r"not?|never|none|nobody|nothing|neither|nor|without|cannot|unable|lack(?:s|ing|ed)?|refuse[sd]?|refusal"
    r"|fail(?:s|ed|ing)?|den(?:y|ies|ied|ying)|prohibit(?:s|ed)?|forbid(?:s|den)?|exclud(?:es|ed|ing)|except|only|hardly"
    r"|rarely|unless|ban(?:s|ned)?|avoid(?:s|ed|ing)?|prevent(?:s|ed)?|instead|rather|false|impossible|closed?|free"
    r"|absent|missing|little|few|zero|un\w{4,}|non\w*|in(?:valid|eligible|complete|correct|sufficient|active)|dis\w{4,}"
    r"|\w+less|\w+n['’]t",
    re.I,
)
"""Words that may deny something. Where a source has one, a negation of it does not count as invented."""
_SOFTENS = word_set("only just always all every necessarily yet more less later earlier fewer longer until before even")
"""Words after a "not" that keep the statement: not only."""
_BORDER = re.compile(r"[,;:()|]|\s[–—-]\s")
_TURNS = word_set("but though although while whereas because since")
_CONDITIONS = OPENERS - {"without"}


@dataclass(frozen=True, slots=True)
class Negation:
    """A negation, with the first content stems after it in its clause, and those before it."""

    word: str
    scope: tuple[str, ...]
    subject: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence; ``above`` is the head of its table, where it is a row."""

    text: str
    above: str = ""

    @cached_property
    def read(self) -> SplitText:
        """The words of the sentence."""
        return split_text(self.text.replace("\n", " "))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its content words and of its table's head, without numbers."""
        above = sentence_of(self.above).stems if self.above else frozenset()
        return above | frozenset(self.stems_in(0, len(self.read.stems)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The figures in the sentence."""
        return quantities(self.text)

    @cached_property
    def denials(self) -> frozenset[str]:
        """The words that may deny something."""
        return frozenset(word for word in self.read.words if _DENIALS.fullmatch(word))

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        """The plain negations, without those in a condition."""
        return tuple(_negations(self))

    def stems_in(self, first: int, last: int) -> Iterator[str]:
        """Yield the stems of the content words from one position to before another."""
        found = self.read
        for place in range(max(0, first), min(last, len(found.stems))):
            if found.content[place] and not found.stems[place][0].isdigit():
                yield found.stems[place]

    def around(self, start: int) -> frozenset[str]:
        """Return the stems of the content words around a character."""
        place = int(self.read.spans[:, 0].searchsorted(start))
        return frozenset(self.stems_in(place - _AROUND, place + _AROUND + 1))


@lru_cache(maxsize=16384)
def sentence_of(text: str, above: str = "") -> Sentence:
    """Return a sentence. Sentences are cached, for sources occur repeatedly."""
    return Sentence(text, above)


class KnownSentences:
    """The sentences of a source and of the question: an answer may repeat both."""

    def __init__(self, source: Sequence[str], question: str, texts: Sequence[str] = ()) -> None:
        self.texts = tuple(texts)
        self.sentences = tuple(_with_heads(source))
        self.question = sentence_of(question)

    @cached_property
    def everything(self) -> tuple[Sentence, ...]:
        """All sentences of source and question."""
        return (*self.sentences, self.question)


def share_among(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of ``words`` that is in ``others``; 0 where there are no words."""
    return len(words & others) / len(words) if words else 0.0


def _with_heads(source: Sequence[str]) -> Iterator[Sentence]:
    head = ""
    for text in source:
        is_row = text.startswith("|")
        yield sentence_of(text, head if is_row else "")
        head = (head or text) if is_row else ""


def _negations(sentence: Sentence) -> Iterator[Negation]:
    words = sentence.read.words
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if not _NEGATIONS.fullmatch(word) or following in _SOFTENS or (place and words[place - 1] == "or"):
            continue
        first, end = _clause(sentence, place)
        scope = tuple(sentence.stems_in(place + 1, end))[:3]
        if scope and not _CONDITIONS & set(words[first:place]):
            yield Negation(sentence.read.written[place], scope, tuple(sentence.stems_in(first, place)))


def _clause(sentence: Sentence, place: int) -> tuple[int, int]:
    """Return the first word of a word's clause, and the position after its last."""
    first, end = place, place + 1
    while first and not _turns(sentence, first):
        first -= 1
    while end < len(sentence.read.words) and not _turns(sentence, end):
        end += 1
    return first, end


def _turns(sentence: Sentence, place: int) -> bool:
    """Return whether a clause begins at a word."""
    found = sentence.read
    before = found.text[found.spans[place - 1][1] : found.spans[place][0]]
    return bool(_BORDER.search(before)) or found.words[place] in _TURNS
