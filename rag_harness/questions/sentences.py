"""What a sentence states: a condition, a purpose, a definition, a property, a quantity, a permission."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rag_harness.questions.english import BASES, POINTING, Clause, clause
from rag_harness.questions.passages import Passage
from rag_harness.questions.quantities import quantity

Stated = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and what is said: see ``facts.Fact``."""

SHORTEST, LONGEST = 5, 45
"""Words of a sentence that is read."""
_CONDITION = re.compile(r"(If|When|Whenever|Once|As soon as|Unless) ([^,;:]{6,140}), (?:then )?(\S[^\n]{8,300})$")
_CONDITION_BEHIND = re.compile(r"([A-Z][^,;:]{8,160}?) (if|when|unless|once) ([^,;:()]{6,120})\.$")
_PURPOSE = re.compile(r"(?:To|In order to) ([a-z][\w-]+(?:-[a-z]+)? [^,;:]{4,120}), (\S[^\n]{8,300})$")
_WANTED = re.compile(r"(?:If|When) you(?:'d like| want| need| wish|'re looking)? to ([^,;:]{6,120}), (\S[^\n]{8,300})$")
_USED = re.compile(r"(Use|Call|Pass|Set|Add|Subclass|Install|Run|Implement|Press|Enter) ([^,;:]{2,80}?) to ([a-z]+ [^;:]{5,140})\.$")
_BY = re.compile(r"You can(?: also)? ([a-z]+ [^,;:]{4,100}?) (by [a-z]+ing|with|using|via|in|under|through) ([^;]{4,160})\.$")
_DEFINITION = re.compile(r"((?:The |An? )?[A-Z`][^,;:()]{1,60}?) (?:is|are) ((?:an? |the |one of )[^\n]{15,300})\.$")
_POINTER = re.compile(r"^(?:please )?(?:see|refer to|check out|read|visit|have a look|look at|follow)\b|\b(?:see|refer to) (?:also )?(?:the )?[A-Z\[]", re.I)
_IMPERATIVE = re.compile(r"(?:please |simply |just |always |never |do not |don't )*([a-z'-]+)", re.I)


def read_sentence(passage: Passage) -> Iterator[Stated]:
    """Yield what a sentence states, as kind, answer, parts and what is said."""
    text = passage.text
    if not text.endswith((".", "!")) or not SHORTEST <= len(text.split()) <= LONGEST or _POINTER.search(text):
        return
    for reads in _READERS:
        found = reads(text)
        if found:
            kind, answer, parts = found
            yield kind, answer, parts, text
            return


Found = tuple[str, str, dict[str, str]] | None


def _wanted(text: str) -> Found:
    match = _WANTED.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and _asks(match[1]) else None


def _condition(text: str) -> Found:
    match = _CONDITION.match(text)
    if not match or not _asks(match[2]) or POINTING.match(match[3]):
        return None
    does = "yes" if is_imperative(match[3]) else ""
    return "condition", match[3], {"when": match[1].lower(), "condition": match[2], "do": does}


def _condition_behind(text: str) -> Found:
    match = _CONDITION_BEHIND.match(text)
    if not match or not _asks(match[3]) or POINTING.search(match[1]) or is_imperative(match[1]):
        return None
    return "condition", match[1], {"when": match[2], "condition": match[3], "do": ""}


def _purpose(text: str) -> Found:
    match = _PURPOSE.match(text)
    if not match or not _asks(match[1]) or match[1].split()[0] not in BASES | _MORE_VERBS:
        return None
    return "purpose", match[2], {"purpose": match[1]}


def _used(text: str) -> Found:
    match = _USED.match(text)
    if not match or not _asks(match[3]):
        return None
    return "purpose", f"{match[1].lower()} {match[2]}", {"purpose": match[3]}


def _by(text: str) -> Found:
    match = _BY.match(text)
    return ("purpose", f"{match[2]} {match[3]}", {"purpose": match[1]}) if match and _asks(match[1]) else None


def _definition(text: str) -> Found:
    match = _DEFINITION.match(text)
    if not match or POINTING.search(match[1]) or len(match[1].split()) > 5:
        return None
    found = clause(text)
    if found is None or found.auxiliary not in ("is", "are") or found.negated or len(found.subject.split()) > 5:
        return None
    return "definition", match[2], {"term": found.subject, "be": found.auxiliary}


def _property(text: str) -> Found:
    found = clause(text)
    if found is None or found.negated or found.auxiliary not in ("does", "do") or found.subject in ("you", "we"):
        return None
    verb, _, thing = found.rest.partition(" ")
    if verb not in _ASKED_OF or len(thing.split()) < 2 or POINTING.match(thing):
        return None
    thing, _, when = _tail(thing)
    parts = {"do": found.auxiliary, "subject": found.subject, "verb": verb, "when": when}
    return "property", thing, parts


def _permission(text: str) -> Found:
    found = clause(text)
    if found is None or found.auxiliary in ("was", "were", "did", "had", "would") or not _asks(found.rest):
        return None
    if not (found.negated or found.auxiliary in ("can", "may")) or len(found.rest.split()) < 2:
        return None
    return "permission", text, {"asked": found.asked, "no": "yes" if found.negated else ""}


def _quantity(text: str) -> Found:
    found = clause(text)
    return quantity(found) if found and not found.negated else None


def _tail(thing: str) -> tuple[str, str, str]:
    parts = re.split(r" (?=(?:when|if|unless|while|until) )", thing, maxsplit=1)
    return (parts[0], " ", parts[1]) if len(parts) == 2 and _asks(parts[1]) else (thing, "", "")


def _asks(part: str) -> bool:
    """Whether a part can stand in a question: it points nowhere and is no fragment."""
    return not POINTING.search(part) and 2 <= len(part.split()) <= 20 and part.count("(") == part.count(")")


def is_imperative(text: str) -> bool:
    """Whether a clause tells its reader to do something."""
    match = _IMPERATIVE.match(text)
    return bool(match) and match[1].lower() in BASES | _MORE_VERBS


_MORE_VERBS = frozenset(
    """avoid bring build buy cancel choose click configure consider contact customize debug define deploy download
    edit enter evaluate export fetch filter find fix force format forward hide install instrument integrate learn list
    manage mark measure mock opt order pay pick place plug press prevent publish put query reduce reopen report retry
    review ring scan sign simplify speed subclass submit switch test tune upgrade verify view visit wire keep leave
    authenticate access access allow attach collect combine compare compute confirm control count cap apply ask be
    do don't provide give get have see specify tell""".split()
)
_ASKED_OF = frozenset(
    """accept add allow apply cause charge check contain control convert cost cover create decide define describe
    determine disable emit enable enforce ensure expose exclude generate get give handle have hold ignore implement
    include indicate inherit inject keep lead let limit make match mean modify need offer omit override perform prevent
    produce protect provide raise receive record reject remove render replace represent request require reset return
    save say send serve set show specify stand store suggest support take tell throw track translate trigger update use
    validate wrap yield default depend refer""".split()
)
_READERS: tuple[Callable[[str], Found], ...] = (
    _wanted, _quantity, _condition, _purpose, _used, _by, _definition, _property, _permission, _condition_behind,
)  # fmt: skip
__all__ = ["Clause", "Stated", "is_imperative", "read_sentence"]
