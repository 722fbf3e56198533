"""Finds the question for a number in a clause: how long, how much, how many, until when."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.clauses import Clause
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.verbs import THIRD
from rag_harness.authoring.questions.wordlists import word_set

_NUMBER = r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|fifteen|twenty|thirty|sixty)"
_TIME = (
    r"(?:(?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|seasons?))"
)
_DURATION = rf"{_NUMBER}(?: to {_NUMBER}|[–-]{_NUMBER})?[ -]{_TIME}"
_MONEY = r"(?:[€$£] ?\d[\d.,]*|\d[\d.,]* ?(?:€|euros?|dollars?|pounds?|EUR|USD|GBP|cents?))"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WHEN = rf"(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}}:\d{{2}}|\d{{4}}-\d\d-\d\d)"
_LAST = r"(?=$| (?:if|when|unless|after|before|from|of|by|in|at|on|for|to|with|per|because|once|as|during|without)\b)"
_MOST = r"(?:up to|at most|a maximum of|no more than)"

_ASKED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), asked)
    for pattern, asked in (
        (rf"^(?:take|last|stay) {_MOST} (?P<q>{_DURATION}){_LAST}", "how many {unit} at most"),
        (rf"^(?:take|last|stay) (?:about |only |at least )?(?P<q>{_DURATION}){_LAST}", "how many {unit}"),
        (rf"^cost (?:only |just |another )?(?P<q>{_MONEY}){_LAST}", "how much"),
        (rf" within (?P<q>{_DURATION}){_LAST}", "within how many {unit}"),
        (rf" every (?P<q>{_DURATION}){_LAST}", "how often"),
        (rf" for {_MOST} (?P<q>{_DURATION}){_LAST}", "for how many {unit} at most"),
        (rf" for (?:at least )?(?P<q>{_DURATION}){_LAST}", "for how many {unit}"),
        (rf" after (?P<q>{_DURATION}){_LAST}", "after how many {unit}"),
        (rf" until (?P<q>{_WHEN}){_LAST}", "until when"),
        (rf" by (?P<q>{_WHEN}){_LAST}", "by when"),
        (rf" from (?P<q>{_WHEN}){_LAST}", "from when"),
        (rf" since (?P<q>{_WHEN}){_LAST}", "since when"),
        (rf" (?:at|on) (?P<q>{_WHEN}){_LAST}", "when"),
        (rf" {_MOST} (?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun} at most"),
        (rf" (?:only |at least |exactly )?(?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun}"),
        (rf"^have (?:only |at least )?(?P<q>{_NUMBER} (?P<noun>[a-z]+s)){_LAST}", "how many {noun}"),
    )
)
_TIMES = word_set("second minute hour day night week month year")
_LONE = re.compile(rf"(?:about |only |{_MOST} |at least )?(?P<q>{_MONEY}|{_DURATION}|\d[\d.,]*(?: [a-z]+)?)$", re.I)
_OPEN = re.compile(
    r"\b(?:of|with|to|from|by|in|at|and|or|than|the|a|an|for|only|per|least|most|until|after|on|over|under|within|into"
    r"|about|as|between|next|last|first|another|is|are|be|within|these|those|any|all|exactly|through)$",
    re.I,
)


def quantity(found: Clause) -> tuple[str, str, dict[str, str]] | None:
    """Return kind, answer and parts of the question for the number in a clause; None if there is no question."""
    if POINTING.search(found.rest) or "," in found.rest or len(found.rest.split()) > 20:
        return None
    lone = _LONE.match(found.rest)
    if lone and found.auxiliary in ("is", "are", "was"):
        how = "how much" if re.match(_MONEY, lone["q"]) else "what"
        return "quantity", lone["q"], {"asked": f"{how} {found.auxiliary} {found.subject}", "subject": found.subject}
    for pattern, asked in _ASKED:
        match = pattern.search(found.rest)
        if match:
            return _question(found, match, asked)
    return None


def _question(found: Clause, match: re.Match[str], asked: str) -> tuple[str, str, dict[str, str]] | None:
    before, after = found.rest[: match.start()].strip(), found.rest[match.end() :].strip()
    if not before:
        before = match[0].split()[0]
    if _OPEN.search(before) or re.search(r"\d|\b(?:and|does|do|is|are)\b", f"{before} {after}"):
        return None
    if match.groupdict().get("noun") in THIRD:
        return None
    unit = match["q"].split()[-1].split("-")[-1]
    words = {"unit": unit if unit.endswith("s") else f"{unit}s", "noun": match.groupdict().get("noun") or ""}
    front = asked.format(**words)
    if after.startswith(("of ", "to ")) or (unit.rstrip("s") in _TIMES and after.startswith(("after ", "before "))):
        front, after = f"{front} {after}", ""
    said = f"{front} {found.auxiliary} {found.subject} {before} {after}".strip()
    return "quantity", match["q"], {"asked": said, "subject": found.subject}
