"""The facts of a plan at their places in the pages, and their wording as questions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rag_harness.authoring.kb.page import fold
from rag_harness.authoring.kb.plan import PLAN_FILE, PlannedFact, PlanPage, read_plan
from rag_harness.authoring.questions.english import AUXILIARIES, BASES, THIRD, asked_by_reader, lower_first, word_set
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.sentence_facts import QuotablePassage, passages
from rag_harness.core.types import Document

MOST_SAY = 0.6
"""The share of a page's statements that must name a thing for the page to be about it."""
_NO_EDGE = word_set("a an the of in for with at to on by from and or your our after")


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact and the thing that it is about; ``frame`` is its statement without the thing and the value."""

    fact: PlannedFact
    thing: str
    frame: str

    def of(self, other: str) -> PlannedFact:
        """Return the fact as it would be stated about another thing. Its value is not true of that thing."""
        named = re.compile(re.escape(self.thing), re.I)
        told = {name: named.sub(lambda _: other, getattr(self.fact, name)) for name in ("statement", "subject")}
        return self.fact.model_copy(update=told)


def thing_of(page: PlanPage) -> str:
    """Return the thing of a page: the longest words of its title that most statements have; "" if there is none."""
    words = [word.strip(".,:;") for word in (page.title or "").split()]
    said = [fact.statement for fact in page.facts or ()]
    for run in _runs(words):
        found = [match for text in said if (match := _written(run, text))]
        if len(found) >= max(2, MOST_SAY * len(said)):
            return min(found, key=lambda each: (each[0].isupper(), each))
    return ""


def _runs(words: list[str]) -> Iterator[str]:
    """Yield runs of words, the longest first, that neither begin nor end with a small word."""
    for length in range(len(words), 0, -1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            if not {run[0].casefold(), run[-1].casefold()} & _NO_EDGE:
                yield " ".join(run)


def _written(run: str, text: str) -> str:
    """Return words as a text writes them; empty if the text does not have them."""
    if run.casefold() not in text.casefold():
        return ""
    found = re.search(rf"(?<!\w){re.escape(run)}(?!\w)", text, re.I)
    return found[0] if found else ""


def told_facts(page: PlanPage, thing: str) -> dict[str, ToldFact]:
    """Return what a page states about a thing, by frame."""
    found = {}
    for fact in page.facts or ():
        bare, named = re.subn(re.escape(thing), "{}", fact.statement, flags=re.I)
        if named == 1 and bare.count(fact.value) == 1:
            frame = bare.replace(fact.value, "[]")
            found[frame] = ToldFact(fact, thing, frame)
    return found


def called(page: PlanPage, thing: str) -> str:
    """Return a thing's name as the statements of its page write it, with their article if they use one."""
    named = re.compile(rf"\bthe {re.escape(thing)}", re.I)
    return f"the {thing}" if any(named.search(fact.statement) for fact in page.facts or ()) else thing


GAP = "[…]"
_FRONT = re.compile(r"((?:after|at|before|during|for|from|in|on|to|under|with) [^,\[]+), (.+)$", re.I)
_OTHER_CLAUSE = re.compile(r",? and (?:is|are|was|were|can|may|must)\b[^\[]*$")
_OPENING = word_set("After At Before During For From In On To Under With")
_RELATIVE = word_set("that which who whoever whatever whose where when if because")
_NO_THIRD = word_set("always besides towards afterwards this its us plus versus less")
_FORWARD = 8
"""Within so many words after its subject, a statement's verb is searched for."""


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """``front``, ``subject`` ``auxiliary`` ``before`` GAP ``after``; the gap may be in ``subject`` instead.

    ``auxiliary`` is a form of do if the statement has a plain verb; ``before`` then begins with the verb's base form.
    ``auxiliary`` is empty if the value itself is the verb.
    """

    front: str
    subject: str
    auxiliary: str
    before: str
    after: str

    @property
    def in_subject(self) -> bool:
        """Whether the value is a part of the subject."""
        return GAP in self.subject


