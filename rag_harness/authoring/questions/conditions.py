"""Sentences that say what happens under a condition, and how something is done."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.askable import FactParts, can_be_asked, does, tells_to_do
from rag_harness.authoring.questions.clauses import clause
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.words.terms import terms

_CONDITION = re.compile(r"(if|when|whenever|once|as soon as|unless) ([^,;:]{6,140}), (?:then )?(\S[^\n]{8,300})$")
_CONDITION_BEHIND = re.compile(r"([^,;:]{8,160}?) (if|when|unless|once) ([^,;:()—–]{6,120})\.$")
_PURPOSE = re.compile(r"(?:to|in order to) ([a-z][\w-]+ [^,;:]{4,120}), (\S[^\n]{8,300})$")
_WANTED = re.compile(r"(?:if|when) you(?:'d like| want| need| wish|'re looking)? to ([^,;:]{6,120}), (\S[^\n]{8,300})$")
_USED = re.compile(
    r"((?:use|call|pass|set|add|subclass|install|run|implement|press|enter|select|choose|open) [^,;:]{2,80}?)"
    r" to ([a-z]+ [^,;:]{5,140})\.$"
)
_BY = re.compile(r"you can(?: also)? ([a-z]+ [^,;:]{4,100}?) ((?:by [a-z]+ing|with|using|via|through) [^;]{4,160})\.$")
_NO_MAIN = re.compile(r"(?:or|and|but|then|though|that|which|who|where|as|not|so|because|for example|e\.g\.)\b", re.I)
_WISH = re.compile(r"you(?:'d| would)? (?:want|need|like|prefer|wish)\b", re.I)
_IF = re.compile(r"\b(?:if|when|because|rather than)\b")
_NO_OUTCOME = re.compile(
    r"\b(?:only|not|never)\b|n['’]t\b|\b(?:wonder|check|ask|asks|know|see|tell|tells|decide|decides|determines?|sure"
    r"|find out|say|controls?|unclear|matter|choose|chooses|let us know)$"
)
"""Expressions in "… if …" with which it means "whether" or "only if"."""
_ASKED_BY = (
    (re.compile(r"you (?:can|may|could|'re allowed)\b(?!['’]t| not)", re.I), "what can I do"),
    (re.compile(r"you (?:must|have to|need to|should|'ll need to)\b(?! not)", re.I), "what do I have to do"),
    (re.compile(r"you (?:get|receive|earn|pay|need|lose)\b", re.I), "what do I {0}"),
    (re.compile(r"you (?:can['’]t|cannot|may not|don['’]t)\b", re.I), "what happens"),
)


def wanted_purpose(text: str) -> FactParts:
    """Return the purpose of "if you want to …, do …"."""
    match = _WANTED.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) else None


def condition(text: str) -> FactParts:
    """Return the condition of "if …, …"."""
    match = _CONDITION.match(text)
    if not match or not can_be_asked(match[2]) or POINTING.match(match[3]) or _NO_MAIN.match(match[3]):
        return None
    if len(terms(match[2])) < 2 or (match[1] == "if" and re.match(r"\w+ing\b", match[2])):
        return None
    asked = "what should I do" if _WISH.match(match[2]) else _asked_of(match[3])
    return "condition", match[3], {"when": match[1], "condition": match[2], "asked": asked}


def condition_behind(text: str) -> FactParts:
    """Return the condition of "… if …"."""
    match = _CONDITION_BEHIND.match(text)
    if not match or not can_be_asked(match[3]) or POINTING.search(match[1]):
        return None
    if (
        clause(match[1]) is None
        or _NO_OUTCOME.search(match[1])
        or not (clause(match[3]) or match[3].startswith(("you ", "we ")))
    ):
        return None
    return "condition", match[1], {"when": match[2], "condition": match[3], "asked": _asked_of(match[1])}


def purpose(text: str) -> FactParts:
    """Return the purpose of "to …, do …"."""
    match = _PURPOSE.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) else None


def used(text: str) -> FactParts:
    """Return the purpose of "use … to …"."""
    match = _USED.match(text)
    if not match or not does(match[2]) or POINTING.search(match[1]) or _IF.search(f"{match[1]} {match[2]}"):
        return None
    return "purpose", match[1], {"purpose": match[2]}


def by(text: str) -> FactParts:
    """Return the purpose of "you can … by …"."""
    match = _BY.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and does(match[1]) and " to " not in match[1] else None


def _asked_of(main: str) -> str:
    """Return the question for a main clause: what to do, what one can do, what one gets, or what happens."""
    for pattern, asked in _ASKED_BY:
        if pattern.match(main):
            return asked.format(main.split()[1])
    return "what should I do" if tells_to_do(main) else "what happens"
