"""Whether yes or no is right: the statement that a question asks about, whether it is negated, and its bounds."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.judges.embedded.absent.quantities import Quantity, quantities
from rag_harness.judges.embedded.absent.statements import Asked, Stated, Statement, is_rate
from rag_harness.words.contradictions.vocabulary import tokens
from rag_harness.words.number_words import in_digits

FOUND = 0.5
"""Least share of the question, by weight, that a statement has for it to decide."""
_RIVAL = 0.9
"""Least share of the best statement's weight for another one to count beside it."""
_BEFORE = 0.6
"""What a term counts that stands in the sentence before, or in a heading."""
_UPPER = (
    r"(?:under|below|less than|fewer than|up to|at most|within|no more than|not more than|maximum(?: of)?"
    r"|younger than|a limit of)"
)
_LOWER = (
    r"(?:over|above|more than|at least|from|minimum(?: of)?|older than|exceed(?:s|ing)?|min\.?|longer than|after"
    r"|starting at)"
)
_UPPER_BEFORE = re.compile(rf"\b{_UPPER}[\s-]{{0,24}}[€$£]?\s{{0,24}}$", re.I)
_LOWER_BEFORE = re.compile(rf"\b{_LOWER}[\s-]{{0,24}}[€$£]?\s{{0,24}}$", re.I)
_LOWER_AFTER = re.compile(
    r"^[^,;.]{0,14}\b(?:or (?:more|newer|later|older|above|higher)|and (?:over|up|above)|minimum|at least)\b|^\+", re.I
)
_UPPER_AFTER = re.compile(r"^[^,;.]{0,14}\b(?:or (?:less|fewer|younger|below)|maximum|at most|and under)\b", re.I)
_AHEAD = re.compile(r"^[^,;.]{0,14}\b(?:before|ahead|beforehand|prior|in advance)\b", re.I)
_ALL = re.compile(r"\b(?:all|every|always|any|whole|entire|both|each|only|everything|everyone)\b", re.I)
_LIMITS = re.compile(r"\b(?:except|excepted|unless|only|apart from|other than|but not)\b", re.I)
_IF = re.compile(r"\b(?:if|unless|provided|when)\b", re.I)
_AGE = re.compile(r"\b(\d+)[- ]years?[- ]olds?\b|\b(\d+)s\b")


_EXCEPTS = frozenset(("except", "excluding", "without"))
"""Prepositions that negate what follows them alone."""


class Reading(NamedTuple):
    """Whether a statement says what a question asks, its statement, and its share of the question."""

    says: bool
    statement: Statement
    share: float


def reading(question: str, asked: Asked, stated: Stated) -> Reading | None:
    """Return whether the passages say yes to a question; None where the rules cannot tell."""
    asked = Asked({word: said for word, said in asked.words.items() if not word[0].isdigit()})
    total = sum(map(stated.weight, asked.words))
    if not total:
        return None
    found = [(_weight(asked, one, stated) / total, one) for one in stated.all]
    best = max((share for share, _ in found), default=0.0)
    if best < FOUND:
        return None
    near = [(share, one) for share, one in found if share >= _RIVAL * best]
    said = [(_says(question, asked, one, stated), one, share) for share, one in near]
    verdicts = {says for says, _, _ in said}
    if len(verdicts) != 1 or None in verdicts:
        return None
    says, statement, share = max(said, key=lambda row: row[2])
    return Reading(bool(says), statement, share)


def _weight(asked: Asked, statement: Statement, stated: Stated) -> float:
    here = asked.within(statement)
    rest = [word for word in asked.words if word not in here and word in statement.above]
    own = sum(map(stated.weight, here))
    return own + _BEFORE * sum(map(stated.weight, rest)) if own else 0.0


def _says(question: str, asked: Asked, statement: Statement, stated: Stated) -> bool | None:
    """Return whether a statement says what is asked: by its negations, opposites and bounds."""
    here = asked.within(statement)
    limits = _LIMITS.search(statement.text)
    if limits and _ALL.search(question):
        return False
    places = _clauses(here, statement)
    turned = statement.negations(_negating(places, here, statement, question))
    turned += sum(is_opposite for _, is_opposite in here.values())
    turned += len(re.findall(r"\bnot\b|n['’]t\b(?! (?:you|it|they))", question.partition(" ")[2]))
    fits = _fits(question, statement)
    if fits is None:
        return None
    absent = [word for word in asked.words if word not in here]
    missing = [word for word in absent if word not in statement.above and not _is_topic(word, asked, question, stated)]
    if re.search(r"\bonly\b", statement.text) and any(map(stated.has, absent)):
        turned += 1
    elif (
        (any(map(stated.has, missing)) and not _ALL.search(statement.text))
        or [*asked.words][-1] in absent
        or (_IF.search(statement.text) and not _IF.search(question))
    ):
        return None
    return (turned % 2 == 0) == fits


