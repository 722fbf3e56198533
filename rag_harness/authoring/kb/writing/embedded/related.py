"""Places links with their reasons: within the page if there is room, else at its end."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.plan import PlanPage
from rag_harness.authoring.kb.writing.embedded.english import capital, joined_with_and, link
from rag_harness.authoring.kb.writing.embedded.page_section import PageSection
from rag_harness.authoring.kb.writing.embedded.topics import tellable, thing_of, topic, topic_with_article

_HEADINGS = ("Related pages", "See also", "Read on", "Where to go next", "More on this", "Further reading")
_OLDER = (
    "What applied before is kept under {link}.",
    "The version before this one is {link}.",
    "For the earlier rules, see {link}.",
)
_WAYS = {
    "table": ("{link} has a table of its own.", "There is a table on the page {link}."),
    "steps": ("{link} goes through the steps.", "For what to do in turn, see {link}."),
    "about": ("For {about}, read {link}.", "{About} is a topic of {link}.", "{link} is also about {about}."),
    "plain": ("See also {link}.", "{link} is related to this page.", "A page near to this one is {link}."),
}
_BESIDE = (
    "Read {link} along with {own}.",
    "Besides {own}, see {link}.",
    "Who reads about {own} may need {link} too.",
    "Near to {own} is {link}.",
)
_SHORT = 12
"""From so many words on, ``kb validate`` takes a paragraph that two pages share for pasted text."""


def place_links(brief: Brief, sections: list[PageSection], chance: Random) -> None:
    """Put every link on the page, except that to the newer version, which is at the top."""
    goals = [goal for goal in brief.goals if goal is not brief.newer]
    chance.shuffle(goals)
    beside = tellable(brief.page)
    inside = chance.randint(0, min(2, len(goals))) if sections and beside else 0
    for goal in goals[:inside]:
        own = topic_with_article(chance.choice(beside), brief.page)
        said = chance.choice(_BESIDE).format(link=_link(brief, goal), own=own)
        chance.choice(sections).blocks.append(_older(brief, goal, chance) or capital(said))
    if goals[inside:]:
        sections.append(PageSection(chance.choice(_HEADINGS), _gathered(brief, goals[inside:], chance)))


def _gathered(brief: Brief, goals: Sequence[PlanPage], chance: Random) -> list[str]:
    entries = _entries(brief, goals, chance)
    if chance.random() < 0.3:
        return [" ".join(entries)]
    if chance.random() < 0.5 and all(map(_is_short, entries)):
        return ["\n".join(f"- {entry}" for entry in entries)]
    return ["\n".join(f"- {_labelled(brief, goal)}" for goal in goals)]


def _is_short(entry: str) -> bool:
    """Whether other pages may have the same entry without being taken for copies."""
    return entry.count(" ") + 1 < _SHORT


def _labelled(brief: Brief, goal: PlanPage) -> str:
    """Return a link with a description of its target, as an entry of an index."""
    if goal is brief.older:
        return f"{_link(brief, goal)}: the version before this one"
    topics = list(dict.fromkeys(topic(fact, goal) for fact in goal.facts or ()))[:2]
    entry = f"{_link(brief, goal)}: {joined_with_and(topics)}"
    return entry if topics and _is_short(entry) else _link(brief, goal)


def _entries(brief: Brief, goals: Sequence[PlanPage], chance: Random) -> list[str]:
    """Return a sentence for each page. Wordings are not repeated as long as there are others."""
    used: list[str] = []
    return [_older(brief, goal, chance) or _sentence(brief, goal, chance, used) for goal in goals]


def _older(brief: Brief, goal: PlanPage, chance: Random) -> str:
    return chance.choice(_OLDER).format(link=_link(brief, goal)) if goal is brief.older else ""


def _sentence(brief: Brief, goal: PlanPage, chance: Random, used: list[str]) -> str:
    facts = [fact for fact in tellable(goal) if topic(fact, goal).casefold() != thing_of(goal).casefold()]
    has = {"table": goal.tables, "steps": goal.steps, "about": facts, "plain": True}
    ways = [way for name, ways in _WAYS.items() if has[name] for way in ways]
    way = chance.choice([way for way in ways if way not in used] or ways)
    used.append(way)
    about = topic_with_article(chance.choice(facts), goal) if facts else ""
    return capital(way.format(link=_link(brief, goal), about=about, About=capital(about)))


def _link(brief: Brief, goal: PlanPage) -> str:
    return link(goal.title or goal.id, goal.filename, brief.page.filename)
