"""Values that passages state: whether a value is the one that a question asks for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from typing import NamedTuple

from rag_harness.core.text.figures import UNITS, Token, term, tokens
from rag_harness.core.text.numbers import StatedValue, in_digits, in_words, stated_values
from rag_harness.core.text.sentences import passages as read_passages
from rag_harness.core.text.sentences import without_markup
from rag_harness.core.text.terms import opposite, same_sense, senses
from rag_harness.evaluation.judges.embedded.quantities import (
    CENTS,
    CURRENCIES,
    KnownSentences,
    Quantity,
    Sentence,
    clocks,
    quantities,
    times,
)

# What passages state, for rules about short answers: sentences and rows with their clauses, words and figures.
#
# Texts are read with numbers in digits, at the same places (``numbers.in_digits``).

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
        written: the words as written.
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
        """The term of each token; the term of a number is the number."""
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
    """Return whether a sentence begins with a pronoun: its subject is in an earlier sentence."""
    return _REFERS.match(text) is not None


def is_rate(one: Quantity) -> bool:
    """Return whether a quantity is the unit of a rate, or no more than an article: "30 hours a week"."""
    return one.written.lower().startswith(("a ", "an "))


def compared(word: str) -> str:
    """Return the form in which a lower-case word is compared; a number only loses its commas."""
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


class StatementIndex:
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
class AskedTerms:
    """The terms that a question asks about, each with its lower-case word."""

    words: dict[str, str]

    def within(self, statement: Statement) -> dict[str, tuple[int, bool]]:
        """Return the token of each term that a statement has, and whether the word there is the term's opposite.

        Tokens in the clause of the first term take precedence over those in other clauses.
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


def asked(question: str, without: frozenset[str] = frozenset()) -> AskedTerms:
    """Return the terms that a question asks about, without the terms of ``without``."""
    found: dict[str, str] = {}
    for token in tokens(in_digits(question), 0, len(question)):
        word = compared(token.lower)
        if word and word not in without and token.lower not in _ASKING:
            found.setdefault(word, token.lower)
    return AskedTerms(found)


_BESIDE = 0.5
"""What a word of the question counts for a value of its clause that it is not the nearest of."""
_EARLIER, _LATER = 0.8, 0.2
"""What it counts for a value in a later clause, which may leave it out, and for one in an earlier clause."""
_ABOVE = 0.4
"""What a word counts that is in the sentence before, or in a heading."""
MARGIN = 0.1
"""Least difference, as a share of the question's weight, of the best value to any other one."""
LEAST_FIT = 0.3
"""Least share of the question's weight for a value that has no rival."""


class ValuePlace(NamedTuple):
    """A value in a statement: its first and last token, and the quantity that it is, if any."""

    statement: Statement
    first: int
    last: int
    quantity: Quantity | None


class Standing(NamedTuple):
    """How well the answer's value and the best other one fit the question, as shares of its weight."""

    own: float
    other: float
    best: ValuePlace | None
    rival: ValuePlace | None


def standing(
    own: Sequence[ValuePlace], rivals: Sequence[ValuePlace], asked: AskedTerms, stated: StatementIndex
) -> Standing:
    """Compare the places of a value with those of its rivals."""
    total = sum(stated.weight(word) for word in asked.words if stated.has(word)) or 1.0
    every = [*own, *rivals]
    scores = [_score(one, every, asked, stated) / total for one in every]
    ours = max(zip(scores, own, strict=False), key=lambda row: row[0], default=(0.0, None))
    theirs = max(zip(scores[len(own) :], rivals, strict=True), key=lambda row: row[0], default=(0.0, None))
    return Standing(ours[0], theirs[0], ours[1], theirs[1])


def _score(one: ValuePlace, every: Sequence[ValuePlace], asked: AskedTerms, stated: StatementIndex) -> float:
    statement = one.statement
    beside = [other for other in every if other.statement is statement]
    here = asked.within(statement)
    score = 0.0
    for word in asked.words:
        if word in here:
            place, is_opposite = here[word]
            score += 0.0 if is_opposite else stated.weight(word) * _nearness(one, beside, _nearest(word, place, one))
        elif word in statement.above:
            score += _ABOVE * stated.weight(word)
    return score


def _nearest(word: str, place: int, one: ValuePlace) -> int:
    places = [at for at, said in enumerate(one.statement.words) if said == word] or [place]
    return min(places, key=lambda at: one.statement.far(at, one.first))


def _nearness(one: ValuePlace, beside: Sequence[ValuePlace], place: int) -> float:
    if len(beside) == 1:
        return 1.0
    nearest = min(_far(other, place) for other in beside)
    if _far(one, place) == nearest:
        return 1.0
    clauses = one.statement.clauses
    if clauses[place] == clauses[one.first]:
        return _BESIDE
    return _EARLIER if place < one.first else _LATER