def read_statement(fact: PlannedFact, names: Collection[str]) -> PlannedStatement | None:
    """Return the parts of a fact's statement; None if they are not certain, or the value occurs twice."""
    text = _lowered(" ".join(fact.statement.split()).rstrip(".!"), names)
    places = list(re.finditer(rf"(?<!\w){re.escape(fact.value)}(?!\w)", text))
    if len(places) != 1:
        return None
    with_gap = f"{text[: places[0].start()]}{GAP}{text[places[0].end() :]}"
    found = _FRONT.match(with_gap)
    front, main = (found[1], lower_first(found[2], names)) if found else ("", with_gap)
    main = _OTHER_CLAUSE.sub("", main)
    if main.split()[0].lower() in _RELATIVE:
        return None
    return _divided(front, main.split(), _subject_in(main, fact))


def _lowered(text: str, names: Collection[str]) -> str:
    """Return a text with a small first letter, unless its first word is a name. "Pre-ordered" is not a name."""
    said = lower_first(text, names)
    first = said.split(" ", 1)[0]
    compound = re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+|['’]s)", first) and first not in names
    return f"{said[:1].lower()}{said[1:]}" if compound or first in _OPENING else said


def _subject_in(main: str, fact: PlannedFact) -> range:
    """Return the places of the words that the plan calls the clause's subject; the first word if it has none."""
    subject = fact.subject.replace(fact.value, GAP)
    place = main.casefold().find(subject.casefold())
    return range(len(main[:place].split()), len(main[: place + len(subject)].split())) if place >= 0 else range(1)


def _divided(front: str, words: list[str], subject: range) -> PlannedStatement | None:
    """Return the parts, split at the verb after the plan's subject, else at the first verb before it."""
    end = subject.stop
    for at in (*range(end, _gap_behind(words, end)), *range(1, min(end, len(words)))):
        is_verb = at not in subject or words[at] in AUXILIARIES
        verb = _verb_at(words, at) if at == end else _known_verb_at(words, at) if is_verb else None
        if verb is not None:
            return _with(front, words[:at], verb, words[at + 1 :])
    at = words.index(GAP) if GAP in words else 0
    return (
        PlannedStatement(front, " ".join(words[:at]), "", "", " ".join(words[at + 1 :]))
        if at in (end, end + 1)
        else None
    )


def _gap_behind(words: list[str], end: int) -> int:
    """Return the place of the gap after a subject; without a gap, the end of the search for a verb."""
    last = min(end + _FORWARD, len(words))
    return words.index(GAP, end, last) if GAP in words[end:last] else last


def _known_verb_at(words: list[str], at: int) -> tuple[str, str] | None:
    """Return the auxiliary and the base of a listed verb; None if the word is not one."""
    word, following, before = words[at], words[at + 1] if at + 1 < len(words) else "", words[at - 1].lower()
    if before in _RELATIVE or not following:
        return None
    if word in ("has", "have") and not (following == "been" or following.endswith("ed")):
        return ("does" if word == "has" else "do"), "have"
    if word in AUXILIARIES:
        return word, ""
    if before in _BEFORE_NOUNS or _in_relative(words[:at]):
        return None
    many = is_many(words[:at])
    if word in THIRD and not many:
        return "does", THIRD[word]
    return ("do", word) if many and word in BASES | _PLAIN else None


def _in_relative(before: list[str]) -> bool:
    return any(word in _RELATIVE for word in before)


def _verb_at(words: list[str], at: int) -> tuple[str, str] | None:
    """Return auxiliary and base of the word directly after a subject, where any verb may stand."""
    known = _known_verb_at(words, at)
    if known or at + 1 == len(words):
        return known
    word, many = words[at], is_many(words[:at])
    if not many and re.fullmatch(r"[a-z]{2,}[^s]s", word) and word not in _NO_THIRD:
        return "does", THIRD.get(word) or _base(word)
    return ("do", word) if many and word in BASES | _PLAIN else None


_PLAIN = word_set("attend include own work grow leave wear")
_BEFORE_NOUNS = word_set(
    "a an the of in for with at to on by from your our my each every this that any some no all two"
)
_PREPOSITION = re.compile(r"(?:of|in|for|with|at|to|on|by|from|because|under|after|during)$")


def is_many(subject: list[str]) -> bool:
    """Whether words are plural, judged by their head, which stands before the first preposition."""
    head = next((subject[at - 1] for at in range(1, len(subject)) if _PREPOSITION.match(subject[at])), subject[-1])
    return (
        head == GAP
        or head.lower() in ("children", "people", "persons", "data", "you", "we", "they")
        or (head.endswith("s") and not head.endswith(("ss", "us", "is")))
    )


def _base(third: str) -> str:
    if third.endswith("ies"):
        return f"{third[:-3]}y"
    return third[:-2] if re.search(r"(?:sh|ch|ss|x|zz)es$", third) else third[:-1]


def _with(front: str, subject: list[str], verb: tuple[str, str], rest: list[str]) -> PlannedStatement | None:
    said = " ".join(([verb[1]] if verb[1] else []) + rest)
    if GAP in " ".join(subject):
        return PlannedStatement(front, " ".join(subject), verb[0], said, "")
    before, gap, after = said.partition(GAP)
    return PlannedStatement(front, " ".join(subject), verb[0], before.strip(), after.strip()) if gap else None


_MONEY = re.compile(r"[€$£¥] ?\d[\d.,]*(?: (?:million|thousand))?|\d[\d.,]* ?(?:€|EUR|USD|GBP|euros?|dollars?|pounds?)")
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|\d{{4}}-\d\d-\d\d|{_MONTH} \d{{4}}"
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}|noon|midnight")
_COUNT = re.compile(r"(?:-?\d[\d.,]*|one|two|three|four|five|six)(?: to -?\d[\d.,]*)? ?(?P<unit>[^\d\s].*)")
_NUMBER = re.compile(r"\d[\d.,]*")
_UNITS = {
    "%": "percent", "W": "watts", "kW": "kilowatts", "kg": "kilograms", "g": "grams", "cm": "centimetres",
    "mm": "millimetres", "m": "metres", "km": "kilometres", "MB": "megabytes", "GB": "gigabytes", "dB": "decibels",
    "Nm": "newton metres", "°C": "degrees Celsius", "V": "volts", "ml": "millilitres", "l": "litres",
}  # fmt: skip
_BOUND = r"(?P<bound>at most|at least|up to|no more than|less than|more than|about|only|just)?"
_LEADS = re.compile(
    rf"(?:^|(?<= ))(?P<place>within|after|every|by|on|from|until|since|for|at|with|during|in|to|over|of|before)? ?"
    rf"{_BOUND}$"
)
_MEASURED = re.compile(r"(?:^|(?<= ))(?P<place>at |with |to |from )?(?:an?|the) (?P<noun>(?:[a-z]+ )?[a-z]+) of$")
_NAMED = re.compile(
    r"(?:^|(?<= ))(?P<place>by |from |in |at |on )?(?:the (?P<one>number|code)"
    r"|(?P<noun>day|week|month|page|line|age|level))$"
)
_BEHIND = re.compile(r"(?:of|away|wide|long|high|deep|ahead|higher|lower|older|per)\b|(?:an?|each|every) [a-z]+$")
_FROM_THEN = re.compile(r"(?:before|after) (?!.*\b(?:is|are|was|were|has|have|do|does|it|they)\b)")
_COMPARED = re.compile(r"(?:higher|lower|more|less|cheaper)\b")
_UNSAID = re.compile(r"\b(?:an?|the|extra)$|\b(?:when|if|because|that|who|which)\b")
_PARTICLE = re.compile(r"\b(?:handed in|asked for|applied for|filled in|looked for)$")
_BOUNDS = {"up to": "up to ", "no more than": "at most ", "at most": "at most ", "at least": "at least "}
_WHEN = {
    "on": "when", "at": "when", "": "when", "by": "by when", "until": "until when", "from": "from when",
    "since": "since when", "for": "for when", "after": "after what date", "before": "before what date",
}  # fmt: skip
_MADE = re.compile(r"\b(?:published|made|built|bought|sold)$")
_COPULAS = ("is", "are", "was", "were")


