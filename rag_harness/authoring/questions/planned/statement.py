"""Splits a planned statement into parts in a question's order, with a gap in place of the value."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from rag_harness.authoring.kb.plan import PlannedFact
from rag_harness.authoring.questions.clauses import AUXILIARIES
from rag_harness.authoring.questions.persons import lower_first
from rag_harness.authoring.questions.verbs import BASES, THIRD
from rag_harness.authoring.questions.wordlists import word_set

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
    """``front``, ``subject`` ``auxiliary`` ``before`` GAP ``after``; the gap may stand in ``subject`` instead.

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
