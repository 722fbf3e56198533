"""Turns about what sentences state: questions that leave out the page's topic, or the subject that was named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rag_harness.authoring.questions.conversing.asking import asking, framed
from rag_harness.authoring.questions.conversing.short_words import affirmed, back_to, without_subject, without_thing
from rag_harness.authoring.questions.conversing.spoken_of import is_introduced, is_it
from rag_harness.authoring.questions.conversing.talk import Focus, NextTurn, Talk
from rag_harness.authoring.questions.conversing.turn_draft import BACK, COMPARE, CORRECTION, FOLLOW_UP, TurnDraft
from rag_harness.authoring.questions.conversing.wrong_figures import wrong_figure
from rag_harness.authoring.questions.facts import PLANNED_KINDS, Fact
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.persons import asked_by_reader, lower_first
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.wording import question_of, sentence

_ASKED = frozenset(("condition", "purpose", "quantity", "property", "permission", *PLANNED_KINDS))
_NEAR = 12
"""How many facts of the page are tried, the nearest to the last answer first."""
_SHORT_PAGE = 12
"""Up to so many headings a page is about one matter."""
_LONGEST_CLAIM = 22
"""The most words of a statement that a user repeats wrongly."""


def more_of_page(talk: Talk) -> Iterator[NextTurn]:
    """Ask for what the page states near the last answer, without its topic or its subject."""
    for fact in _near(talk, talk.focus):
        for text, left_out in _bare(fact, talk):
            opened = f"and {text[:1].lower()}{text[1:]}" if talk.chance.random() < 0.5 and text[1:2] != " " else text
            yield from asking(talk, FOLLOW_UP, sentence(opened), fact, left_out)


def page_again(talk: Talk) -> Iterator[NextTurn]:
    """Come back to the first page, as what was asked first."""
    first = talk.focuses[0]
    for fact in _near(talk, first):
        for asked, left_out in _bare(fact, talk):
            yield from asking(talk, BACK, back_to("", asked, talk.chance), fact, left_out)


def _near(talk: Talk, focus: Focus) -> list[Fact]:
    """Return the facts of the page's prose that were not asked for, the nearest to the last answer first."""
    facts = [fact for fact in talk.facts(focus.page.doc_id) if fact.kind in _ASKED and "thing" not in fact.parts]
    free = [fact for fact in facts if talk.is_free(fact) and _is_same_matter(fact, focus, talk)]
    start = focus.fact.start if focus.fact else 0
    return sorted(free, key=lambda fact: (abs(fact.start - start), fact.start))[:_NEAR]


def _is_same_matter(fact: Fact, focus: Focus, talk: Talk) -> bool:
    """Whether a fact is about the same as the last one. A long page has chapters, each about a matter of its own."""
    if focus.fact is None or talk.sources.headings(fact.doc_id) <= _SHORT_PAGE:
        return True
    return fact.section[:2] == focus.fact.section[:2]


def _bare(fact: Fact, talk: Talk) -> Iterator[tuple[str, str]]:
    """Yield questions for a fact that leave something out, with what that is."""
    asked = question_of(fact, talk.chance)
    title = seen(talk.collection.by_id[fact.doc_id].title)
    if "about" in fact.parts:
        if short := without_thing(asked, fact.parts["about"]):
            yield short, fact.parts["about"]
        return
    subject = fact.parts.get("subject", "")
    if subject and is_it(subject, talk) and (short := without_subject(asked, subject)):
        yield short, subject
    if is_introduced(asked, fact, talk):
        yield in_other_words(asked, talk.chance), f"{title} {talk.focus.thing}"


def wrong_statement(talk: Talk) -> Iterator[NextTurn]:
    """State a fact of the page with another figure, or what is not so as if it were."""
    for fact in _near(talk, talk.focus):
        for said, whole, truth in _claims(fact, talk):
            text = sentence(
                talk.chance.choice(("so {0}, right", "and {0}, right", "if I get it right, {0}")).format(said)
            )
            left_out = fact.parts.get("about") or seen(talk.collection.by_id[fact.doc_id].title)
            for alone in framed(sentence(f"am I right that {whole}"), fact, truth, talk):
                as_said = replace(alone, text=alone.plain)
                yield NextTurn(TurnDraft(CORRECTION, text, as_said, left_out), talk.sources.focus_of(fact), (fact,))


def _claims(fact: Fact, talk: Talk) -> Iterator[tuple[str, str, str]]:
    """Yield a wrong statement as it is said in a conversation, as it stands alone, and what is right."""
    if not is_introduced(fact.said, fact, talk):
        return
    if fact.kind == "permission" and (claim := affirmed(fact.parts["asked"], fact.parts["subject"])):
        yield _begun_with_it(claim, fact, talk), claim, f"No. {fact.said}"
    wrong = wrong_figure(fact.answer) if fact.kind in ("quantity", *PLANNED_KINDS) else ""
    if not wrong or fact.said.count(fact.answer) != 1 or len(fact.said.split()) > _LONGEST_CLAIM:
        return
    names = talk.collection.planned.names_of(fact.doc_id) or talk.collection.names
    said = asked_by_reader(lower_first(fact.said.replace(fact.answer, wrong), names)).strip().rstrip(".!")
    if not POINTING.search(said) and not any(mark in said for mark in ";:()?"):
        yield _begun_with_it(said, fact, talk), said, f"No, not {wrong}. {fact.said}"


def _begun_with_it(said: str, fact: Fact, talk: Talk) -> str:
    """Return a statement with "it" for the thing, or for the subject where the last turn named it."""
    if about := fact.parts.get("about"):
        return without_thing(said, about) or said
    subject = fact.parts.get("subject", "")
    begins = subject and said.casefold().startswith(f"{subject.casefold()} ")
    if not begins or not is_it(subject, talk):
        return said
    rest = said[len(subject) :].lstrip()
    plural = rest.split(" ", 1)[0] in ("are", "were", "have", "do") or subject.endswith("s")
    return f"{'they' if plural else 'it'} {rest}"


def before_that(talk: Talk) -> Iterator[NextTurn]:
    """Ask what was so before the page was replaced."""
    fact = talk.focus.fact
    draft = talk.sources.versions.get((fact.doc_id, fact.quote)) if fact else None
    if fact and draft and fact.said in draft.ground_truth:
        text = talk.chance.choice(("And what was it before that?", "Was that so before, too?", "And before?"))
        left_out = seen(talk.focus.page.title)
        yield NextTurn(TurnDraft(COMPARE, text, draft, left_out), talk.focus.unclear())