def _far(one: ValuePlace, place: int) -> int:
    return min(one.statement.far(one.first, place), one.statement.far(one.last, place))


def quantity_candidates(said: Quantity, stated: StatementIndex) -> tuple[list[ValuePlace], list[ValuePlace]]:
    """Return the places of a quantity, and those of others that measure the same."""
    every = [
        (one, ValuePlace(statement, place, place, one))
        for statement in stated.all
        for one in statement.quantities
        for place in [statement.place(one.start)]
    ]
    own = [candidate for one, candidate in every if said.same(one)]
    kinds = {_kind(said)} if said.unit else {_kind(one) for one, _ in every if said.same(one)}
    beside = {id(one.statement) for one in own}
    rivals = [
        candidate
        for one, candidate in every
        if not said.same(one)
        and not is_rate(one)
        and (_kind(one) in kinds or (not (one.unit or one.noun) and id(candidate.statement) in beside))
    ]
    return own, [*rivals, *(one for one in nothing(stated) if id(one.statement) in beside)]


def _are_alike(one: Quantity, other: Quantity) -> bool:
    years = 1500 <= one.number <= 2100 and 1500 <= other.number <= 2100
    return _kind(one) == _kind(other) and (bool(one.unit) or (bool(one.noun) and one.noun == other.noun) or years)


def _kind(one: Quantity) -> str:
    return "date" if one.unit.startswith("day of") else one.unit


NOTHING = frozenset(("zero", "nothing", "none", "free"))


def nothing(stated: StatementIndex) -> Iterator[ValuePlace]:
    """Yield where nothing is stated in place of a quantity."""
    for statement in stated.all:
        for place, token in enumerate(statement.tokens):
            if token.lower in NOTHING:
                yield ValuePlace(statement, place, place, None)


def amounts(stated: StatementIndex) -> list[ValuePlace]:
    """Return the places of all amounts of money."""
    return [
        ValuePlace(statement, place, place, one)
        for statement in stated.all
        for one in statement.quantities
        if one.unit in ("€", "$", "£")
        for place in [statement.place(one.start)]
    ]


def phrase_candidates(words: Sequence[str], stated: StatementIndex) -> list[ValuePlace]:
    """Return the places where all terms of a phrase are close together."""
    found = []
    for statement in stated.all:
        if not all(word in statement.terms for word in words):
            continue
        first = [at for at, said in enumerate(statement.words) if said == words[0]]
        for at in first:
            places = [_closest(statement, word, at) for word in words]
            if max(places) - min(places) <= 2 * len(words) + 2:
                found.append(ValuePlace(statement, min(places), max(places), None))
    return found


def _closest(statement: Statement, word: str, at: int) -> int:
    return min((place for place, said in enumerate(statement.words) if said == word), key=lambda place: abs(place - at))


def clause_rivals(own: Sequence[ValuePlace], asked: AskedTerms, stated: StatementIndex) -> list[ValuePlace]:
    """Return the clauses without the phrase that have words of the question: they may have another value."""
    taken = {(id(one.statement), clause) for one in own for clause in _clauses(one)}
    found = []
    for statement in stated.all:
        clauses = {statement.clauses[place] for place, is_opposite in asked.within(statement).values()}
        for clause in clauses:
            places = [at for at, said in enumerate(statement.clauses) if said == clause]
            new = [at for at in places if statement.words[at] and statement.words[at] not in asked.words]
            if (id(statement), clause) not in taken and new:
                found.append(ValuePlace(statement, new[0], new[-1], None))
    return found


def _clauses(one: ValuePlace) -> set[int]:
    return set(one.statement.clauses[one.first : one.last + 1])


def terms_of(text: str, without: AskedTerms) -> list[str]:
    """Return the terms of an answer that its question does not have."""
    found = (compared(token.lower) for token in tokens(text, 0, len(text)))
    return [word for word in dict.fromkeys(found) if word and word not in without.words]


_SURE = 0.25
"""Least margin by which another value fits a sentence better where the sentence's own belongs to something else."""
_MOST_WORDS = 16
"""Most words of a sentence that is read for that: longer ones say several things."""


def misplaced(claim: Sentence, known: KnownSentences) -> str:
    """Return the only quantity of a short sentence where the passages have it for something else; empty otherwise."""
    if len(claim.quantities) != 1 or len(claim.read.words) > _MOST_WORDS or refers(claim.text):
        return ""
    said, stated = claim.quantities[0], stated_in(known)
    without = frozenset(compared(token.lower) for token in tokens(said.written.lower(), 0, len(said.written)))
    about = asked(claim.text, without | {compared(str(int(said.number)))} if said.number % 1 == 0 else without)
    own, rivals = quantity_candidates(said, stated)
    rivals = [one for one in rivals if one.quantity is not None and _are_alike(said, one.quantity)]
    if not own or not rivals:
        return ""
    found = standing(own, rivals, about, stated)
    if found.rival is None or found.rival.quantity is None or found.other < found.own + _SURE or found.other < _CERTAIN:
        return ""
    theirs = in_words(found.rival.statement.written, found.rival.quantity.written)
    return f"{said.written}: the passage says {theirs}"


