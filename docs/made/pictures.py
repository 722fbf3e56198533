"""The picture of the life of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from docs.made.svg import GAP, svg

_ROW = 40
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


def trial() -> str:
    """Return the steps of a trial, from the question to the cause of its failure."""
    return svg("The life of a trial", len(STEPS) * 56 + GAP, list(_steps()))


def _steps() -> Iterator[str]:
    for place, (name, note) in enumerate(STEPS):
        y = GAP + 56 * place
        yield f"<rect class='box' x='{GAP}' y='{y}' width='130' height='{_ROW}' rx='4'/>"
        yield f"<text class='head' x='75' y='{y + 25}' text-anchor='middle'>{escape(name)}</text>"
        yield f"<text class='note' x='160' y='{y + 25}'>{escape(note)}</text>"
        if place + 1 < len(STEPS):
            yield f"<path class='arrow' d='M75 {y + _ROW}V{y + 55}'/>"
