"""Pictures that are drawn from the code: the wings of the house from the import contract, the life of a trial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_WIDTH, _ROW, _GAP, _LEFT = 920, 40, 10, 170
_STYLE = (
    "<style>text{font:14px system-ui,sans-serif;fill:#1b1f24}.head{font-weight:600}.note{font-size:12px;fill:#57606a}"
    ".room{fill:#fff;stroke:#8c959f}.wing{fill:#f1f4f8;stroke:none}.arrow{stroke:#57606a;fill:none;marker-end:url(#to)}"
    "</style><defs><marker id='to' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
    "<path d='M0 0L8 4L0 8z' fill='#57606a'/></marker></defs>"
)
STEPS = (
    ("question", "a line of queries.jsonl: one pytest item for each experiment"),
    ("kept row?", "same fingerprint: the row is taken over, and nothing is asked"),
    ("retrieve", "chunks of the documents; reranked where the experiment does it"),
    ("answer", "the model's reply, or its recording; kept on the disk at once"),
    ("measure", "row and gold give numbers: recall@5, token_f1, expectations"),
    ("judge", "faithful? relevant? correct? each claim has its evidence"),
    ("row", "a line of output/<experiment>.jsonl, and its scores beside it"),
    ("gates", "thresholds over all rows: passed, failed, inconclusive"),
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
    parts, top = [], _GAP
    for name, rooms in by_wing.items():
        if rooms:
            boxes, height = _boxes(rooms, top + _GAP)
            parts.append(
                f"<rect class='wing' x='{_GAP}' y='{top}' width='{_WIDTH - 2 * _GAP}' height='{height}' rx='6'/>"
            )
            parts.append(f"<text class='head' x='{2 * _GAP}' y='{top + 34}'>{escape(name)}</text>")
            parts += boxes
            top += height + _GAP
    return _svg("The rooms of rag_harness by their wings; imports point down only", top, parts)


def _boxes(rooms: Sequence[str], top: int) -> tuple[list[str], int]:
    """Return boxes in rows, and the height of their wing."""
    parts, left, y = [], _LEFT, top
    for room in rooms:
        width = 9 * len(room) + 24
        if left + width > _WIDTH - 2 * _GAP:
            left, y = _LEFT, y + _ROW + _GAP
        parts.append(f"<rect class='room' x='{left}' y='{y}' width='{width}' height='{_ROW}' rx='4'/>")
        parts.append(f"<text x='{left + width / 2:g}' y='{y + 25}' text-anchor='middle'>{escape(room)}</text>")
        left += width + _GAP
    return parts, y + _ROW + _GAP - top + _GAP


def trial() -> str:
    """Return the steps of a trial, from the question to the cause of its failure."""
    return _svg("The life of a trial", len(STEPS) * 56 + _GAP, list(_steps()))


def _steps() -> Iterator[str]:
    for place, (name, note) in enumerate(STEPS):
        y = _GAP + 56 * place
        yield f"<rect class='room' x='{_GAP}' y='{y}' width='130' height='{_ROW}' rx='4'/>"
        yield f"<text class='head' x='75' y='{y + 25}' text-anchor='middle'>{escape(name)}</text>"
        yield f"<text class='note' x='160' y='{y + 25}'>{escape(note)}</text>"
        if place + 1 < len(STEPS):
            yield f"<path class='arrow' d='M75 {y + _ROW}V{y + 55}'/>"


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    box = f"viewBox='0 0 {_WIDTH} {height}' role='img' aria-label='{escape(title, quote=True)}'"
    ground = f"<rect width='{_WIDTH}' height='{height}' fill='#fff'/>"
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' {box}>{_STYLE}{ground}", *parts, "</svg>"]) + "\n"
