"""Pages without a model: planned contents in sentences and layouts that are drawn for each page."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import PurePosixPath
from random import Random

from rag_harness.authoring.kb.plan import Brief, PlannedFact, PlannedTable, PlanPage


@dataclass
class PageSection:
    """A heading without its marks, and the blocks below it."""

    heading: str
    blocks: list[str]

    def text(self) -> str:
        """Return the section as Markdown."""
        return "\n\n".join([f"## {self.heading}", *self.blocks])


# Small helpers for English and Markdown.


def joined_with_and(parts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def lowered(text: str) -> str:
    """Return a heading in the form for the middle of a sentence. Abbreviations and names with several capitals stay."""
    return text[:1].lower() + text[1:] if text[1:2].islower() and text == text.capitalize() else text


def capital(text: str) -> str:
    """Return a text in the form for the start of a sentence."""
    return text[:1].upper() + text[1:]


def day(written: str) -> str:
    """Return an ISO date as ``1 March 2026``; any other text as it is."""
    try:
        known = date.fromisoformat(written)
    except ValueError:
        return written
    return f"{known.day} {known:%B} {known.year}"


def link(title: str, filename: str, page: str) -> str:
    """Return a Markdown link from ``page`` to ``filename``; both are paths below one folder."""
    target = posixpath.relpath(filename, PurePosixPath(page).parent.as_posix())
    text = title.replace("[", "\\[").replace("]", "\\]")
    return f"[{text}](<{target}>)" if " " in target or "(" in target else f"[{text}]({target})"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join([_row(columns), "|" + "---|" * len(columns), *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


_TABLE = (
    "Find the {first} in the first column.",
    "There is one row for each {first}.",
    "The first column names the {first}.",
    "By {first}:",
    "What holds depends on the {first}.",
    "The table goes by {first}.",
    "",
)
_STEPS = ("Procedure", "The procedure", "Steps", "The steps", "The course of action", "The way to do it")
_LEADS = (
    "Take these steps one after the other.",
    "Do this in the order shown:",
    "The steps, from the first to the last:",
    "Work through the list from top to bottom.",
    "This is how it goes:",
    "",
)
_DRAWN = ("The same as a diagram:", "As a drawing:", "The way through, at a glance:", "Drawn, it looks like this:")


def table_section(planned: PlannedTable, chance: Random) -> PageSection:
    """Return a table under its title."""
    lead = chance.choice(_TABLE).format(first=lowered(planned.columns[0]))
    return PageSection(planned.title, [*filter(None, [lead]), table(planned.columns, planned.rows)])


def steps_section(steps: Sequence[str], drawn: bool, chance: Random) -> PageSection:
    """Return steps as a numbered list, and also as a diagram if that is planned."""
    listing = [*filter(None, [chance.choice(_LEADS)]), "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))]
    drawing = [chance.choice(_DRAWN), diagram(steps, chance)] if drawn else []
    return PageSection(chance.choice(_STEPS), [*listing, *drawing])


def diagram(steps: Sequence[str], chance: Random) -> str:
    """Return a Mermaid flowchart from the first step to the last."""
    names = [f"s{number}" for number, _ in enumerate(steps, 1)]
    nodes = [f'    {name}["{_label(step)}"]' for name, step in zip(names, steps, strict=True)]
    arrows = [f"    {' --> '.join(names)}"] if len(names) > 1 else []
    return "\n".join(["```mermaid", f"flowchart {chance.choice(('TD', 'LR'))}", *nodes, *arrows, "```"])


def _label(step: str) -> str:
    plain = " ".join(step.split()).replace("#", "#35;").replace('"', "#quot;")
    return plain.replace("<", "#lt;").replace(">", "#gt;").rstrip(".")


_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
_SMALL = frozenset(
    [
        "of",
        "in",
        "at",
        "for",
        "from",
        "to",
        "by",
        "with",
        "on",
        "about",
        "after",
        "before",
        "during",
        "and",
        "or",
        "the",
        "a",
        "an",
        "your",
    ]
)
_BEFORE = r"\s+(?:of|in|at|for|from|to|by|with|on|about|after|before|during)(?:\s+(?:the|a|an|your))?\s+"
_ARTICLE = re.compile(r"((?:the|an?|every|each)\s+(?:[a-z-]+\s+){0,2})\Z", re.I)
_DENIES = re.compile(r"\b(?:not|no|never|without|cannot)\b", re.I)
_LONGEST = 60
"""The most characters of a heading that is made of topics."""


@lru_cache(maxsize=1024)
def thing_of(page: PlanPage) -> str:
    """Return the longest run of words of the title that most facts contain; empty if there is none."""
    words = _WORD.findall(page.title or "")
    subjects = [fact.subject.casefold() for fact in page.facts or ()]
    for length in range(len(words), 1, -1):
        for start in range(len(words) - length + 1):
            run = " ".join(words[start : start + length])
            if not {words[start].casefold(), words[start + length - 1].casefold()}.isdisjoint(_SMALL):
                continue
            if 2 * sum(run.casefold() in subject for subject in subjects) > len(subjects):
                return run
    return ""


def topic(fact: PlannedFact, page: PlanPage) -> str:
    """Return what a fact is about, without the thing of the whole page, in the form for the middle of a sentence."""
    subject, thing = _within_sentence(fact, page), thing_of(page)
    short = re.sub(_BEFORE + re.escape(thing) + r"\b", "", subject, flags=re.I) if thing else subject
    return " ".join(short.split())


def _within_sentence(fact: PlannedFact, page: PlanPage) -> str:
    """Return the subject with the capitals that it has within a sentence. Names keep theirs."""
    start = fact.statement.casefold().find(fact.subject.casefold())
    if start > 0:
        return fact.statement[start : start + len(fact.subject)]
    first = fact.subject.split()[0]
    said = " ".join([page.title or "", *(each.statement for each in page.facts or ())])
    is_name = not first[1:].islower() or re.search(rf"[a-z,] {re.escape(first)}\b", said)
    return fact.subject if is_name else fact.subject[:1].lower() + fact.subject[1:]


def topic_with_article(fact: PlannedFact, page: PlanPage) -> str:
    """Return the topic with its article, as in the middle of a sentence: "the sales area", "a locker", "parking"."""
    start = fact.statement.casefold().find(fact.subject.casefold())
    article = _ARTICLE.search(fact.statement[: max(0, start)])
    return f"{article[1].lower()}{topic(fact, page)}" if article else topic(fact, page)


def tellable(page: PlanPage) -> list[PlannedFact]:
    """Return the facts whose topics other sentences may name. A negated fact's topic would read as a denial there."""
    return [fact for fact in page.facts or () if not _DENIES.search(fact.subject)]