def _negating(places: list[int], here: dict[str, tuple[int, bool]], statement: Statement, question: str) -> list[int]:
    """Return the tokens whose negations count.

    A word that is asked for is none, nor is one that the question has, too, or an exception of something else.
    """
    found = {place for place, _ in here.values()}
    last = max(found)
    words = frozenset(token.lower for token in tokens(question, 0, len(question)))
    return [
        place
        for place in places
        if place not in found
        and not (statement.tokens[place].lower in _EXCEPTS and (place > last or statement.tokens[place].lower in words))
    ]


def _is_topic(word: str, asked: Asked, question: str, stated: Stated) -> bool:
    """Return whether a word behind a preposition is what a passage begins with: "… for the scooter"."""
    before = r"\b(?:for|of|in|at|on|with|from|to)\b[^,;?]{0,20}\b"
    behind = re.search(before + re.escape(asked.words[word]), question, re.I)
    return bool(behind) and any(word in one.terms for one in stated.firsts)


def _clauses(here: dict[str, tuple[int, bool]], statement: Statement) -> list[int]:
    """Return the tokens of the clauses that the question's words stand in; of its subject's alone where that denies."""
    clauses = {statement.clauses[place] for place, _ in here.values()}
    first = next(iter(here.values()))[0]
    own = statement.clause(first)
    if statement.negations(list(own)) and len(clauses) > 1:
        return list(own)
    within = range(min(clauses), max(clauses) + 1)
    return [place for place, clause in enumerate(statement.clauses) if clause in within]


def _fits(question: str, statement: Statement) -> bool | None:
    """Return whether the question's figures are within those of the statement; None where that is not clear."""
    asked = quantities(in_digits(question.partition(" ")[2]))  # "May I" is no month.
    aged = [float(found[1] or found[2]) for found in _AGE.finditer(in_digits(question))]
    if aged:
        return _fits_age(aged[0], statement)
    for one in asked:
        if any(map(one.same, statement.quantities)) or is_rate(one):
            continue
        known = [other for other in statement.quantities if not is_rate(other)]
        rivals = [other for other in known if one.rivals(other) or _counts_alike(one, other)]
        if not rivals:
            return None
        if one.unit in ("month", "weekday") or one.unit.startswith("day of"):
            return None
        found = [_within(one, question.partition(" ")[2], other, statement.text) for other in rivals]
        if len(rivals) > 1 and len(set(found)) > 1:
            return None
        if not found[0]:
            return False
    return True


def _counts_alike(one: Quantity, other: Quantity) -> bool:
    return not one.unit and not other.unit and (not one.noun or not other.noun)


def _bound(text: str, start: int, end: int) -> str:
    before, after = text[max(0, start - 24) : start], text[end : end + 24]
    if _LOWER_BEFORE.search(before) or _LOWER_AFTER.search(after):
        return "lower"
    if _UPPER_BEFORE.search(before) or _UPPER_AFTER.search(after):
        return "lower" if _AHEAD.search(after) else "upper"
    return ""


def _end(text: str, one: Quantity) -> int:
    found = re.compile(r"[\d.,]*\d").search(text, one.start)
    return found.end() if found else one.start


def _within(one: Quantity, question: str, other: Quantity, text: str) -> bool | None:
    """Return whether a figure of the question is within the bound of a statement, or the other way round."""
    theirs = _bound(text, other.start, _end(text, other))
    asked = in_digits(question)
    ours = _bound(asked, one.start, _end(asked, one))
    value, stated = one.value, other.value
    if not (one.unit or other.unit) and re.search(r"newer|later", text):
        value, stated = _version(asked, one), _version(text, other)
    if theirs == "upper":
        return value <= stated
    if theirs == "lower":
        return value >= stated
    if ours == "lower":
        return stated >= value
    return stated <= value if ours == "upper" else False


def _version(text: str, one: Quantity) -> float:
    found = re.compile(r"(\d+)(?:\.(\d+))?").search(text, one.start)
    return int(found[1]) * 1000.0 + int(found[2] or 0) if found else one.value


def _fits_age(age: float, statement: Statement) -> bool | None:
    text = statement.text
    if between := re.search(r"\b(\d+)(?: and | to |\s?[-–]\s?)(\d+)\b", text):
        return float(between[1]) <= age <= float(between[2])
    for found in re.finditer(r"\d+", text):
        bound = _bound(text, found.start(), found.end())
        if bound:
            return age <= float(found[0]) if bound == "upper" else age >= float(found[0])
    return None
