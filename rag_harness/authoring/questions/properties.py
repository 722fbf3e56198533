"""Sentences that say what a thing is, what it does, and what must not be done with it."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.askable import FactParts, can_be_asked, tells_apart
from rag_harness.authoring.questions.clauses import clause
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.verbs import ASKED_OF
from rag_harness.words.terms import terms

LEAST_SAID = 3
"""How many content words a yes-or-no question needs: "do I have to do anything" asks for nothing."""
_DEFINING = re.compile(r"(?:an? |one of |the (?:process|way|time|part|place|number|amount|name|share|sum|set) )")
_AFTER = {"default": "to", "depend": "on", "refer": "to", "lead": "to", "stand": "for"}
_SAYING = frozenset(("mean", "say", "tell", "show", "indicate", "suggest", "ensure", "require"))
_PLACE = re.compile(r"(?:to|in|on|at|for|with|from|by|as|of|how|into|over|out|up|per|when|only)\b")
_PERCEIVED = re.compile(r"(?:hear|see|notice|be|have|get|need|want|know|find)\b")
"""Verbs after which "may not" means that something is possible, not that it is forbidden."""
_HALF = re.compile(r"^(?:just|only|necessarily|yet|even|always)\b|\b(?:and|because)\b")


def definition(text: str) -> FactParts:
    """Return the definition of a term."""
    found = clause(text)
    if found is None or found.auxiliary not in ("is", "are") or found.negated or not _DEFINING.match(found.rest):
        return None
    if (
        not tells_apart(found.subject)
        or len(found.subject.split()) > 5
        or len(found.rest.split()) < 5
        or found.subject.startswith(("the ", "you"))
    ):
        return None
    _, _, answer = text.partition(f" {found.auxiliary} ")
    return "definition", answer, {"term": found.subject, "be": found.auxiliary}


def stated_property(text: str) -> FactParts:
    """Return what a thing does, by its verb and object."""
    found = clause(text)
    if found is None or found.negated or found.auxiliary not in ("does", "do") or found.subject in ("you", "we"):
        return None
    verb, _, thing = found.rest.partition(" ")
    if verb in _AFTER:
        thing = thing.removeprefix(f"{_AFTER[verb]} ") if thing.startswith(f"{_AFTER[verb]} ") else ""
    if verb not in ASKED_OF or not _is_thing(thing, verb) or not tells_apart(found.subject):
        return None
    parts = re.split(r" (?=(?:when|if|unless|until) )", thing, maxsplit=1)
    when = parts[1] if len(parts) == 2 and can_be_asked(parts[1]) else ""
    asked = {"do": found.auxiliary, "subject": found.subject, "verb": verb, "after": _AFTER.get(verb, ""), "when": when}
    return "property", parts[0] if when else thing, asked


def _is_thing(thing: str, verb: str) -> bool:
    """Whether the words after a verb are its object, and mean something alone."""
    elsewhere = POINTING.search(thing) or _PLACE.match(thing) or (thing.startswith("that ") and verb not in _SAYING)
    return not elsewhere and len(thing.split()) > 1


def permission(text: str) -> FactParts:
    """Return what cannot, must not or does not happen."""
    found = clause(text)
    if found is None or found.auxiliary in ("was", "were", "did", "had", "would") or not can_be_asked(found.rest):
        return None
    if found.auxiliary == "may" and _PERCEIVED.match(found.rest):
        return None
    if not found.negated or len(found.rest.split()) < 3 or _HALF.search(found.rest):
        return None
    if len(terms(found.asked)) < LEAST_SAID:
        return None
    return "permission", text, {"asked": found.asked, "subject": found.subject}
