"""Links with their reasons: within the page where there is room, or gathered at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.kb.brief import Brief
from rag_harness.kb.plan import PlanPage
from rag_harness.kb.writing.embedded.english import capital, link
from rag_harness.kb.writing.embedded.section import Section

_HEADINGS = ("Related pages", "See also", "Read on", "Where to go next", "More on this", "Further reading")
_OLDER = (
    "What applied before is kept under {link}.",
    "The version before this one is {link}.",
    "For the earlier rules, see {link}.",
)
_TABLE = ("{link} has the table “{table}”.", "The table “{table}” is on the page {link}.")
_STEPS = ("{link} goes through its procedure step by step.", "A procedure of its own is under {link}.")
_ABOUT = ("For “{about}”, read {link}.", "“{about}” is a topic of {link}.", "{link} tells more about “{about}”.")
_PLAIN = ("See also {link}.", "{link} is related to this page.", "Next to this page stands {link}.")


def place_links(brief: Brief, sections: list[Section], chance: Random) -> None:
    """Put every link on the page but that of the newer version, which stands at its top."""
    goals = [goal for goal in brief.goals if goal is not brief.newer]
    chance.shuffle(goals)
    inside = chance.randint(0, min(2, len(goals))) if sections else 0
    for goal in goals[:inside]:
        section = chance.choice(sections)
        section.blocks.append(_sentence(brief, goal, chance))
    if goals[inside:]:
        sections.append(Section(chance.choice(_HEADINGS), list(_gathered(brief, goals[inside:], chance))))


def _gathered(brief: Brief, goals: Sequence[PlanPage], chance: Random) -> Iterator[str]:
    if chance.random() < 0.3:
        yield " ".join(_sentence(brief, goal, chance) for goal in goals)
    elif chance.random() < 0.5:
        yield "\n".join(f"- {_sentence(brief, goal, chance)}" for goal in goals)
    else:
        yield "\n".join(f"- {_labelled(brief, goal)}" for goal in goals)


def _labelled(brief: Brief, goal: PlanPage) -> str:
    """Return a link with what is behind it, as an entry of an index."""
    if goal is brief.older:
        return f"{_link(brief, goal)}: the version before this one"
    subjects = list(dict.fromkeys(capital(fact.subject) for fact in goal.facts or ()))[:2]
    tables = [table.title for table in goal.tables or ()][:1]
    behind = "; ".join(dict.fromkeys([*tables, *subjects]))
    return f"{_link(brief, goal)}: {behind}" if behind else _link(brief, goal)


def _sentence(brief: Brief, goal: PlanPage, chance: Random) -> str:
    if goal is brief.older:
        return chance.choice(_OLDER).format(link=_link(brief, goal))
    subjects = [fact.subject for fact in goal.facts or () if fact.subject != goal.title]
    table = goal.tables[0].title if goal.tables else ""
    ways = [*(_TABLE if table else ()), *(_STEPS if goal.steps else ()), *(_ABOUT if subjects else ())]
    about = capital(chance.choice(subjects)) if subjects else ""
    return chance.choice(ways or list(_PLAIN)).format(link=_link(brief, goal), table=table, about=about)


def _link(brief: Brief, goal: PlanPage) -> str:
    return link(goal.title or goal.id, goal.filename, brief.page.filename)