def heading_of(facts: Sequence[PlannedFact], page: PlanPage) -> str:
    """Return the topics of some facts as a heading; empty if it would be too long."""
    heading = capital(joined_with_and(list(dict.fromkeys(topic(fact, page) for fact in facts))))
    return heading if len(heading) <= _LONGEST else ""


Group = list[PlannedFact]
# Noun phrases, because a question about a section says "regarding" and its heading.
_OF_KIND = {
    "amount": ("Amounts", "Key figures", "The figures", "Numbers to know", "Figures at a glance"),
    "date": ("Dates", "Dates to note", "Timing", "Important dates"),
    "limit": ("Limits", "Limits to know", "Bounds and periods", "Upper and lower limits"),
    "condition": ("Conditions", "Rules", "Requirements", "Rules and exceptions"),
}
_OTHERS = ("Further points", "Other points", "Details", "Particulars", "Points to note", "Main points", "More details")
_FACT_LEADS = (
    "In detail:",
    "The following holds:",
    "Point by point:",
    "To be noted:",
    "What is fixed:",
    "In short:",
    "",
)
_MORE = ("In addition:", "Besides that:", "Further:", "Apart from that:", "Also:")


def fact_sections(page: PlanPage, chance: Random, list_one: bool) -> list[PageSection]:
    """Return the sections. With ``list_one``, at least the first has a list."""
    facts = list(page.facts or ())
    if chance.random() < 0.3:
        chance.shuffle(facts)
    groups = _by_kind(facts) if chance.random() < 0.35 else _in_runs(facts, chance)
    made = []
    for number, group in enumerate(groups):
        layout = _bullets if list_one and not number else chance.choice(_LAYOUTS[min(len(group), 3)])
        made.append(PageSection(_heading(group, page, chance), layout(group, chance)))
    return made


def _by_kind(facts: Sequence[PlannedFact]) -> list[Group]:
    """Return the facts grouped by kind. Facts that are alone in their kind form one group."""
    kinds: dict[str, Group] = {}
    for fact in facts:
        kinds.setdefault(fact.kind, []).append(fact)
    several = [group for group in kinds.values() if len(group) > 1]
    alone = [group[0] for group in kinds.values() if len(group) == 1]
    return [*several, *([alone] if alone else [])]


