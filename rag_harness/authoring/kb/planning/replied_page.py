"""Reads the draft of a page from a model's reply, or returns the faults for asking again."""

from __future__ import annotations

from pydantic import ValidationError

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.kb.plan import PlannedFact, PlannedTable, PlanPage
from rag_harness.authoring.kb.planning.draft import Draft
from rag_harness.authoring.kb.planning.plan_checks import content_faults
from rag_harness.authoring.kb.planning.replied import SHAPE, ReplyPart, page_id, read_as
from rag_harness.authoring.kb.planning.told_to_plan import LEAST_FACTS, MOST_FACTS, PageTask
from rag_harness.models.until_right import Fault
from rag_harness.words.comparison import compared_words

_LETTERS_OF_TOPIC = 5
_NAMED = 5
"""How many faults of a page the model is told at once."""


class _Fact(ReplyPart):
    kind: str
    subject: str
    value: str
    statement: str


class _Table(ReplyPart):
    title: str
    columns: list[str]
    rows: list[list[str]]


class _Older(ReplyPart):
    fact: int
    value: str
    statement: str


class _Page(ReplyPart):
    facts: list[_Fact]
    table: _Table | None = None
    steps: tuple[str, ...] = ()
    older: _Older | None = None


def draft_of(task: PageTask, reply: str) -> Draft | Fault:
    """Return the draft in a reply, or everything that is wrong with it."""
    read = read_as(_Page, reply)
    if read is None:
        return Fault(SHAPE)
    try:
        draft = _drafted(task, read)
    except ValidationError as error:
        return Fault("; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_NAMED]))
    faults = _faults(task, draft, read.older)
    return Fault("; ".join(faults[:_NAMED])) if faults else draft


def _drafted(task: PageTask, read: _Page) -> Draft:
    own = page_id(task.title)
    facts = tuple(
        PlannedFact(id=f"{own}-f{number}", **{key: squeeze(text) for key, text in fact.model_dump().items()})
        for number, fact in enumerate(read.facts, 1)
    )
    tables = (PlannedTable.model_validate(read.table.model_dump()),) if read.table and task.kind != "logical" else ()
    steps = tuple(map(squeeze, read.steps)) if task.kind != "tabular" else ()
    about = (*(word for word in compared_words(task.title) if len(word) >= _LETTERS_OF_TOPIC), task.category)
    older = _older(facts, read.older) if task.versions else None
    return Draft(own, task.title, task.category, task.kind, about, facts, tables, steps, older)


def _older(facts: tuple[PlannedFact, ...], older: _Older | None) -> PlannedFact | None:
    if older is None or not 1 <= older.fact <= len(facts):
        return None
    said = {"value": squeeze(older.value), "statement": squeeze(older.statement)}
    return PlannedFact.model_validate({**facts[older.fact - 1].model_dump(), **said})


def _faults(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    held = PlanPage(filename="page.md", facts=draft.facts, tables=draft.tables, steps=draft.steps)
    faults = [_for_model(fault.text, draft.id) for fault in content_faults(held)]
    if not LEAST_FACTS <= len(draft.facts) <= MOST_FACTS:
        faults.append(f"there are {len(draft.facts)} facts; {LEAST_FACTS} to {MOST_FACTS} are asked for")
    if len({fact.statement for fact in draft.facts}) < len(draft.facts):
        faults.append("two facts have the same statement")
    if task.kind != "logical" and not draft.tables:
        faults.append("there is no table")
    if task.kind != "tabular" and not draft.steps:
        faults.append("there are no steps")
    return [*faults, *_faults_of_older(task, draft, older)]


def _faults_of_older(task: PageTask, draft: Draft, older: _Older | None) -> list[str]:
    if not task.versions:
        return []
    if draft.older is None:
        found = "is missing" if older is None else f"names fact {older.fact}, there are {len(draft.facts)}"
        return [f'"older" {found}']
    if draft.older.statement in {fact.statement for fact in draft.facts}:
        return ['"older" states what the page still states']
    if any(fact.id == draft.older.id and fact.value.casefold() == draft.older.value.casefold() for fact in draft.facts):
        return [f'"older" has the value that the page still has, {draft.older.value!r}; give it another']
    held = PlanPage(filename="page.md", facts=(draft.older,))
    return [f'"older": {_for_model(fault.text, draft.id)}' for fault in content_faults(held)]


def _for_model(text: str, own: str) -> str:
    """Replace ids of facts by their numbers: the model does not know the ids."""
    return text.replace(f"fact {own}-f", "fact ")
