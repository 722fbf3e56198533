"""What passages state, for rules about short answers: sentences and rows with their clauses, words and figures.

Texts are read with numbers in digits, at the same places (``number_words.in_digits``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log

from rag_harness.judges.embedded.absent.quantities import Quantity, quantities
from rag_harness.words.contradictions.passages import passages as read_passages
from rag_harness.words.contradictions.passages import without_markup
from rag_harness.words.contradictions.vocabulary import Token, term, tokens
from rag_harness.words.number_words import in_digits
from rag_harness.words.opposites import opposite, same_sense, senses

MOST_STATEMENTS = 400
"""Most statements of all passages that are read."""
_BORDER = frozenset((",", ";", ":", "(", ")", "and", "but", "while", "whereas", "though", "although", "otherwise"))
NEGATIONS = frozenset(
    "not no never none nobody nothing neither nor without cannot except excepted excluding hardly".split()  # noqa: SIM905
)
_NOT_NEGATING = frozenset("only just later longer more less than until".split())  # noqa: SIM905
_ORDER = frozenset(("before", "after"))
"""Function words that decide what is asked."""
_REFERS = re.compile(r"\W*(?:it|its|they|their|this|these|that|those|he|she|his|her)\b", re.I)
_FAR = 6
"""Words that a border of clauses counts for in the distance of two words."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A sentence or a row of a table.

    Attributes:
        text: with its numbers in digits.
        written: as it stands.
        passage: the number of its passage.
        above: the terms of its headings and of the sentence before it.
    """

    text: str
    written: str
    passage: int
    above: frozenset[str]

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens(self.text, 0, len(self.text)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The term of each token; a number stands for itself."""
        return tuple(compared(token.lower) for token in self.tokens)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(filter(None, self.words))

    @cached_property
    def clauses(self) -> tuple[int, ...]:
        """The clause of each token."""
        found, clause = [], 0
        for token in self.tokens:
            clause += token.lower in _BORDER
            found.append(clause)
        return tuple(found)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return quantities(self.text)

    def place(self, start: int) -> int:
        """Return the token at a character."""
        return next((at for at, token in enumerate(self.tokens) if token.end > start), len(self.tokens) - 1)

    def far(self, one: int, other: int) -> int:
        """Return the distance of two tokens; borders of clauses between them count more."""
        return abs(one - other) + _FAR * abs(self.clauses[one] - self.clauses[other])

    def clause(self, place: int) -> range:
        """Return the tokens of a token's clause."""
        first, end = self.clauses.index(self.clauses[place]), len(self.clauses)
        last = next((at for at in range(place, end) if self.clauses[at] != self.clauses[place]), end)
        return range(first, last)

    def negations(self, places: Sequence[int]) -> int:
        """Count the negations among some tokens."""
        return sum(self._negates(place) for place in places)

    def _negates(self, place: int) -> bool:
        said = self.tokens[place].lower
        if said == "free":
            return self.tokens[min(place + 1, len(self.tokens) - 1)].lower == "from"
        following = self.tokens[place + 1].lower if place + 1 < len(self.tokens) else ""
        return (said in NEGATIONS or said.endswith("n't")) and following not in _NOT_NEGATING


def refers(text: str) -> bool:
    """Return whether a sentence begins with a pronoun: what it is about stands before it."""
    return _REFERS.match(text) is not None


def is_rate(one: Quantity) -> bool:
    """Return whether a quantity is the unit of a rate, or no more than an article: "30 hours a week"."""
    return one.written.lower().startswith(("a ", "an "))


def compared(word: str) -> str:
    """Return the form in which a lower-case word is compared; a number stands for itself."""
    if word[:1].isdigit():
        return word.replace(",", "")
    if word in _ORDER:
        return word
    return term(word) or (word if len(word) > 1 and any(map(str.isdigit, word)) else "")


@lru_cache(maxsize=256)
def statements_of(text: str, number: int) -> tuple[Statement, ...]:
    """Return the statements of a passage."""
    plain = without_markup(text)
    digits, before, found = in_digits(plain), frozenset[str](), list[Statement]()
    for passage in read_passages(digits):
        if len(found) == MOST_STATEMENTS:
            break
        if passage.cells:
            found.append(_row(digits, passage.cells, passage.header, passage.above, number))
            continue
        span = slice(passage.start, passage.end)
        text = digits[span]
        found.append(Statement(text, plain[span], number, passage.above | before))
        before = found[-1].terms | (before if refers(text) else frozenset())
    return tuple(found)


def _row(
    text: str, cells: Sequence[tuple[int, int]], header: Sequence[tuple[int, int]], above: frozenset[str], number: int
) -> Statement:
    said = "; ".join(
        f"{text[slice(*head)].strip()} {text[slice(*cell)].strip()}" for head, cell in zip(header, cells, strict=True)
    )
    return Statement(said, said, number, above)


class Stated:
    """All statements of the passages of an answer, and the weight of each term: its rarity among them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.all = [one for number, text in enumerate(texts) for one in statements_of(text, number)][:MOST_STATEMENTS]
        firsts: dict[int, Statement] = {}
        for one in self.all:
            firsts.setdefault(one.passage, one)
        self.firsts = tuple(firsts.values())
        self._holders = Counter(word for one in self.all for word in one.terms)

    def weight(self, word: str) -> float:
        return log(1 + (len(self.all) + 1) / (self._holders[word] + 0.5))

    def has(self, word: str) -> bool:
        """Return whether any statement has a term."""
        return self._holders[word] > 0


@dataclass(frozen=True)
class Asked:
    """What a question asks about: each term with the lower-case word that it stands for."""

    words: dict[str, str]

    def within(self, statement: Statement) -> dict[str, tuple[int, bool]]:
        """Return for each term that a statement has its token, and whether the word there is its opposite.

        What stands in the clause of the first term goes before what other clauses have.
        """
        found: dict[str, tuple[int, bool]] = {}
        near: range | None = None
        for asked, word in self.words.items():
            place = _found(asked, word, statement, near) if near else None
            place = place or _found(asked, word, statement, range(len(statement.tokens)))
            if place is not None:
                found[asked] = place
                near = near or statement.clause(place[0])
        return found


def _found(asked: str, word: str, statement: Statement, places: range) -> tuple[int, bool] | None:
    same = next((at for at in places if statement.words[at] == asked), None)
    if same is not None:
        return same, False
    if not (senses(word) or len(word) > 6):
        return None
    for at in places:
        other = statement.tokens[at].lower
        if same_sense(word, other) or opposite(word, other, contrasts=False):
            return at, not same_sense(word, other)
    return None


_ASKING = frozenset(
    """
    many much long often soon old heavy tall big far high deep wide large kind type sort name call tell there please
    possible someone somebody anybody anyone people person thing things exactly currently whole entire
    """.split()  # noqa: SIM905
)


def asked(question: str, without: frozenset[str] = frozenset()) -> Asked:
    """Return what a question asks about, without the terms of ``without``."""
    found: dict[str, str] = {}
    for token in tokens(in_digits(question), 0, len(question)):
        word = compared(token.lower)
        if word and word not in without and token.lower not in _ASKING:
            found.setdefault(word, token.lower)
    return Asked(found)