class QuestionWords(NamedTuple):
    """The question for a value: its first words, and the rest of the statement before and after the value.

    ``whole``: the words contain the verb, so the statement's auxiliary is not needed.
    """

    words: str
    before: str
    after: str
    whole: bool = False


def is_figure(value: str) -> bool:
    """Whether a value is a number, an amount or a date; "two buttons" and "once a year" are not."""
    return value[:1].isdigit() or bool(_MONEY.match(value)) or bool(re.match(r"-\d", value) or _DATE.fullmatch(value))


def asked_for(value: str, said: PlannedStatement) -> QuestionWords | None:
    """Return the words that ask for a figure; None if it stands where none can be asked for."""
    if _UNSAID.search(said.before):
        return None
    if _DATE.fullmatch(value) or _CLOCK.fullmatch(value):
        return _date(said)
    if _NUMBER.fullmatch(value):
        return _named(said)
    counted = _COUNT.fullmatch(value)
    if _MONEY.fullmatch(value) or (counted and counted["unit"].startswith("per ")):
        return _money(said, counted["unit"] if counted and counted["unit"].startswith("per ") else "")
    return _measured(said) or _count(counted["unit"], said, " to " in value) if counted else None


def unit_of(value: str) -> str:
    """Return the unit of a figure: "€", "days"; empty if the value is not a figure."""
    if _MONEY.fullmatch(value):
        return re.sub(r"[\d., ]", "", value)
    counted = _COUNT.fullmatch(value)
    return _unit(counted["unit"]) if counted and not _DATE.fullmatch(value) and " to " not in value else ""


