"""Checks the structure of a Mermaid diagram without its parser: type, quotes, brackets, ends of subgraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.authoring.kb.page import At

_NAMES = """
    flowchart graph sequenceDiagram classDiagram classDiagram-v2 stateDiagram stateDiagram-v2 erDiagram journey gantt
    pie quadrantChart requirementDiagram gitGraph mindmap timeline zenuml sankey sankey-beta xychart xychart-beta
    block block-beta packet packet-beta kanban architecture architecture-beta radar-beta treemap treemap-beta
    C4Context C4Container C4Component C4Dynamic C4Deployment
"""
_TYPES = frozenset(_NAMES.split())
_QUOTED = re.compile(r'"[^"]*"')
_FLAG_SHAPE = re.compile(r"(?<=\w)>[^\]]{0,300}\]")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def shape_problem(text: str) -> At | None:
    """Return the first fault in the structure of a diagram, with its line; None if there is none."""
    lines = list(_meaningful(text))
    if not lines:
        return At(1, "the diagram is empty.")
    number, first = lines[0]
    kind = re.split(r"[\s:;]", first, maxsplit=1)[0]
    if kind not in _TYPES:
        return At(number, f"{kind!r} is no type of diagram; the first line is for instance 'flowchart TD'.")
    return _flowchart_problem(lines[1:]) if kind in ("flowchart", "graph") else None


def _meaningful(text: str) -> Iterator[tuple[int, str]]:
    in_front = False
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.strip()
        if plain == "---":
            in_front = not in_front
        elif plain and not in_front and not plain.startswith("%%"):
            yield number, plain


def _flowchart_problem(lines: list[tuple[int, str]]) -> At | None:
    open_subgraphs: list[int] = []
    for number, line in lines:
        if line.count('"') % 2:
            return At(number, "a quote is opened and not closed.")
        plain = _FLAG_SHAPE.sub("", _QUOTED.sub("", line))
        if wrong := _unbalanced(plain):
            return At(number, f"{wrong!r} has no partner on its line.")
        if plain.split()[:1] == ["subgraph"]:
            open_subgraphs.append(number)
        elif plain.rstrip(";") == "end":
            if not open_subgraphs:
                return At(number, "'end' closes no subgraph.")
            open_subgraphs.pop()
    return At(open_subgraphs[-1], "the subgraph is never closed with 'end'.") if open_subgraphs else None


def _unbalanced(line: str) -> str:
    opened: list[str] = []
    for character in line:
        if character in _PAIRS.values():
            opened.append(character)
        elif character in _PAIRS and (not opened or opened.pop() != _PAIRS[character]):
            return character
    return opened[-1] if opened else ""
