"""Figures of an evaluation as text, Markdown and HTML. What others wrote is made harmless: names, errors, reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from rag_harness.notebook.measure_figures import MeasureFigure
from rag_harness.report.summary import table
from rag_harness.shown import html, markdown
from rag_harness.shown.terminal import line

_HEADS = ("measure", "mean", "95 % interval", "n")


def as_text(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return lines of plain text, the columns aligned."""
    rows = [tuple(map(line, row)) for row in _rows(figures)]
    return "\n".join([line(title), *table([_HEADS, *rows]), *map(line, notes)])


def as_markdown(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return a table and a list in GitHub's Markdown."""
    rows = ["| " + " | ".join(map(markdown.plain, row)) + " |" for row in _rows(figures)]
    head = [f"**{markdown.plain(title)}**", "", f"| {' | '.join(_HEADS)} |", "|---|---:|---:|---:|", *rows]
    return "\n".join([*head, *([""] if notes else []), *(f"- {markdown.plain(each)}" for each in notes)])


def as_html(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return a table with its title as caption, and a list. It has no script, and takes the notebook's style."""
    heads = "".join(f'<th scope="col">{_safe(each)}</th>' for each in _HEADS)
    rows = "".join(
        f'<tr><th scope="row">{_safe(first)}</th>{"".join(f"<td>{_safe(each)}</td>" for each in others)}</tr>'
        for first, *others in _rows(figures)
    )
    said = f"<ul>{''.join(f'<li>{_safe(each)}</li>' for each in notes)}</ul>" if notes else ""
    return (
        f"<div><table><caption>{_safe(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f"{said}</div>"
    )


def _rows(figures: Mapping[str, MeasureFigure]) -> list[tuple[str, ...]]:
    return [(name, *figure.cells) for name, figure in figures.items()]


def _safe(text: str) -> str:
    return escape(html.visible(text))