def _unit(unit: str) -> str:
    first, *others = unit.split(" ", 1)
    if first in _UNITS:
        return " ".join((_UNITS[first], *others))
    singular = re.fullmatch(r"(?:[a-z-]+ )?[a-z-]+", unit) and not unit.endswith("s")
    return f"{unit}s" if singular and unit not in ("people", "feet", "staff") else unit


def _date(said: PlannedStatement) -> QuestionWords | None:
    place, _, before = _lead(said.before)
    if place not in _WHEN or (_MADE.search(before) and said.auxiliary not in ("is", "are", "was", "were", "has")):
        return None
    return QuestionWords(_WHEN[place], before, said.after)


def _money(said: PlannedStatement, per: str) -> QuestionWords | None:
    measured = _measured(said)
    if measured:
        return measured
    place, bound, before = _lead(said.before)
    front = _BOUNDS.get(bound, "")
    if per or place in ("from", "over", "by", "after", "until"):
        return QuestionWords(f"{place} {front}what amount {per}".strip(), before, said.after)
    if place == "of":
        return None
    kept = f"{place} " if place and place not in ("at", "on") else ""
    return QuestionWords(f"{kept}{front}how much", before, said.after)


def _count(unit: str, said: PlannedStatement, is_range: bool) -> QuestionWords | None:
    place, bound, before = _lead(said.before)
    if said.after.startswith("before") and _PARTICLE.search(f"{before} {place}"):
        place, before = "", f"{before} {place}"
    if place == "of":
        return None
    if said.auxiliary in _COPULAS and not (before or place or said.after) and bound in ("", "about"):
        return QuestionWords("what", "", "")
    if place == "every" and not said.after:
        return QuestionWords("how often", before, "")
    behind, after = _behind(said.after)
    return QuestionWords(
        " ".join(filter(None, (place, _BOUNDS.get(bound, "").strip(), _many(unit, behind, is_range)))), before, after
    )


def _behind(after: str) -> tuple[str, str]:
    """Split the words after a figure: those that belong to it ("of leave", "a week"), and the rest."""
    if after == "before":
        return "ahead", ""
    return (after, "") if _BEHIND.match(after) or _FROM_THEN.match(after) else ("", after)


def _many(unit: str, behind: str, is_range: bool) -> str:
    if unit == "%" and _COMPARED.match(behind):
        return f"by what percentage {behind}"
    what = {"%": "what percentage", "°C": "what temperatures" if is_range else "what temperature"}
    return f"{what.get(unit) or f'how many {_unit(unit)}'} {behind}".strip()


def _measured(said: PlannedStatement) -> QuestionWords | None:
    found = _MEASURED.search(said.before)
    if not found:
        return None
    return QuestionWords(
        f"{found['place'] or ''}what {found['noun']}", said.before[: found.start()].strip(), said.after
    )


