"""Question words for a value that is a number with a unit, an amount of money or a date."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.authoring.questions.planned.statement import PlannedStatement

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
    """Return the unit of a figure: "€", "days"; empty if the value is no figure."""
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