_CERTAIN = 0.6


@lru_cache(maxsize=8)
def stated_in(known: KnownSentences) -> StatementIndex:
    """Return the statements of a source, read once for all claims of an answer."""
    return StatementIndex(known.texts)


_RATE = re.compile(
    r"\b(?:per|every|each|an?|the|once an?|within an?) (year|quarter|month|week|day|hour|minute)\b", re.I
)
_RATES = {"yearly": "year", "annual": "year", "annually": "year", "quarterly": "quarter", "monthly": "month",
          "weekly": "week", "daily": "day", "hourly": "hour"}  # fmt: skip
_MOST = 100
"""Largest count by which a stated value may be multiplied."""
_READ = 40_000
"""Characters of each passage that are read for it."""
Reading = tuple[str, float]


def is_stated(written: str, texts: Sequence[str]) -> bool:
    """Return whether any text states the values of ``written`` in any reading of both."""
    wanted = quantities(written)
    values, clocks = stated_values(in_digits(written)), times(written)
    if not (wanted or values or clocks):
        return False
    known = [_known(text[:_READ]) for text in texts]
    if clocks and any(one & minutes for one in clocks for _, _, minutes in known):
        return True
    if wanted and all(any(_readings(one) & readings for readings, _, _ in known) for one in wanted):
        return True
    if any(one.unit in (*CURRENCIES, CENTS) for one in wanted):
        return False
    said = [value for _, stated, _ in known for value in stated]
    return bool(values) and all(any(other.has(one) for other in said) for one in values)


def restated(text: str, source: Iterable[Sentence]) -> str:
    """Return ``text`` with amounts and times as the source writes them, where it states the same in another form.

    The models compare words: "four weeks" is as far from "28 days" as from "9 days".
    """
    said: list[tuple[str, Quantity | frozenset[int]]] = [(one.written, one) for one in quantities(text) if one.unit]
    said += clocks(text)
    if not said:
        return text
    sentences = list(source)
    for written, value in said:
        if not any(written in sentence.text for sentence in sentences):
            other = next(filter(None, (_same_in(value, sentence) for sentence in sentences)), "")
            text = text.replace(written, other, 1) if other else text
    return text


def _same_in(value: Quantity | frozenset[int], sentence: Sentence) -> str:
    if isinstance(value, Quantity):
        return next((one.written for one in sentence.quantities if one.unit == value.unit and value.same(one)), "")
    return next((written for written, minutes in clocks(sentence.text) if minutes & value), "")


def is_computed(said: Quantity, claim: Sentence, known: Sequence[Sentence]) -> bool:
    """Return whether a claim multiplies a stated value by a count of its own: "two cases hold a dozen bottles"."""
    factors = {one.number for one in claim.quantities if one is not said and one.number % 1 == 0}
    factors = {factor for factor in factors if 2 <= factor <= _MOST}
    return any(
        other.unit == said.unit and other.noun == said.noun and abs(other.value * factor - said.value) < 1e-6
        for factor in factors
        for sentence in known
        for other in sentence.quantities
    )


def _readings(one: Quantity) -> frozenset[Reading]:
    if one.unit == CENTS:
        return frozenset([(CENTS, one.value), *((sign, one.value / 100) for sign in CURRENCIES)])
    return frozenset([(one.unit, one.value)])


@lru_cache(maxsize=64)
def _known(text: str) -> tuple[frozenset[Reading], tuple[StatedValue, ...], frozenset[int]]:
    """Return the readings of a passage, its values, and the minutes of its times of day."""
    digits = in_digits(text)
    minutes = frozenset(minute for found in times(text) for minute in found)
    return frozenset(_all_readings(digits)), stated_values(digits), minutes


def _all_readings(text: str) -> Iterator[Reading]:
    """Yield every reading: a bare number has also each unit of its sentence, and a rate is one of its unit."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        found = quantities(sentence)
        units = {UNITS[token.lower] for token in tokens(sentence, 0, len(sentence)) if token.lower in UNITS}
        for one in found:
            yield from _readings(one)
            yield "", one.number
            if not one.unit:
                yield from ((unit, one.number * factor) for unit, factor in units)
                yield from ((sign, one.number) for sign in CURRENCIES if any(other.unit == sign for other in found))
    for named in _RATE.findall(text):
        yield _period(named.lower())
    for token in re.findall(r"\b(?:[a-z]{3,7}ly|annual)\b", text.lower()):
        if token in _RATES:
            yield _period(_RATES[token])


def _period(name: str) -> Reading:
    if name == "quarter":
        return "months", 3.0
    return UNITS[name]