def _in_runs(facts: Sequence[PlannedFact], chance: Random) -> list[Group]:
    runs, left = [], list(facts)
    while left:
        taken = len(left) if len(left) < 4 else chance.choice((2, 2, 3))
        runs.append(left[:taken])
        left = left[taken:]
    return runs


def _heading(group: Group, page: PlanPage, chance: Random) -> str:
    kinds = {fact.kind for fact in group}
    of_kind = _OF_KIND.get(group[0].kind, ()) if len(kinds) == 1 and len(group) > 1 else ()
    if of_kind and chance.random() < 0.6:
        return chance.choice(of_kind)
    return heading_of(group, page) or chance.choice(of_kind or _OTHERS)


def _prose(group: Group, chance: Random) -> list[str]:
    statements = [_said(fact, chance) for fact in group]
    cut = chance.choice((2, 3, len(statements)))
    return [" ".join(statements[start : start + cut]) for start in range(0, len(statements), cut)]


def _bullets(group: Group, chance: Random) -> list[str]:
    return [*filter(None, [chance.choice(_FACT_LEADS)]), _items(group, chance)]


def _first_alone(group: Group, chance: Random) -> list[str]:
    return [_said(group[0], chance), chance.choice(_MORE), _items(group[1:], chance)]


def _last_alone(group: Group, chance: Random) -> list[str]:
    return [_items(group[:-1], chance), _said(group[-1], chance)]


def _quoted(group: Group, _: Random) -> list[str]:
    return [f"> {fact.statement}" for fact in group]


def _items(group: Group, chance: Random) -> str:
    mark = chance.choice("-*")
    return "\n".join(f"{mark} {_said(fact, chance)}" for fact in group)


def _said(fact: PlannedFact, chance: Random) -> str:
    """Return the statement. Sometimes its value is bold, which does not change the words."""
    is_bold = chance.random() < 0.2 and fact.statement.count(fact.value) == 1 and "*" not in fact.statement
    return fact.statement.replace(fact.value, f"**{fact.value}**") if is_bold else fact.statement


_LAYOUTS = {
    1: (_prose, _prose, _prose, _quoted),
    2: (_prose, _prose, _bullets),
    3: (_prose, _prose, _bullets, _bullets, _first_alone, _last_alone),
}


# The text above the first section: from when a page is valid, and what it contains.

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


# Places links with their reasons: within the page if there is room, else at its end.

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


# Makes a page from a brief: sections in a random order, each in a random layout. It states only what is planned.


def compose(brief: Brief, seed: int) -> str:
    """Return the page. It depends only on the brief and the seed, not on pages written before."""
    chance = Random(f"{seed} {brief.page.id}")
    page = brief.page
    head = [f"# {page.title or page.id}", *opening(brief, chance)]
    sections = _sections(page, chance)
    place_links(brief, sections, chance)
    _tell_apart(sections, page)
    return "\n\n".join([*head, *(section.text() for section in sections)]) + "\n"


def _sections(page: PlanPage, chance: Random) -> list[PageSection]:
    steps = _steps(page)
    needs_list = page.kind == "logical" and not steps
    parts = [
        fact_sections(page, chance, needs_list),
        [table_section(table, chance) for table in page.tables or ()],
        [steps_section(steps, bool(page.mermaid), chance)] if steps else [],
    ]
    chance.shuffle(parts)
    made = [section for part in parts for section in part]
    if chance.random() < 0.3:
        chance.shuffle(made)
    return made


def _steps(page: PlanPage) -> tuple[str, ...]:
    """Return the steps. If the page needs a diagram and has no steps, its facts are drawn instead."""
    return page.steps or (tuple(fact.statement for fact in page.facts or ()) if page.mermaid else ())


def _tell_apart(sections: list[PageSection], page: PlanPage) -> None:
    """Give sections with the same heading different ones: the second becomes a part of the first."""
    seen: dict[str, PageSection] = {}
    for section in list(sections):
        heading = section.heading.casefold()
        first = seen.setdefault(heading, section)
        if first is not section:
            first.blocks += section.blocks
            sections.remove(section)
        elif heading == (page.title or "").casefold():
            section.heading = "Overview"
