"""A clause with a number in it -> what would be asked for: how long, how much, how many, until when."""

from __future__ import annotations

import re

from rag_harness.questions.english import POINTING, Clause

_NUMBER = r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|fifteen|twenty|thirty|sixty)"
_TIME = r"(?:(?:working |business |calendar )?(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|seasons?))"
_DURATION = rf"{_NUMBER}(?: to {_NUMBER}|[–-]{_NUMBER})?[ -]{_TIME}"
_MONEY = r"(?:[€$£] ?\d[\d.,]*|\d[\d.,]* ?(?:€|euros?|dollars?|pounds?|EUR|USD|GBP|cents?))"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WHEN = rf"(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}}:\d{{2}}|\d{{4}}-\d\d-\d\d)"
_LAST = r"(?=$|[,;.:—–]| (?:if|when|unless|after|before|from|of|and|or|by|in|at|on|for|to|with|per|because|so|once|as)\b)"

_ASKED: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (kind, re.compile(pattern, re.I), asked)
    for kind, pattern, asked in (
        ("duration", rf" within (?P<q>{_DURATION}){_LAST}", "Within how many {unit}"),
        ("duration", rf" every (?P<q>{_DURATION}){_LAST}", "How often"),
        ("duration", rf" (?:for )?(?:up to|at most|a maximum of|no more than) (?P<q>{_DURATION}){_LAST}", "For how many {unit} at most"),
        ("duration", rf" for (?:at least )?(?P<q>{_DURATION}){_LAST}", "For how many {unit}"),
        ("duration", rf" after (?P<q>{_DURATION}){_LAST}", "After how many {unit}"),
        ("duration", rf"^(?:take|last|stay) (?:about |only |up to |at least )?(?P<q>{_DURATION}){_LAST}", "How many {unit}"),
        ("money", rf"^cost (?:only |just |another )?(?P<q>{_MONEY}){_LAST}", "How much"),
        ("money", rf" (?:of |up to |at least |from )(?P<q>{_MONEY}){_LAST}", ""),
        ("date", rf" until (?P<q>{_WHEN}){_LAST}", "Until when"),
        ("date", rf" by (?P<q>{_WHEN}){_LAST}", "By when"),
        ("date", rf" (?:at|on|from|since) (?P<q>{_WHEN}){_LAST}", "When"),
        ("number", rf" (?:only |at most |up to |at least |exactly )?(?P<q>{_NUMBER} (?P<noun>times|[a-z]+s)){_LAST}", "How many {noun}"),
    )
)
_LONE = re.compile(rf"(?:about |only |at most |up to |at least )?(?P<q>{_MONEY}|{_DURATION}|\d[\d.,]*(?: [a-z]+)?)$", re.I)
_DANGLING = re.compile(r"\b(?:of|with|to|from|by|in|at|and|or|than|the|a|an|for|only|per|least|most|until|after)$", re.I)


def quantity(found: Clause) -> tuple[str, str, dict[str, str]] | None:
    """Return kind, answer and parts of the question that asks for the number in a clause, if one can be asked."""
    if POINTING.search(found.rest) or "," in found.rest or len(found.rest.split()) > 20:
        return None
    lone = _LONE.match(found.rest)
    if lone and found.auxiliary in ("is", "are", "was"):
        how = "How much" if re.match(_MONEY, lone["q"]) else "What"
        return "quantity", lone["q"], {"asked": f"{how} {found.auxiliary} {found.subject}", "body": ""}
    for kind, pattern, asked in _ASKED:
        match = pattern.search(found.rest)
        if match and asked:
            return _question(found, kind, match, asked)
    return None


def _question(found: Clause, kind: str, match: re.Match[str], asked: str) -> tuple[str, str, dict[str, str]] | None:
    before, after = found.rest[: match.start()], found.rest[match.end() :]
    before = before or match[0].strip().split()[0]
    if _DANGLING.search(before.strip()) or re.search(r"\d", before + after):
        return None
    unit = match["q"].split()[-1].split("-")[-1]
    words = {"unit": unit if unit.endswith("s") else f"{unit}s", "noun": match.groupdict().get("noun") or ""}
    front = asked.format(**words)
    question = f"{front} {found.auxiliary} {found.subject} {before.strip()}{after.rstrip('.')}"
    return "quantity", match["q"], {"asked": question, "unit": kind, "body": before}
