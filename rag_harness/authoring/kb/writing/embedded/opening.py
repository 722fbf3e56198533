"""The text above the first section: from when a page is valid, and what it contains."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.plan import PlanPage
from rag_harness.authoring.kb.writing.embedded.english import capital, day, joined_with_and, link
from rag_harness.authoring.kb.writing.embedded.topics import tellable, topic_with_article

_HOLDS = (
    "This page gives {holds}.",
    "Here you find {holds}.",
    "Below: {holds}.",
    "On this page: {holds}.",
    "Look here for {holds}.",
    "{Holds}, all in one place.",
    "Use this page to look up {holds}.",
    "What you can read here: {holds}.",
)
_TOPICS = (
    "Among the topics: {topics}.",
    "This page covers, among others, {topics}.",
    "Here you can read about {topics}.",
    "It is about {topics}, among other things.",
    "{Topics}: these are some of the topics here.",
    "Look here when you want to know about {topics}.",
)
_CURRENT = ("Effective {day}.", "Valid from {day}.", "In force since {day}.", "These rules apply from {day}.")
_OUTDATED = (
    "Effective {day}, and no longer in force.",
    "This version applied from {day} and has been replaced.",
    "Valid from {day}; a later version has taken its place.",
)
_NEWER = (
    "This page is out of date: read {link} instead.",
    "It has been replaced by {link}.",
    "The current version is {link}.",
    "> What holds today is under {link}.",
)
_NOUNS = {
    "amount": ("the amounts", "the figures"),
    "date": ("the dates", "the dates to note"),
    "limit": ("the limits", "the limits that apply"),
    "condition": ("the conditions", "the rules and conditions"),
}


def opening(brief: Brief, chance: Random) -> Iterator[str]:
    """Yield the paragraphs between the title and the first section."""
    parts = [_validity(brief, chance), _contents(brief.page, chance)]
    if chance.random() < 0.25:
        parts.reverse()
    together = chance.random() < 0.4
    yield from [" ".join(filter(None, parts))] if together and any(parts) else filter(None, parts)
    if brief.newer in brief.goals and brief.newer is not None:
        page = brief.newer
        yield chance.choice(_NEWER).format(link=link(page.title or page.id, page.filename, brief.page.filename))


def _validity(brief: Brief, chance: Random) -> str:
    page = brief.page
    if not page.effective_date:
        return ""
    said = chance.choice(_OUTDATED if page.status == "outdated" else _CURRENT).format(day=day(page.effective_date))
    names_version = page.version and chance.random() < (0.8 if brief.older or brief.newer else 0.2)
    return f"Version {page.version}. {said}" if names_version else said


def _contents(page: PlanPage, chance: Random) -> str:
    topics = list(dict.fromkeys(topic_with_article(fact, page) for fact in tellable(page)))
    draw = chance.random()
    if draw < 0.35 and len(topics) > 1:
        chosen = joined_with_and(topics[: chance.randint(2, 4)])
        return chance.choice(_TOPICS).format(topics=chosen, Topics=capital(chosen))
    if draw < 0.85:
        holds = joined_with_and(list(_holds(page, chance)))
        return chance.choice(_HOLDS).format(holds=holds, Holds=capital(holds)) if holds else ""
    return ""


def _holds(page: PlanPage, chance: Random) -> Iterator[str]:
    for kind in dict.fromkeys(fact.kind for fact in page.facts or ()):
        yield chance.choice(_NOUNS.get(kind, ("what else is fixed",)))
    for table in page.tables or ():
        yield f"the table “{table.title}”"
    if page.steps:
        yield chance.choice(("the steps in their order", "what to do step by step", "the procedure"))