def _named(said: PlannedStatement) -> QuestionWords | None:
    """Return the question for a bare number by the noun before it: "the number 4951", "from day 3"."""
    found = _NAMED.search(said.before)
    if not found:
        return None
    asked = f"what {found['one']}" if found["one"] else f"which {found['noun']}"
    behind, after = _behind(said.after)
    return QuestionWords(f"{found['place'] or ''}{asked} {behind}".strip(), said.before[: found.start()].strip(), after)


def _lead(before: str) -> tuple[str, str, str]:
    """Return the preposition and the bound at the end of a text, and the text without them."""
    found = _LEADS.search(before)
    if not found:
        return "", "", before
    place, bound = found["place"] or "", found["bound"] or ""
    return place, bound, before[: found.start()].strip()


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
"""The start of a state: "on for installers" is not a place."""
_NEVER = re.compile(r"(?:never|always|half|not)\b")
_CONDITION = "in which cases"


def asked_for_condition(value: str, said: PlannedStatement) -> QuestionWords | None:
    """Return the words that ask for a value other than a figure; None if no words are certain to be right."""
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
        return _condition_words(place, thing, rest, after, said)
    return _where(place, thing, rest, after, said, alone)


def _condition_words(place: str, thing: str, rest: str, after: str, said: PlannedStatement) -> QuestionWords | None:
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


def asked_of(fact: PlannedFact, names: Collection[str] = frozenset()) -> str:
    """Return the question for a planned fact, without a capital and a question mark; empty if there is none."""
    said = read_statement(fact, names)
    if said is None:
        return ""
    if said.in_subject:
        return _of_subject(fact.value, said)
    if is_figure(fact.value):
        found = asked_for(fact.value, said) if said.auxiliary else None
    else:
        found = asked_for_condition(fact.value, said)
    return asked_by_reader(_joined(found, said)) if found else ""


def _joined(found: QuestionWords, said: PlannedStatement) -> str:
    subject = "" if said.subject in found.words else said.subject
    parts = (found.words, "" if found.whole else said.auxiliary, subject, found.before, found.after)
    question = " ".join(" ".join(parts).split())
    return f"{said.front}, {question}" if said.front else question


def _of_subject(value: str, said: PlannedStatement) -> str:
    """Return the question for a value in the subject: "up to how many hours of overtime may stand on …"."""
    before, _, after = said.subject.partition(GAP)
    bare = PlannedStatement("", "", said.auxiliary, before.strip(), after.strip())
    found = asked_for(value, bare) if is_figure(value) else None
    if found is None or found.before or said.auxiliary == "does":
        return ""
    auxiliary = "" if said.auxiliary == "do" else said.auxiliary
    return asked_by_reader(" ".join(" ".join((found.words, found.after, auxiliary, said.before)).split()))


FACT_KIND_OF_PLANNED = {"amount": "amount", "date": "date", "limit": "limit", "condition": "rule"}
"""From kinds of planned facts to kinds of facts. A planned condition is a rule: "condition" is a kind found in
texts."""
ALIKE = 2
"""How many facts of two pages must be the same for the pages to be similar: all things have a weight."""
_NO_NAME = word_set("small medium large max min plus standard basic light normal big other early late day first third")
"""Names of table rows that mean nothing without the table's header: "the price of the large"."""


def planned_facts(folder: Path) -> dict[str, PlanPage]:
    """Return the pages of a folder's plan that have facts, by filename; empty if no plan can be read."""
    plan, _ = read_plan(folder / PLAN_FILE)
    return {page.filename: page for page in plan.pages if page.facts} if plan else {}


