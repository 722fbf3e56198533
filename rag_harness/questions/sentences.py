"""What a sentence states: a condition, a purpose, a definition, a property, a quantity, a permission."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from rag_harness.questions.clauses import clause
from rag_harness.questions.passages import Passage
from rag_harness.questions.persons import asked_by_reader, lower_first
from rag_harness.questions.pointing import POINTING
from rag_harness.questions.quantities import quantity
from rag_harness.questions.verbs import ASKED_OF, BASES, TOLD_TO_DO
from rag_harness.reader.terms import terms

Stated = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and what is said: see ``facts.Fact``."""
Found = tuple[str, str, dict[str, str]] | None

LEAST_SAID = 3
"""Content words of a question that is answered by yes or no: "do I have to do anything" asks for nothing."""
SHORTEST, LONGEST = 5, 45
"""Words of a sentence that is read."""
_CONDITION = re.compile(r"(if|when|whenever|once|as soon as|unless) ([^,;:]{6,140}), (?:then )?(\S[^\n]{8,300})$")
_CONDITION_BEHIND = re.compile(r"([^,;:]{8,160}?) (if|when|unless|once) ([^,;:()—–]{6,120})\.$")
_CONTEXT = re.compile(r"\b(?:now|below|above|following|here|earlier|previous|next|again)\b", re.I)
"""Words of a statement that stands on what is around it."""
_PURPOSE = re.compile(r"(?:to|in order to) ([a-z][\w-]+ [^,;:]{4,120}), (\S[^\n]{8,300})$")
_WANTED = re.compile(r"(?:if|when) you(?:'d like| want| need| wish|'re looking)? to ([^,;:]{6,120}), (\S[^\n]{8,300})$")
_USED = re.compile(
    r"((?:use|call|pass|set|add|subclass|install|run|implement|press|enter|select|choose|open) [^,;:]{2,80}?)"
    r" to ([a-z]+ [^,;:]{5,140})\.$"
)
_BY = re.compile(r"you can(?: also)? ([a-z]+ [^,;:]{4,100}?) ((?:by [a-z]+ing|with|using|via|through) [^;]{4,160})\.$")
_DEFINING = re.compile(r"(?:an? |one of |the (?:process|way|time|part|place|number|amount|name|share|sum|set) )")
_POINTER = re.compile(
    r"^(?:please )?(?:see|refer to|check out|read|visit|have a look|look at|follow|check)\b|\b(?:see|refer to) "
    r"(?:also )?(?:the |our )?[A-Z\[]|\bfor (?:more|details|further|full|an? (?:complete|full))\b|\bdocs?\b"
    r"|\bdocumentation\b|\bread (?:how|that|the|about)\b|\b(?:that|the|this) page\b|\bexample\b|\bsection\b|\bguide\b",
    re.I,
)
_ASIDE = re.compile(r"\s\([^()]{1,200}\)")
_NO_MAIN = re.compile(r"(?:or|and|but|then|though|that|which|who|where|as|not|so|because|for example|e\.g\.)\b", re.I)
_WISH = re.compile(r"you(?:'d| would)? (?:want|need|like|prefer|wish)\b", re.I)
_SPOKEN = re.compile(
    r"\b(?:we(?:'re|’re| are|'ll|'ve| have| run| want| need| see| look| start| use| can| now)|let's|say)\b", re.I
)


def read_sentence(passage: Passage, names: Collection[str]) -> Iterator[Stated]:
    """Yield what a sentence states, as kind, answer, parts and what is said."""
    text = lower_first(_ASIDE.sub("", passage.text), names)
    if (
        not text.endswith((".", "!"))
        or text.endswith((" .", "…", "..."))
        or not SHORTEST <= len(text.split()) <= LONGEST
        or _POINTER.search(text)
        or _CONTEXT.search(text)
    ):
        return
    for reads in _READERS:
        found = reads(text)
        if found:
            kind, answer, parts = found
            yield kind, answer, {name: asked_by_reader(part) for name, part in parts.items()}, passage.text
            return


def _wanted(text: str) -> Found:
    match = _WANTED.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and _does(match[1]) else None


def _condition(text: str) -> Found:
    match = _CONDITION.match(text)
    if not match or not _asks(match[2]) or POINTING.match(match[3]) or _NO_MAIN.match(match[3]):
        return None
    if len(terms(match[2])) < 2 or (match[1] == "if" and re.match(r"\w+ing\b", match[2])):
        return None
    asked = "what should I do" if _WISH.match(match[2]) else _asked_of(match[3])
    return "condition", match[3], {"when": match[1], "condition": match[2], "asked": asked}


def _condition_behind(text: str) -> Found:
    match = _CONDITION_BEHIND.match(text)
    if not match or not _asks(match[3]) or POINTING.search(match[1]):
        return None
    if (
        clause(match[1]) is None
        or _NO_OUTCOME.search(match[1])
        or not (clause(match[3]) or match[3].startswith(("you ", "we ")))
    ):
        return None
    return "condition", match[1], {"when": match[2], "condition": match[3], "asked": _asked_of(match[1])}


_NO_OUTCOME = re.compile(
    r"\b(?:only|not|never)\b|n['’]t\b|\b(?:wonder|check|ask|asks|know|see|tell|tells|decide|decides|determines?|sure"
    r"|find out|say|controls?|unclear|matter|choose|chooses|let us know)$"
)
"""Of "… if …" that asks whether, or says when alone something is so."""
_ASKED_BY = (
    (re.compile(r"you (?:can|may|could|'re allowed)\b(?!['’]t| not)", re.I), "what can I do"),
    (re.compile(r"you (?:must|have to|need to|should|'ll need to)\b(?! not)", re.I), "what do I have to do"),
    (re.compile(r"you (?:get|receive|earn|pay|need|lose)\b", re.I), "what do I {0}"),
    (re.compile(r"you (?:can['’]t|cannot|may not|don['’]t)\b", re.I), "what happens"),
)


