"""Adds the topic to a question whose own words leave it open."""

from __future__ import annotations

import math
import re
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.persons import asked_by_reader
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.verbs import BASES, TOLD_TO_DO
from rag_harness.authoring.questions.wordlists import word_set
from rag_harness.types import Document
from rag_harness.words.terms import terms

ENOUGH = 4
"""From so many content words on, a question needs no topic."""
RARE, VERY_RARE = 4.0, 5.5
"""In nats. A question needs two words that fewer than 1 chunk in 55 has, or one word that fewer than 1 in 245 has. In a
small collection no word is so rare; the limits are then 0.6 and 0.8 of the rarest word's value. collection, in which no
word is so rare, 0.6 and 0.8 of what the rarest have."""
_CODED = re.compile(r"\w[_.]\w|[a-z][A-Z]|[A-Z][A-Z0-9]{0,40}-?\d")
_GENERIC = word_set("overview introduction index home readme welcome about guide basics summary misc general faq notes")
_FRAMES = ("{about}: {asked}", "About {about}: {asked}", "Regarding {about}: {asked}", "{Asked} (Topic: {about})")
_OF_THINGS = (
    "I have a question about {about}. {Asked}",
    "{Asked} It's about {about}.",
    "I'm reading up on {about}. {Asked}",
    "{Asked} (I mean {about}.)",
)
"""For titles that name a thing, not an action."""


def needs_topic(question: str, collection: DocumentCollection) -> bool:
    """Whether a question is so vague that one would ask back: about what?"""
    found = terms(question)
    if any(_CODED.search(word) for word in question.split()):
        return False
    rarest = math.log(len(collection.chunks) + 1)
    weights = [collection.rarity(term) for term in found]
    telling = sum(weight >= min(RARE, 0.6 * rarest) for weight in weights)
    single = any(weight >= min(VERY_RARE, 0.8 * rarest) for weight in weights)
    return len(found) < ENOUGH or not (telling > 1 or single)


def topic_of(document: Document, section: tuple[str, ...], question: str) -> str:
    """Return a title of the page or section that adds something to the question; empty if there is none."""
    for title in (seen(document.title), *reversed(section)):
        words = terms(title)
        if words - terms(question) and not words <= _GENERIC and len(title.split()) <= 6 and not title.endswith("?"):
            return asked_by_reader(title.rstrip(".:") if " " in title else title.replace("-", " "))
    return ""


def draw_frame(topic: str, chance: Random) -> str:
    """Draw how a topic is named. Some ways only suit things."""
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
    """Return the question with its topic before or after it, as people write."""
    said = frame.format(about=topic, asked=question[:1].lower() + question[1:], Asked=question)
    return said if re.match(r"\S*[_.]", said) else said[:1].upper() + said[1:]
