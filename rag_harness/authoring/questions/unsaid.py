"""Questions about what a statement leaves open: how long, at what charge, how often, whether one is told.

Such a question is only asked if the collection speaks of such things, and no passage near the statement does.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from rag_harness.authoring.questions.clauses import clause
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.persons import asked_by_reader, lower_first
from rag_harness.authoring.questions.wording import sentence
from rag_harness.authoring.questions.wordlists import word_set
from rag_harness.words.terms import terms

SPOKEN_OF = 0.03
"""How large a share of the chunks must speak of something for a question about it to fit the collection."""
MOST_ASKED_ALIKE = 8
"""How often one question may be asked. If many questions begin alike, a reader learns to decline them."""
NEAR = 0.4
"""From this share of the statement's words on, weighted by rarity, a chunk is near it."""


class Open(NamedTuple):
    """Something that may be left open: the question, the part that it needs, and patterns: mention, answer."""

    asked: str
    part: str
    spoken: re.Pattern[str]
    tells: re.Pattern[str]


_TIME = r"\b(?:minutes?|hours?|days?|weeks?|months?|years?|seconds?)\b"
_OPEN = tuple(
    Open(asked, part, re.compile(spoken, re.I), re.compile(tells, re.I))
    for asked, part, spoken, tells in (
        ("how long until {0}", "outcome", _TIME, rf"{_TIME}|\b(?:immediat|at once|soon|instant)"),
        (
            "is there a charge if {0}",
            "condition",
            r"[€$£]\s?\d|\d\s?€",
            r"[€$£]|\b(?:free|fee|charg|cost|pric|pay|paid|refund|money|surcharge)",
        ),
        (
            "how many tokens are used up when {0}",
            "condition",
            r"\b(?:input|output|prompt|cache|reasoning) tokens?\b",
            r"\b(?:tokens?|cost|billed|usage)",
        ),
        (
            "is there a limit on how often {0}",
            "outcome",
            r"\b(?:limit(?:s|ed)?|at most|maximum)\b",
            r"\b(?:limit|times|max|most|once|often|every|each|retr)",
        ),
        (
            "can I get an email when {0}",
            "condition",
            r"\be-?mails?\b",
            r"\b(?:e-?mail|notif|text|alert|remind|message|inform|tell|writ)",
        ),
        (
            "which log message shows that {0}",
            "outcome",
            r"\blog(?:s|ged|ging|file)\b",
            r"\b(?:log|logs|logged|logging|warning|message|span|trace|logfire)",
        ),
    )
)
_OPENING = re.compile(r"(?:you|there)\b")


def unsaid(fact: Fact, collection: DocumentCollection, used: Counter[str]) -> str | None:
    """Return the least ``used`` question about something that a statement leaves open; None if there is none."""
    parts = {"condition": _condition(fact), "outcome": _outcome(fact, collection)}
    fitting = [
        each
        for each in _OPEN
        if parts[each.part] and used[each.asked] < MOST_ASKED_ALIKE and _fits(each, parts[each.part])
    ]
    fitting = [each for each in fitting if _is_spoken_of(each, collection)]
    near = _near(fact, collection) if fitting else []
    for each in sorted(fitting, key=lambda each: used[each.asked]):
        if not any(map(each.tells.search, near)):
            used[each.asked] += 1
            return sentence(each.asked.format(parts[each.part]))
    return None


def _fits(each: Open, part: str) -> bool:
    """Whether a question fits a part: people are not told by email about what they do themselves."""
    return not (each.asked.startswith("can I get") and part.startswith("I "))


def _condition(fact: Fact) -> str:
    """Return a condition, or something that a person may want to do; empty if the fact has neither."""
    if fact.kind == "purpose":
        return f"I {fact.parts['purpose']}"
    told = fact.parts.get("condition", "")
    return told if told and not _OPENING.match(told) and (clause(told) or told.startswith("I ")) else ""


def _outcome(fact: Fact, collection: DocumentCollection) -> str:
    """Return the statement in the form for after "until"; empty if it is not about an event."""
    if fact.kind != "condition":
        return ""
    whole = lower_first(fact.answer, collection.names)
    said = asked_by_reader(re.split(r"[,;:—–(]", whole.strip().rstrip("."))[0].strip())
    found = clause(said)
    happens = found is not None and not found.negated and bool(_HAPPENS & set(found.rest.split()[:2]))
    return said if happens and 3 <= len(said.split()) <= 16 else ""


_HAPPENS = word_set(
    """
    add added arrive arrives book booked bring cancel cancelled charge charged close closed come comes create created
    delete deleted deliver delivered end ends fail fetch finish get give go goes lifted move moves pay paid receive
    refund refunded release released remove removed replace replaced replay resume resumes retry return returned send
    sent start starts stop stops swap transfer transferred update updated write
    """
)
"""Verbs of events, for which one can wait."""


def _near(fact: Fact, collection: DocumentCollection) -> list[str]:
    wanted = terms(fact.said)
    hits = [hit.chunk for hit in collection.nearest(fact.said, 20)]
    return [
        chunk.text
        for chunk in hits
        if collection.covered(wanted, chunk.text) >= NEAR
        or (chunk.doc_id == fact.doc_id and chunk.section == fact.section)
    ]


def _is_spoken_of(each: Open, collection: DocumentCollection) -> bool:
    return collection.share(each.spoken) >= SPOKEN_OF
