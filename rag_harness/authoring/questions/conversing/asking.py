"""Joins the words of a turn with the questions that stand alone for its fact, and opens conversations."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.authoring.questions.conversing.spoken_of import is_introduced
from rag_harness.authoring.questions.conversing.talk import NextTurn, Talk
from rag_harness.authoring.questions.conversing.turn_draft import FIRST, TurnDraft
from rag_harness.authoring.questions.direct import KIND, drafts_of, is_everywhere
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.persons import lower_first
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.topics import topic_of, with_topic
from rag_harness.authoring.questions.wording import question_of
from rag_harness.types import Document, Evidence

_FRAMES = ("{about}: {asked}", "About {about}: {asked}", "Regarding {about}: {asked}")
"""How a question that stands alone names its topic. It is what was meant, and not how anybody talks."""


def asking(talk: Talk, kind: str, text: str, fact: Fact, left_out: str, is_bare: bool = True) -> Iterator[NextTurn]:
    """Yield a turn with each question that stands alone for the fact: as it is, and with its topic."""
    if is_everywhere(fact.parts.get("subject", ""), talk.collection):
        return
    plain = question_of(fact, talk.chance)
    for alone in framed(plain, fact, fact.said, talk):
        yield NextTurn(TurnDraft(kind, text, alone, left_out, is_bare), talk.sources.focus_of(fact), (fact,))


def framed(plain: str, fact: Fact, truth: str, talk: Talk) -> Iterator[Draft]:
    """Yield the question about a fact as it is, and with the topic of its page.

    A cell that does not stand where most of the page's cells do is asked for with its heading: "Parking: what do I have
    to pay for the harbour store?".
    """
    evidence, asked = (Evidence(fact.doc_id, fact.quote),), in_other_words(plain, talk.chance)
    heading = seen(fact.section[-1]) if fact.section and talk.sources.needs_heading(fact) else ""
    if not heading or talk.collection.terms(heading) <= talk.collection.terms(plain):
        yield Draft(KIND, plain, asked, truth, fact.answer, evidence, (fact.kind,))
    topic = heading or topic_of(talk.collection.by_id[fact.doc_id], fact.section, plain)
    if topic and "about" not in fact.parts:
        about, frame = lower_first(topic, talk.collection.names), talk.chance.choice(_FRAMES)
        named, said = (with_topic(each, about, frame) for each in (plain, asked))
        yield Draft(KIND, named, said, truth, fact.answer, evidence, (fact.kind,), {"topic": topic})


def openings(page: Document, talk: Talk) -> Iterator[NextTurn]:
    """Yield first questions about a page, in a random order. What a sentence states is asked with its topic."""
    for fact in shuffled([fact for fact in talk.facts(page.doc_id) if talk.is_free(fact)], talk.chance):
        if fact.kind != "cell" and not is_introduced(question_of(fact, talk.chance), fact, talk):
            continue
        if talk.sources.needs_heading(fact):
            drafts = list(framed(question_of(fact, talk.chance), fact, fact.said, talk))
        else:
            drafts = list(drafts_of(fact, talk.collection, talk.chance))
        with_topics = [draft for draft in drafts if "topic" in draft.metadata]
        for alone in with_topics if with_topics and "thing" not in fact.parts else drafts:
            yield NextTurn(TurnDraft(FIRST, alone.text, alone), talk.sources.focus_of(fact), (fact,))
