"""Finds contradictions in a plan before anything is written from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_harness.authoring.kb.plan import FACT_KINDS, PAGE_KINDS, Plan, PlannedFact, PlannedTable, PlanPage
from rag_harness.authoring.kb.planning.page_names import name_faults
from rag_harness.authoring.kb.planning.succession import circles, succession_faults, unplanned_differences
from rag_harness.errors import DataError

SHOWN_FAULTS = 20
"""How many faults a message lists; the others are counted."""
_BLOCK = re.compile(r"#{1,6}\s|[-+*]\s|\d{1,9}[.)]\s|>|\||```|~~~")
_NO_SENTENCE = "Markdown takes that for a heading, a list, a quote, a table or code. Begin with a word."


class Fault(NamedTuple):
    """What is wrong and what to do. ``page`` is an id, or empty if the whole plan is meant."""

    page: str
    text: str


def check_plan(plan: Plan) -> None:
    """Raise an error if a plan contradicts itself.

    Raises:
        DataError: lists the first ``SHOWN_FAULTS`` faults, each with its page and what to do.
    """
    faults = [f"{fault.page}: {fault.text}" if fault.page else fault.text for fault in plan_faults(plan)]
    if faults:
        more = [f"… and {len(faults) - SHOWN_FAULTS} more."] if len(faults) > SHOWN_FAULTS else []
        raise DataError(
            "\n".join(["The plan contradicts itself:", *(f"  {each}" for each in faults[:SHOWN_FAULTS]), *more])
        )


def plan_faults(plan: Plan) -> Iterator[Fault]:
    """Yield all faults of a plan. Fields that are None are not checked."""
    yield from _counts(plan)
    yield from (Fault(*fault) for fault in name_faults(plan))
    for page in plan.pages:
        yield from (Fault(page.id, text) for text in (*_kind(page), *_links(plan, page)))
        yield from content_faults(page)
    yield from _own_facts(plan)
    yield from (Fault(*fault) for fault in succession_faults(plan))


def inner_faults(plan: Plan) -> Iterator[Fault]:
    """Yield faults that a comparison with written pages would miss: in facts, tables, steps, and circles."""
    for page in plan.pages:
        yield from content_faults(page)
    yield from _own_facts(plan)
    yield from (Fault(*fault) for fault in (*unplanned_differences(plan), *circles(plan)))


def content_faults(page: PlanPage) -> Iterator[Fault]:
    """Yield what is wrong with the facts, tables and steps of a page."""
    for fact in page.facts or ():
        yield from (Fault(page.id, text) for text in _fact(fact))
    for table in page.tables or ():
        yield from (Fault(page.id, text) for text in _table(table))
    for number, step in enumerate(page.steps or (), 1):
        yield from (Fault(page.id, f"step {number}: {text}") for text in _step(step))
    if page.mermaid and page.steps == ():
        yield Fault(page.id, "mermaid is true, but there is no step to draw. List steps, or set mermaid to false.")


def _counts(plan: Plan) -> Iterator[Fault]:
    if not plan.pages:
        yield Fault("", "there is no page in it. Plan some.")
    if plan.num_pages not in (None, len(plan.pages)):
        what = f"num_pages is {plan.num_pages}, but {len(plan.pages)} pages are planned. Correct one of them."
        yield Fault("", what)
    if not 0 <= plan.rot <= 1:
        yield Fault("", f"rot is {plan.rot:g}; it is a share of pages, 0 to 1. Correct it.")
    pairs = len(plan.version_pairs or ())
    if 2 * pairs > len(plan.pages):
        what = f"{pairs} version pairs need {2 * pairs} pages; {len(plan.pages)} are planned. Drop pairs, or add pages."
        yield Fault("", what)


def _kind(page: PlanPage) -> Iterator[str]:
    if page.kind is not None and page.kind not in PAGE_KINDS:
        yield f"kind {page.kind!r} is unknown; known are {', '.join(PAGE_KINDS)}. Use one of them."
    if page.kind == "tabular" and page.tables == ():
        yield "its kind is tabular, but it has no table. Plan one, or change the kind."
    if page.kind == "logical" and page.steps == ():
        yield "its kind is logical, but it has no steps. Plan some, or change the kind."
    if page.kind == "mixed" and page.tables == () and page.steps == ():
        yield "its kind is mixed, but it has neither table nor steps. Plan some, or change the kind."


def _links(plan: Plan, page: PlanPage) -> Iterator[str]:
    for reference in page.links_to or ():
        goal = plan.page(reference)
        if goal is None:
            yield f"links_to names {reference!r}, which is not planned. Use the id of a planned page."
        elif goal.filename == page.filename:
            yield "links_to names the page itself. Drop that link."


def _fact(fact: PlannedFact) -> Iterator[str]:
    if fact.kind not in FACT_KINDS:
        yield f"fact {fact.id}: kind {fact.kind!r} is unknown; known are {', '.join(FACT_KINDS)}. Use one of them."
    if fact.value not in fact.statement:
        yield f"fact {fact.id}: the value {fact.value!r} is not in {fact.statement!r}. Write it there word for word."
    if fact.subject.casefold() not in fact.statement.casefold():
        yield f"fact {fact.id}: the subject {fact.subject!r} is not in {fact.statement!r}. Name it there."
    if "\n" in fact.statement or fact.statement != fact.statement.strip():
        yield f"fact {fact.id}: the statement is no single line of text: {fact.statement[:60]!r}. Mend it."
    elif mark := _BLOCK.match(fact.statement):
        yield f"fact {fact.id}: the statement begins with {mark[0]!r}. {_NO_SENTENCE}"


def _step(step: str) -> Iterator[str]:
    if not step.strip():
        yield "it is empty. Write it, or drop it."
    elif len(step.strip().splitlines()) > 1:
        yield f"{step[:60]!r} is no single line of text. Mend it."
    elif mark := _BLOCK.match(step.lstrip()):
        yield f"it begins with {mark[0]!r}. {_NO_SENTENCE}"


def _table(table: PlannedTable) -> Iterator[str]:
    for number, row in enumerate(table.rows, 1):
        if len(row) != len(table.columns):
            what = f"row {number} has {len(row)} cells, its header {len(table.columns)}"
            yield f"table {table.title!r}: {what}. Add or remove cells."


def _own_facts(plan: Plan) -> Iterator[Fault]:
    """Yield facts with a repeated id: twice on one page, or on pages that are not a version pair."""
    pairs = {frozenset((pair.outdated, pair.current)) for pair in plan.version_pairs or ()}
    pages: dict[str, PlanPage] = {}
    for page in plan.pages:
        for fact in page.facts or ():
            first = pages.setdefault(fact.id, page)
            twice = [each.id for each in page.facts or ()].count(fact.id) > 1
            if twice or (first is not page and frozenset((first.id, page.id)) not in pairs):
                yield Fault(page.id, f"fact {fact.id} stands on {first.id} already. Give each fact an id of its own.")
                pages[fact.id] = page
