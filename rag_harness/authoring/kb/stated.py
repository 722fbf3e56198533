"""Checks that a page states what is planned: facts and steps word for word, tables by cell, no other figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import zip_longest

from rag_harness.authoring.kb.page import Page, fold
from rag_harness.authoring.kb.page_markdown import visible_text
from rag_harness.authoring.kb.plan import PlannedFact, PlannedTable, PlanPage
from rag_harness.words.sentence_ends import sentence_texts

_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_SHOWN = 5
"""How many figures a fault names."""


def fact_faults(page: PlanPage, written: Page, foreign: tuple[PlannedFact, ...] = ()) -> Iterator[str]:
    """Yield planned facts that are missing, and facts of another version that are not.

    ``foreign`` are facts that another version of the page states differently.
    """
    for fact in page.facts or ():
        if fold(fact.statement) not in written.folded:
            near = _nearest(written, fact.statement)
            yield f"fact {fact.id}: the page does not say {fact.statement!r}.{near} Write it word for word."
    for fact in foreign:
        if fold(fact.statement) in written.folded:
            yield f"fact {fact.id}: the page says {fact.statement!r}, which belongs to its other version. Remove it."


def _nearest(written: Page, statement: str) -> str:
    sentences = [text.strip(" -*>|") for text in sentence_texts(written.text) if text.strip()]
    close = get_close_matches(statement, sentences[:1000], n=1, cutoff=0.8)
    return f" It says {close[0]!r}." if close else ""


def step_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield the first step that is missing or stands before its predecessor."""
    text, place = written.folded, 0
    for diagram in written.diagrams:
        text = text.replace(fold(diagram.text), "")
    for number, step in enumerate(page.steps or (), 1):
        found = text.find(fold(step), place)
        if found < 0:
            why = "stands too early" if fold(step) in text else "is not there"
            yield f"step {number}, {step!r}, {why}. Write all steps word for word, in their order."
            return
        place = found + len(fold(step))


def table_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield missing tables, cells that differ, and tables that were not planned."""
    if page.tables is None:
        return
    left = [[[fold(cell) for cell in row] for row in grid] for grid in written.grids]
    missing = []
    for table in page.tables:
        wanted = _grid(table)
        if wanted in left:
            left.remove(wanted)
        else:
            missing.append((table, wanted))
    for table, wanted in missing:
        like = next((grid for grid in left if grid and grid[0] == wanted[0]), None)
        if like is not None:
            left.remove(like)
        yield _table_fault(table, wanted, like)
    for grid in left:
        yield f"a table of {_row(grid[0] if grid else [])} is not planned. Remove it, or write it as a list."


def _grid(table: PlannedTable) -> list[list[str]]:
    """Return the rows as a reader sees them: cells may contain marks of code, bold or links."""
    return [[fold(visible_text(cell)) for cell in row] for row in (table.columns, *table.rows)]


def _table_fault(table: PlannedTable, wanted: list[list[str]], like: list[list[str]] | None) -> str:
    if like is None:
        return f"the table {table.title!r} is not there. Write it with the columns {_row(wanted[0])}."
    none: list[str] = []
    for number, (planned, found) in enumerate(zip_longest(wanted, like, fillvalue=none)):
        if planned != found:
            said = f"is {_row(found)}" if found else "is not there"
            asked = f"planned is {_row(planned)}" if planned else "planned is none"
            return f"the table {table.title!r}: row {number} {said}, {asked}. Write it so."
    raise AssertionError("unreachable")


def _row(cells: list[str]) -> str:
    return " | ".join(cells) or "no cells"


def figure_faults(page: PlanPage, written: Page, known: Iterator[str]) -> Iterator[str]:
    """Yield the figures of a page that are not in ``known``: nothing planned states them."""
    planned = {figure for text in known for figure in _figures(text)}
    seen = " ".join(text for _, text in (*written.headings, *written.paragraphs))
    unplanned = list(dict.fromkeys(figure for figure in _figures(seen) if figure not in planned))
    if unplanned:
        shown = ", ".join(unplanned[:_SHOWN])
        yield f"{page.filename} has figures that its plan has not: {shown}. Leave out what is not planned."


def _figures(text: str) -> Iterator[str]:
    return (found[0].lstrip("0") or "0" for found in _FIGURE.finditer(text))
