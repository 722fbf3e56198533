"""Pictures that are drawn from the code: the wings of the house from the import contract, the life of a trial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from docs.made.svg import GAP, WIDTH, svg

_ROOT = Path(__file__).parents[2]
_ROW, _LEFT = 40, 170
STEPS = (
    ("question", "a line of queries.jsonl: one pytest item for each experiment"),
    ("kept row?", "same fingerprint: the row is reused, and nothing is asked"),
    ("retrieve", "chunks of the documents; reranked where the experiment does it"),
    ("answer", "the model's reply, or its recording; kept on the disk at once"),
    ("measure", "row and gold give numbers: recall@5, token_f1, expectations"),
    ("judge", "faithful? relevant? correct? each claim has its evidence"),
    ("row", "a line of output/<experiment>.jsonl, and its scores beside it"),
    ("gates", "thresholds over all rows: passed, failed, undecided"),
    ("causes", "failed trials run again with one thing changed"),
)


def wings() -> str:
    """Return the rooms of the package by their wings. Each may import what is below it."""
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8").partition('"Imports point down only"')[2]
    wing, by_wing = "", dict[str, list[str]]()
    for line in text.partition("layers = [")[2].partition("]")[0].splitlines():
        if named := re.match(r"\s*# ([\w, ]+)$", line):
            wing = named[1]
        by_wing.setdefault(wing, []).extend(re.findall(r"[a-z_]+", line.partition('"')[2]))
    parts, top = [], GAP
    for name, rooms in by_wing.items():
        if rooms:
            boxes, height = _boxes(rooms, top + GAP)
            parts.append(f"<rect class='wing' x='{GAP}' y='{top}' width='{WIDTH - 2 * GAP}' height='{height}' rx='6'/>")
            parts.append(f"<text class='head' x='{2 * GAP}' y='{top + 34}'>{escape(name)}</text>")
            parts += boxes
            top += height + GAP
    return svg("The rooms of rag_harness by their wings; imports point down only", top, parts)


def _boxes(rooms: Sequence[str], top: int) -> tuple[list[str], int]:
    """Return boxes in rows, and the height of their wing."""
    parts, left, y = [], _LEFT, top
    for room in rooms:
        width = 9 * len(room) + 24
        if left + width > WIDTH - 2 * GAP:
            left, y = _LEFT, y + _ROW + GAP
        parts.append(f"<rect class='room' x='{left}' y='{y}' width='{width}' height='{_ROW}' rx='4'/>")
        parts.append(f"<text x='{left + width / 2:g}' y='{y + 25}' text-anchor='middle'>{escape(room)}</text>")
        left += width + GAP
    return parts, y + _ROW + GAP - top + GAP


def trial() -> str:
    """Return the steps of a trial, from the question to the cause of its failure."""
    return svg("The life of a trial", len(STEPS) * 56 + GAP, list(_steps()))


def _steps() -> Iterator[str]:
    for place, (name, note) in enumerate(STEPS):
        y = GAP + 56 * place
        yield f"<rect class='room' x='{GAP}' y='{y}' width='130' height='{_ROW}' rx='4'/>"
        yield f"<text class='head' x='75' y='{y + 25}' text-anchor='middle'>{escape(name)}</text>"
        yield f"<text class='note' x='160' y='{y + 25}'>{escape(note)}</text>"
        if place + 1 < len(STEPS):
            yield f"<path class='arrow' d='M75 {y + _ROW}V{y + 55}'/>"
