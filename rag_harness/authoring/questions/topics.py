"""What a question is about, said where its own words leave that open."""

from __future__ import annotations

import math
import re
from random import Random

from rag_harness.authoring.questions.collection import Collection
from rag_harness.authoring.questions.passages import seen
from rag_harness.authoring.questions.persons import asked_by_reader
from rag_harness.authoring.questions.verbs import BASES, TOLD_TO_DO
from rag_harness.authoring.questions.wordlists import listed
from rag_harness.types import Document
from rag_harness.words.terms import terms

ENOUGH = 4
"""Content words with which a question may stand without a topic."""
RARE, VERY_RARE = 4.0, 5.5
"""Nats: words of fewer than 1 chunk in 55, of which a question must have two, or one of fewer than 1 in 245. In a small
collection, in which no word is so rare, 0.6 and 0.8 of what the rarest have."""
_CODED = re.compile(r"\w[_.]\w|[a-z][A-Z]|[A-Z][A-Z0-9]{0,40}-?\d")
_GENERIC = listed("overview introduction index home readme welcome about guide basics summary misc general faq notes")
_FRAMES = ("{about}: {asked}", "About {about}: {asked}", "Regarding {about}: {asked}", "{Asked} (Topic: {about})")
_OF_THINGS = (
    "I have a question about {about}. {Asked}",
    "{Asked} It's about {about}.",
    "I'm reading up on {about}. {Asked}",
    "{Asked} (I mean {about}.)",
)
"""For titles that name a thing, not what is done with it."""


def needs_topic(question: str, collection: Collection) -> bool:
    """Whether a question says so little that one asks back: of what?"""
    found = terms(question)
    if any(_CODED.search(word) for word in question.split()):
        return False
    rarest = math.log(len(collection.chunks) + 1)
    weights = [collection.rarity(term) for term in found]
    telling = sum(weight >= min(RARE, 0.6 * rarest) for weight in weights)
    single = any(weight >= min(VERY_RARE, 0.8 * rarest) for weight in weights)
    return len(found) < ENOUGH or not (telling > 1 or single)


def topic_of(document: Document, section: tuple[str, ...], question: str) -> str:
    """Return a title of the page, or of the section, that adds something to the question; empty where none does."""
    for title in (seen(document.title), *reversed(section)):
        words = terms(title)
        if words - terms(question) and not words <= _GENERIC and len(title.split()) <= 6 and not title.endswith("?"):
            return asked_by_reader(title.rstrip(".:") if " " in title else title.replace("-", " "))
    return ""


def draw_frame(topic: str, chance: Random) -> str:
    """Draw how a topic is named: some ways suit only what is a thing."""
    does = topic.split(maxsplit=1)[0].lower() in BASES | TOLD_TO_DO | {
        "how",
        "when",
        "what",
        "why",
        "where",
        "who",
        "missed",
    }
    return chance.choice(_FRAMES if does else _FRAMES + _OF_THINGS)


def with_topic(question: str, topic: str, frame: str) -> str:
    """Return the question with its topic in front or behind, as people write."""
    said = frame.format(about=topic, asked=question[:1].lower() + question[1:], Asked=question)
    return said if re.match(r"\S*[_.]", said) else said[:1].upper() + said[1:]
