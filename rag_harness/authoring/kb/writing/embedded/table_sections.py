"""Makes sections from tables and steps, each with an introductory line."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from rag_harness.authoring.kb.plan import PlannedTable
from rag_harness.authoring.kb.writing.embedded.english import lowered, table
from rag_harness.authoring.kb.writing.embedded.page_section import PageSection

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
