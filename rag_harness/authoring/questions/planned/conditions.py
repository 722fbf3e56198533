"""Question words for a value that is a condition, a way, a person or a thing."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.planned.statement import PlannedStatement
from rag_harness.authoring.questions.planned.value_questions import QuestionWords
from rag_harness.authoring.questions.verbs import THIRD
from rag_harness.authoring.questions.wordlists import word_set

_ONLY = re.compile(r"(?:^| )only(?=$| (?:to|for|with|by|in|on|at|if|when|after|from|during)\b)")
_PLACES = (
    r"when|if|unless|while|without|with|by|for|to|from|of|in|on|at|after|before|until|during|under|near|below|as|except"
    r"|because|behind|beside|above|inside|outside|next to|in front of"
)
_LAST = re.compile(rf"(?:^|(?<= ))({_PLACES})$")
_FIRST = re.compile(rf"({_PLACES})\b")
_CLAUSE = re.compile(r"\b(?:when|if|because|that|who|which|unless)\b")
_TIME = re.compile(
    r"\b(?:days?|weeks?|months?|years?|hours?|night|noon|midnight|morning|evening|afternoon|weekends?|season|holidays?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|closing|once|twice|spring|summer|autumn|winter|request)\b",
    re.I,
)
_OFTEN = re.compile(r"(?:once|twice|every|each)\b|\w+ times? (?:an?|per|each)\b")
_MEANS = word_set(
    "e-mail email telephone phone post letter card message form app hand car train note certificate signature"
)
_PERSONS = re.compile(
    r"\b(?:members?|customers?|users?|staff|holders?|leads?|owners?|persons?|employees?|insurers?|security|police"
    r"|personnel|managers?|those|anyone|everyone|everybody|nobody|dealers?|companies|children|drivers?|carriers?"
    r"|payroll|officers?|colleagues?|deputy|deputies|doctors?|buyers?|guests?|students?|council)\b",
    re.I,
)
_STAYS = word_set("kept stored held worn set found shown parked posted filed collected located put left taken")
_ALLOWED = re.compile(
    r"(?:possible|welcome|allowed|granted|permitted|valid|normal|free|final|paid|refunded|given back|accepted|approved"
    r"|compensated|covered|credited|included|replaced|exchanged|cancelled|count\b.*)$"
)
_FOR = re.compile(r"(as long as|an? (?:day|week|month|year)\b)|(?:each|every)\b")
_ADMITTED = re.compile(r"(?:possible|welcome|allowed|granted|permitted|valid|given back|accepted|approved)$")
_THINGS = re.compile(r"(?:need|require|include|cover|leave out|exclude|get|receive|show|use|hand in|offer|bring|have)$")
_DONE = re.compile(r"(?:(?!open\b)\w{1,40}(?:ed|en)|kept|reset|lost|sent|made|put|sold|held|left|paid)\b")
_DETERMINED = re.compile(r"(?:an?|the|your|our|my|all|each|every|no|two|three|any|one)\b")
_STATE = re.compile(r"(?:on|off|in|up|under way) (?:for|until|when|if|by)\b")
"""The start of a state: "on for installers" is no place."""
_NEVER = re.compile(r"(?:never|always|half|not)\b")
_CONDITION = "in which cases"


def asked_for_condition(value: str, said: PlannedStatement) -> QuestionWords | None:
    """Return the words that ask for a value that is no figure; None if none would be right for certain."""
    if not said.auxiliary:
        return _doing(value, said)
    before, after = _ONLY.sub("", said.before).strip(), said.after.removeprefix("only").strip()
    alone = (before, after) != (said.before, said.after)
    stands = _LAST.search(before)
    rest = before[: stands.start()].strip() if stands else before
    if _CLAUSE.search(rest):
        return None
    if stands:
        return _asked(stands[1], value, rest, after, said, alone)
    begins = _FIRST.match(value)
    if begins and (begins[1] == "of" or _STATE.match(value)):
        return None
    if begins:
        return _asked(begins[1], value.removeprefix(begins[1]).strip(), before, after, said, alone)
    return _without_place(value, before, after, said)


def _doing(value: str, said: PlannedStatement) -> QuestionWords | None:
    """Return the question for a value that is the verb and what follows: "stops at once", "are lost at once"."""
    first = value.split(maxsplit=1)[0]
    if first in ("is", "are"):
        return QuestionWords("what happens to", "", said.after, whole=True)
    verb = first in THIRD or re.fullmatch(r"[a-z]{2,}[^s]s", first)
    return QuestionWords(f"what does {said.subject} do", "", said.after, whole=True) if verb else None


def _asked(place: str, thing: str, rest: str, after: str, said: PlannedStatement, alone: bool) -> QuestionWords | None:
    """Return the question for "``place`` ``thing``" after ``rest``; ``alone``: whether "only" was there."""
    if place in ("when", "while", "after", "before", "until", "during", "because"):
        return QuestionWords({"until": "until when", "because": "why"}.get(place, "when"), rest, after)
    if place == "without" and _last(rest) in _STAYS:
        return QuestionWords("how", rest, after)
    if place in ("if", "unless", "except", "without", "as", "under"):
        return QuestionWords(_CONDITION, rest, after)
    if place == "by":
        by_means = _MEANS & set(thing.split()) or thing.split(maxsplit=1)[0].endswith("ing")
        return QuestionWords("how" if by_means else "by whom", rest, after)
    if place in ("with", "for", "from", "to", "of"):
        return _with(place, thing, rest, after, said)
    return _where(place, thing, rest, after, said, alone)


def _with(place: str, thing: str, rest: str, after: str, said: PlannedStatement) -> QuestionWords | None:
    if place == "for" and (found := _FOR.match(thing)):
        return QuestionWords("for how long" if found[1] else _CONDITION, rest, after)
    allowed = {"with": _ADMITTED, "for": _ALLOWED}.get(place)
    admitted = (allowed and allowed.search(rest)) or (said.auxiliary in ("may", "can") and place == "with")
    if admitted and "not" not in rest.split():
        return QuestionWords(_CONDITION, rest, after)
    if not rest:
        return None
    if _PERSONS.search(thing):
        return QuestionWords(f"{place} whom", rest, after)
    is_way = place == "with" and _last(rest) in _STAYS
    return QuestionWords("how", rest, after) if is_way else QuestionWords("what", f"{rest} {place}", after)


def _last(words: str) -> str:
    return words.rsplit(maxsplit=1)[-1] if words else ""


def _where(place: str, thing: str, rest: str, after: str, said: PlannedStatement, alone: bool) -> QuestionWords | None:
    if _TIME.search(thing):
        return QuestionWords("when", rest, after)
    if (
        (place == "at" and not alone)
        or _last(rest) in _STAYS
        or (not rest and said.auxiliary in ("is", "are"))
        or rest.startswith("not ")
    ):
        return QuestionWords("where", rest, after)
    is_way = said.auxiliary in ("must", "should") and not alone
    return QuestionWords("how" if is_way else _CONDITION, rest, after)


def _without_place(value: str, before: str, after: str, said: PlannedStatement) -> QuestionWords | None:
    if _OFTEN.match(value):
        return QuestionWords("how often", before, after)
    first = value.split(maxsplit=1)[0]
    if not before and said.auxiliary in ("must", "may", "can", "should") and first.islower():
        return QuestionWords("what", "do", after)
    if not before and said.auxiliary in ("is", "are") and _DONE.match(value):
        return QuestionWords("what happens to", "", after, whole=True)
    if _NEVER.match(value) or not before:
        return QuestionWords("what", "", after) if _DETERMINED.match(value) and not before else None
    if _THINGS.search(before) or _DETERMINED.match(value):
        return QuestionWords("what", before, after)
    return QuestionWords("how", before, after) if said.auxiliary in ("is", "are") and _DONE.search(before) else None
