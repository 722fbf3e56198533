"""Whether a value is the one that a question asks for: it stands nearest to the question's words in a passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rag_harness.judges.embedded.absent.quantities import Quantity
from rag_harness.judges.embedded.absent.sentences import KnownSentences, Sentence
from rag_harness.judges.embedded.absent.statements import Asked, Stated, Statement, asked, compared, is_rate, refers
from rag_harness.words.contradictions.vocabulary import tokens
from rag_harness.words.number_words import in_words

_BESIDE = 0.5
"""What a word of the question counts for a value of its clause that it is not the nearest of."""
_EARLIER, _LATER = 0.8, 0.2
"""What it counts for a value in a later clause, which may leave it out, and for one in an earlier clause."""
_ABOVE = 0.4
"""What a word counts that stands in the sentence before, or in a heading."""
MARGIN = 0.1
"""Least difference, as a share of the question's weight, of the best value to any other one."""
LEAST_FIT = 0.3
"""Least share of the question's weight, for a value that has no rival."""


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


def standing(own: Sequence[ValuePlace], rivals: Sequence[ValuePlace], asked: Asked, stated: Stated) -> Standing:
    """Compare the places of a value with those of its rivals."""
    total = sum(stated.weight(word) for word in asked.words if stated.has(word)) or 1.0
    every = [*own, *rivals]
    scores = [_score(one, every, asked, stated) / total for one in every]
    ours = max(zip(scores, own, strict=False), key=lambda row: row[0], default=(0.0, None))
    theirs = max(zip(scores[len(own) :], rivals, strict=True), key=lambda row: row[0], default=(0.0, None))
    return Standing(ours[0], theirs[0], ours[1], theirs[1])


def _score(one: ValuePlace, every: Sequence[ValuePlace], asked: Asked, stated: Stated) -> float:
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


def quantity_candidates(said: Quantity, stated: Stated) -> tuple[list[ValuePlace], list[ValuePlace]]:
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


def nothing(stated: Stated) -> Iterator[ValuePlace]:
    """Yield where nothing is stated in place of a quantity."""
    for statement in stated.all:
        for place, token in enumerate(statement.tokens):
            if token.lower in NOTHING:
                yield ValuePlace(statement, place, place, None)


def amounts(stated: Stated) -> list[ValuePlace]:
    """Return the places of all amounts of money."""
    return [
        ValuePlace(statement, place, place, one)
        for statement in stated.all
        for one in statement.quantities
        if one.unit in ("€", "$", "£")
        for place in [statement.place(one.start)]
    ]


def phrase_candidates(words: Sequence[str], stated: Stated) -> list[ValuePlace]:
    """Return the places where all terms of a phrase stand close together."""
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


def clause_rivals(own: Sequence[ValuePlace], asked: Asked, stated: Stated) -> list[ValuePlace]:
    """Return the clauses without the phrase that have words of the question: another value may stand there."""
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


def terms_of(text: str, without: Asked) -> list[str]:
    """Return the terms of an answer that its question does not have."""
    found = (compared(token.lower) for token in tokens(text, 0, len(text)))
    return [word for word in dict.fromkeys(found) if word and word not in without.words]


_SURE = 0.25
"""Least margin by which another value fits a sentence better, for the sentence's own to be that of something else."""
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
def stated_in(known: KnownSentences) -> Stated:
    """Return the statements of a source, read once for all claims of an answer."""
    return Stated(known.texts)
