"""Facts -> sections: grouped by kind, by what they are about, or as they come; as prose, as lists, as both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from rag_harness.kb.plan import PlannedFact
from rag_harness.kb.writing.embedded.english import capital
from rag_harness.kb.writing.embedded.section import Section

Group = tuple[str, list[PlannedFact]]
_OF_KIND = {
    "amount": ("Amounts", "In figures", "Key figures", "The figures", "How much", "Numbers to know"),
    "date": ("Dates", "When", "Dates to note", "Timing", "From when and until when"),
    "limit": ("Limits", "How far it goes", "What the limits are", "Upper and lower limits", "Within which limits"),
    "condition": ("Conditions", "When this applies", "Rules", "What has to be met", "Under which conditions"),
}
_OTHERS = ("Good to know", "Further points", "Also fixed", "In addition", "Other points", "Worth knowing", "Details")
_LEADS = ("In detail:", "The following holds:", "Point by point:", "To be noted:", "What is fixed:", "In short:", "")
_MORE = ("In addition:", "Besides that:", "Further:", "Apart from that:", "Also:")


def fact_sections(facts: Sequence[PlannedFact], chance: Random, list_one: bool) -> list[Section]:
    """Return the sections; with ``list_one`` at least the first of them has a list."""
    groups = chance.choice((_by_kind, _by_subject, _by_subject, _in_runs))(facts, chance)
    layouts = (_prose, _prose, _bullets, _labelled, _first_alone)
    made = []
    for number, (heading, group) in enumerate(groups):
        layout = _bullets if list_one and not number else chance.choice(layouts if len(group) > 1 else (_prose, _quoted))
        made.append(Section(heading, layout(group, chance)))
    return made


def _by_kind(facts: Sequence[PlannedFact], chance: Random) -> list[Group]:
    kinds: dict[str, list[PlannedFact]] = {}
    for fact in facts:
        kinds.setdefault(fact.kind, []).append(fact)
    alone = [kind for kind, group in kinds.items() if len(group) == 1]
    groups = [(chance.choice(_OF_KIND.get(kind, _OTHERS)), group) for kind, group in kinds.items() if kind not in alone]
    rest = [kinds[kind][0] for kind in alone]
    single = chance.choice(_OTHERS if len(rest) > 1 else _OF_KIND.get(rest[0].kind, _OTHERS)) if rest else ""
    return [*groups, *([(single, rest)] if rest else [])]


def _by_subject(facts: Sequence[PlannedFact], chance: Random) -> list[Group]:
    subjects: dict[str, list[PlannedFact]] = {}
    for fact in facts:
        subjects.setdefault(fact.subject, []).append(fact)
    if len(subjects) in (1, len(facts)):
        return (_by_kind if len(subjects) == 1 else _in_runs)(facts, chance)
    return [(capital(subject), group) for subject, group in subjects.items()]


def _in_runs(facts: Sequence[PlannedFact], chance: Random) -> list[Group]:
    """Return runs of two or three facts, each under what its first is about."""
    runs, left = [], list(facts)
    while left:
        taken = len(left) if len(left) < 4 else chance.choice((2, 3))
        runs.append(left[:taken])
        left = left[taken:]
    return [(capital(run[0].subject) if chance.random() < 0.7 else chance.choice(_OTHERS), run) for run in runs]


def _prose(group: Sequence[PlannedFact], chance: Random) -> list[str]:
    statements = [fact.statement for fact in group]
    cut = chance.choice((2, 3, len(statements)))
    return [" ".join(statements[start : start + cut]) for start in range(0, len(statements), cut)]


def _bullets(group: Sequence[PlannedFact], chance: Random) -> list[str]:
    return [*filter(None, [chance.choice(_LEADS)]), _items(group, lambda fact: fact.statement, chance)]


def _labelled(group: Sequence[PlannedFact], chance: Random) -> list[str]:
    """Return a list with what each fact is about in front of it; facts about one thing need no label."""
    subjects = {fact.subject for fact in group}
    if len(subjects) < len(group):
        return _bullets(group, chance)
    mark = chance.choice((".", ":"))
    return [_items(group, lambda fact: f"**{capital(fact.subject)}{mark}** {fact.statement}", chance)]


def _first_alone(group: Sequence[PlannedFact], chance: Random) -> list[str]:
    return [group[0].statement, chance.choice(_MORE), _items(group[1:], lambda fact: fact.statement, chance)]


def _quoted(group: Sequence[PlannedFact], chance: Random) -> list[str]:
    mark = chance.choice(("", "> "))
    return [f"{mark}{fact.statement}" for fact in group]


def _items(group: Sequence[PlannedFact], shown: Callable[[PlannedFact], str], chance: Random) -> str:
    mark = chance.choice("-*")
    return "\n".join(f"{mark} {shown(fact)}" for fact in group)