def _asked_of(main: str) -> str:
    """Return what is asked for by a main clause: what to do, what one can do, what one gets, what happens."""
    for pattern, asked in _ASKED_BY:
        if pattern.match(main):
            return asked.format(main.split()[1])
    return "what should I do" if is_imperative(main) else "what happens"


def _purpose(text: str) -> Found:
    match = _PURPOSE.match(text)
    return ("purpose", match[2], {"purpose": match[1]}) if match and _does(match[1]) else None


def _used(text: str) -> Found:
    match = _USED.match(text)
    if not match or not _does(match[2]) or POINTING.search(match[1]) or _IF.search(f"{match[1]} {match[2]}"):
        return None
    return "purpose", match[1], {"purpose": match[2]}


_IF = re.compile(r"\b(?:if|when|because|rather than)\b")


def _by(text: str) -> Found:
    match = _BY.match(text)
    return (
        ("purpose", match[2], {"purpose": match[1]}) if match and _does(match[1]) and " to " not in match[1] else None
    )


def _definition(text: str) -> Found:
    found = clause(text)
    if found is None or found.auxiliary not in ("is", "are") or found.negated or not _DEFINING.match(found.rest):
        return None
    if (
        not _tells_apart(found.subject)
        or len(found.subject.split()) > 5
        or len(found.rest.split()) < 5
        or found.subject.startswith(("the ", "you"))
    ):
        return None
    _, _, answer = text.partition(f" {found.auxiliary} ")
    return "definition", answer, {"term": found.subject, "be": found.auxiliary}


def _property(text: str) -> Found:
    found = clause(text)
    if found is None or found.negated or found.auxiliary not in ("does", "do") or found.subject in ("you", "we"):
        return None
    verb, _, thing = found.rest.partition(" ")
    if verb in _AFTER:
        thing = thing.removeprefix(f"{_AFTER[verb]} ") if thing.startswith(f"{_AFTER[verb]} ") else ""
    if verb not in ASKED_OF or not _is_thing(thing, verb) or not _tells_apart(found.subject):
        return None
    parts = re.split(r" (?=(?:when|if|unless|until) )", thing, maxsplit=1)
    when = parts[1] if len(parts) == 2 and _asks(parts[1]) else ""
    asked = {"do": found.auxiliary, "subject": found.subject, "verb": verb, "after": _AFTER.get(verb, ""), "when": when}
    return "property", parts[0] if when else thing, asked


def _is_thing(thing: str, verb: str) -> bool:
    """Whether what stands behind a verb is its object, and says something by itself."""
    elsewhere = POINTING.search(thing) or _PLACE.match(thing) or (thing.startswith("that ") and verb not in _SAYING)
    return not elsewhere and len(thing.split()) > 1


_AFTER = {"default": "to", "depend": "on", "refer": "to", "lead": "to", "stand": "for"}
_SAYING = frozenset(("mean", "say", "tell", "show", "indicate", "suggest", "ensure", "require"))
_PLACE = re.compile(r"(?:to|in|on|at|for|with|from|by|as|of|how|into|over|out|up|per|when|only)\b")


def _tells_apart(subject: str) -> bool:
    """Whether a subject is a thing of its own: a name, a code, or two words; "the limit" may be any."""
    coded = re.search(r"[A-Z0-9_.]", subject) is not None
    return coded or len(terms(subject)) > 1


def _permission(text: str) -> Found:
    found = clause(text)
    if found is None or found.auxiliary in ("was", "were", "did", "had", "would") or not _asks(found.rest):
        return None
    if found.auxiliary == "may" and _PERCEIVED.match(found.rest):
        return None
    if not found.negated or len(found.rest.split()) < 3 or _HALF.search(found.rest):
        return None
    if len(terms(found.asked)) < LEAST_SAID:
        return None
    return "permission", text, {"asked": found.asked, "subject": found.subject}


_PERCEIVED = re.compile(r"(?:hear|see|notice|be|have|get|need|want|know|find)\b")
"""What "may not" is said of where something is possible, not forbidden."""
_HALF = re.compile(r"^(?:just|only|necessarily|yet|even|always)\b|\b(?:and|because)\b")


def _quantity(text: str) -> Found:
    found = clause(text)
    return quantity(found) if found and not found.negated else None


def _does(part: str) -> bool:
    """Whether a part begins with a verb, names what it is done to, and can stand in a question."""
    verb, thing, *_ = [*part.split(), "", ""]
    return verb in BASES | TOLD_TO_DO and thing != "that" and _asks(part)


def _asks(part: str) -> bool:
    """Whether a part can stand in a question: it points nowhere, is no fragment, and is no author's "we"."""
    whole = (
        not part.startswith("whether")
        and "—" not in part
        and "–" not in part
        and part.count("(") == part.count(")")
        and part.count('"') % 2 == 0
    )
    return whole and not POINTING.search(part) and not _SPOKEN.search(part) and 2 <= len(part.split()) <= 18


def is_imperative(text: str) -> bool:
    """Whether a clause tells its reader to do something."""
    first = (
        re.sub(r"^(?:(?:please|simply|just|always|never|do not|don't) )*", "", text)
        .split(" ", 1)[0]
        .lower()
        .rstrip(".,")
    )
    return first in BASES | TOLD_TO_DO


_READERS: tuple[Callable[[str], Found], ...] = (
    _wanted, _quantity, _condition, _purpose, _used, _by, _definition, _property, _permission, _condition_behind,
)  # fmt: skip