class PlannedPages:
    """The planned facts of pages.

    Args:
        pages: the pages with facts, by filename.
    """

    def __init__(self, pages: Mapping[str, PlanPage]) -> None:
        self._pages = pages

    def facts(self, document: Document, found: Sequence[Fact], names: Collection[str]) -> Sequence[Fact]:
        """Return the planned facts of a document, then those ``found`` in its text outside planned statements.

        For an unplanned page, return only what was found.
        """
        page = self._pages.get(document.doc_id)
        if page is None:
            return found
        stated = list(_stated(document, page.facts or ()))
        thing, names = self.things.get(document.doc_id, ""), self.names_of(document.doc_id) or names
        planned = filter(None, (_fact_with_question(document, *each, thing, names) for each in stated))
        starts = {passage.start for passage, _ in stated}
        others = (self._of_thing(fact, thing) if thing else fact for fact in found if fact.start not in starts)
        return [*planned, *filter(None, others)]

    def names_of(self, doc_id: str) -> frozenset[str]:
        """Return the words of the page's thing that have a capital; a question keeps it."""
        return frozenset(word for word in self.things.get(doc_id, "").split() if word[:1].isupper())

    def called(self, doc_id: str) -> str:
        """Return the name of a page's thing, as the page's statements use it."""
        return called(self._pages[doc_id], self.things[doc_id])

    def _of_thing(self, fact: Fact, thing: str) -> Fact | None:
        """Return a cell's fact. If the row's name has the thing in brackets, the thing goes to the question's end."""
        mark = re.compile(re.escape(f" ({thing})"), re.I)
        if not mark.search(fact.parts.get("asked", "")):
            return fact
        row = mark.split(fact.said)[0]
        if row.casefold() in _NO_NAME:
            return None
        asked = mark.sub("", fact.parts["asked"])
        if re.match(r"\S*\d", row):
            asked = re.sub(rf"(?<!\w){re.escape(row)}(?!\w)", lambda _: row, asked, flags=re.I)
        asked = f"{asked} for {self.called(fact.doc_id)}"
        return replace(fact, parts={**fact.parts, "asked": asked, "about": thing})

    @cached_property
    def things(self) -> Mapping[str, str]:
        """The thing that each page is about, by filename; pages about no single thing are left out."""
        found = ((name, thing_of(page)) for name, page in self._pages.items())
        return {name: thing for name, thing in found if thing}

    @cached_property
    def told(self) -> Mapping[str, Mapping[str, ToldFact]]:
        """What each page states about its thing, by filename and frame."""
        return {name: told_facts(self._pages[name], thing) for name, thing in self.things.items()}

    @cached_property
    def _saying(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, frames in self.told.items():
            for frame in frames:
                found[frame].append(name)
        return found

    @cached_property
    def _told_of_thing(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for name, frames in self.told.items():
            found[self.things[name]].update(frames)
        return found

    def untold(self, doc_id: str) -> list[PlannedFact]:
        """Return facts of similar pages that no page about this page's thing states, reworded for this thing.

        Facts that most similar pages state come first.
        """
        thing, own = self.things.get(doc_id, ""), self.told.get(doc_id, {})
        shared = Counter(name for frame in own for name in self._saying[frame] if name != doc_id)
        like = sorted(name for name, frames in shared.items() if frames >= ALIKE)
        counted = Counter(frame for name in like for frame in self.told[name])
        lacking = [frame for frame, _ in counted.most_common() if frame not in self._told_of_thing[thing]]
        return [self.told[self._saying[frame][0]][frame].of(thing) for frame in lacking]


def _stated(document: Document, facts: Sequence[PlannedFact]) -> Iterator[tuple[QuotablePassage, PlannedFact]]:
    """Yield the sentences that contain planned statements; bold and white space do not matter."""
    wanted = [(fold(fact.statement), fact) for fact in facts]
    for passage in passages(document):
        text = fold(passage.text)
        yield from ((passage, fact) for statement, fact in wanted if statement in text)


def _fact_with_question(
    document: Document, passage: QuotablePassage, planned: PlannedFact, thing: str, names: Collection[str]
) -> Fact | None:
    """Return a planned fact with its question; None if its statement gives none."""
    asked = asked_of(planned, names)
    if not asked:
        return None
    about = {"about": thing} if thing and thing.casefold() in asked.casefold() else {}
    parts = {"asked": asked, "subject": planned.subject, "id": planned.id, **about}
    place = (document.doc_id, passage.section, FACT_KIND_OF_PLANNED[planned.kind], passage.start, passage.end)
    return Fact(*place, document.text[passage.start : passage.end], planned.statement, planned.value, parts)
