"""Direct questions from facts of current pages, one page after the other, so that no page dominates."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.persons import lower_first
from rag_harness.authoring.questions.selecting import in_turn
from rag_harness.authoring.questions.topics import draw_frame, needs_topic, topic_of, with_topic
from rag_harness.authoring.questions.wording import question_of
from rag_harness.types import Evidence
from rag_harness.words.terms import terms

KIND = "direct"


def direct_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, page after page in turn. The facts of a page are read at its first turn.

    A tuple has alternatives, and the first one that passes is used: the question as it is, and with its topic.
    """
    chance = Random(f"{seed} direct")
    for fact in in_turn(collection.current, lambda page: collection.facts(page.doc_id), chance):
        yield tuple(drafts_of(fact, collection, chance))


COMMON = 2.0
"""In nats. If all words of a thing are in 1 chunk of 8, the whole collection is about it."""


def _is_vague(subject: str) -> bool:
    """Whether a subject is one common word, which may mean something else elsewhere: "the agent", "codes"."""
    return len(terms(subject)) == 1 and subject.islower() and subject.isascii() and "_" not in subject


def is_everywhere(subject: str, collection: DocumentCollection) -> bool:
    """Whether all pages are about a subject: then many of them say what it does."""
    found = terms(subject)
    return bool(found) and all(collection.rarity(term) < min(COMMON, 0.3 * len(collection.chunks)) for term in found)


def drafts_of(fact: Fact, collection: DocumentCollection, chance: Random) -> Iterator[Draft]:
    """Yield the question for a fact, unless it needs a topic, and the same question with its topic."""
    if is_everywhere(fact.parts.get("subject", ""), collection):
        return
    asked = question_of(fact, chance)
    evidence = (Evidence(fact.doc_id, fact.quote),)
    if "about" in fact.parts:
        yield Draft(KIND, asked, in_other_words(asked, chance), fact.said, fact.answer, evidence, (fact.kind,))
        return
    topic = topic_of(collection.by_id[fact.doc_id], fact.section, asked)
    if not needs_topic(asked, collection) and not _is_vague(fact.parts.get("subject", "")):
        yield Draft(KIND, asked, in_other_words(asked, chance), fact.said, fact.answer, evidence, (fact.kind,))
    if topic:
        about, frame = lower_first(topic, collection.names), draw_frame(topic, chance)
        plain, text = (with_topic(said, about, frame) for said in (asked, in_other_words(asked, chance)))
        yield Draft(KIND, plain, text, fact.said, fact.answer, evidence, (fact.kind,), {"topic": topic})
