"""Makes the draft of a page from a topic and a thing: draws facts, fills the table, words the steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from rag_harness.authoring.kb.plan import PlannedFact, PlannedTable
from rag_harness.authoring.kb.planning.dealing import Dealt
from rag_harness.authoring.kb.planning.draft import Draft
from rag_harness.authoring.kb.planning.phrases import filled
from rag_harness.authoring.kb.planning.templates import FactTemplate
from rag_harness.dataset.slugs import slug

LEAST_FACTS, MOST_FACTS = 4, 7
_SUBJECT = re.compile(r"<([^<>]+)>")
_TRIES = 50
"""How often another value is drawn at most. A template has two values or more, so this limit is never reached."""


def drafted_page(dealt: Dealt, kind: str, seed: int, versions: bool) -> Draft:
    """Return the draft. It depends on the seed only, not on the number of other pages."""
    title = filled(dealt.topic.title, dealt.names, Random(seed))
    page_id = slug(title)
    chance = Random(f"{seed} {page_id}")
    templates = _some(dealt.topic.facts, chance)
    told = [_told(each, dealt.names, chance) for each in templates]
    ids = [f"{page_id}-f{number}" for number in range(1, len(told) + 1)]
    place = chance.randrange(len(told))
    return Draft(
        page_id,
        title,
        dealt.topic.category,
        kind,
        (dealt.names["thing"], dealt.topic.title, dealt.topic.category),
        tuple(map(_fact, ids, told)),
        (_table(dealt, chance),) if kind != "logical" else (),
        _steps(dealt, chance) if kind != "tabular" else (),
        _fact(ids[place], _older(told[place], templates[place], dealt.names, chance)) if versions else None,
    )


def _some(facts: tuple[FactTemplate, ...], chance: Random) -> list[FactTemplate]:
    count = chance.randint(LEAST_FACTS, min(MOST_FACTS, len(facts)))
    return [facts[place] for place in sorted(chance.sample(range(len(facts)), count))]


def _told(template: FactTemplate, names: Mapping[str, str], chance: Random) -> FactTemplate:
    before, value, after = (filled(part, names, chance) for part in (template.before, template.value, template.after))
    return FactTemplate(template.kind, before, value, after)


def _older(told: FactTemplate, template: FactTemplate, names: Mapping[str, str], chance: Random) -> FactTemplate:
    """Return the fact with another value in the same words."""
    for _ in range(_TRIES):
        value = filled(template.value, names, chance)
        if value != told.value:
            break
    return replace(told, value=value)


def _fact(fact_id: str, told: FactTemplate) -> PlannedFact:
    marked = f"{told.before}{told.value}{told.after}"
    (subject,) = _SUBJECT.findall(marked)
    statement = marked.replace("<", "").replace(">", "")
    return PlannedFact(id=fact_id, kind=told.kind, subject=subject, value=told.value, statement=statement)


def _table(dealt: Dealt, chance: Random) -> PlannedTable:
    """Return the table. Each row names the thing; otherwise rows of similar tables would contradict each other."""
    topic = dealt.topic
    rows = [[filled(cell, dealt.names, chance) for cell in row] for row in topic.rows]
    named = tuple((f"{first} ({dealt.names['thing']})", *others) for first, *others in rows)
    return PlannedTable(title=filled(topic.table, dealt.names, chance), columns=topic.columns, rows=named)


def _steps(dealt: Dealt, chance: Random) -> tuple[str, ...]:
    told = [step for step in dealt.topic.steps if not step.startswith("?") or chance.random() < 0.5]
    return tuple(filled(step.removeprefix("?").strip(), dealt.names, chance) for step in told)
