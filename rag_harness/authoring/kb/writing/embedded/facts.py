"""Makes sections from facts: grouped by kind or in order, as prose, as lists, or as both."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from rag_harness.authoring.kb.plan import PlannedFact, PlanPage
from rag_harness.authoring.kb.writing.embedded.page_section import PageSection
from rag_harness.authoring.kb.writing.embedded.topics import heading_of

Group = list[PlannedFact]
# Noun phrases, because a question about a section says "regarding" and its heading.
_OF_KIND = {
    "amount": ("Amounts", "Key figures", "The figures", "Numbers to know", "Figures at a glance"),
    "date": ("Dates", "Dates to note", "Timing", "Important dates"),
    "limit": ("Limits", "Limits to know", "Bounds and periods", "Upper and lower limits"),
    "condition": ("Conditions", "Rules", "Requirements", "Rules and exceptions"),
}
_OTHERS = ("Further points", "Other points", "Details", "Particulars", "Points to note", "Main points", "More details")
_LEADS = ("In detail:", "The following holds:", "Point by point:", "To be noted:", "What is fixed:", "In short:", "")
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
    return [*filter(None, [chance.choice(_LEADS)]), _items(group, chance)]


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
