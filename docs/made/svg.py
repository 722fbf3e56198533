"""What all drawings share: width, style, text that is wrapped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape

WIDTH, GAP = 920, 10
_STYLE = (
    "<style>text{font:14px system-ui,sans-serif;fill:#1b1f24}.head{font-weight:600}.note{font-size:12px;fill:#57606a}"
    ".box{fill:#fff;stroke:#8c959f}.band{fill:#f1f4f8;stroke:none}.arrow{stroke:#57606a;fill:none;marker-end:url(#to)}"
    "</style><defs><marker id='to' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
    "<path d='M0 0L8 4L0 8z' fill='#57606a'/></marker></defs>"
)


def svg(title: str, height: int, parts: Sequence[str], style: str = "") -> str:
    """Return a drawing on a white ground, which is readable on a dark page, too.

    Args:
        title: what a screen reader says of it.
        height: in pixels.
        parts: its elements.
        style: rules of its own, beside those of all drawings.
    """
    box = f"viewBox='0 0 {WIDTH} {height}' role='img' aria-label='{escape(title, quote=True)}'"
    ground = f"<rect width='{WIDTH}' height='{height}' fill='#fff'/>"
    own = f"<style>{style}</style>" if style else ""
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' {box}>{_STYLE}{own}{ground}", *parts, "</svg>"]) + "\n"


def text(left: float, top: float, words: str, kind: str = "", anchor: str = "") -> str:
    """Return a line of text; ``top`` is its baseline."""
    named = f" class='{kind}'" if kind else ""
    turned = f" text-anchor='{anchor}'" if anchor else ""
    return f"<text{named} x='{left:g}' y='{top:g}'{turned}>{escape(words)}</text>"


def box(kind: str, left: float, top: float, width: float, height: float) -> str:
    """Return a rectangle with round corners."""
    return f"<rect class='{kind}' x='{left:g}' y='{top:g}' width='{width:g}' height='{height:g}' rx='4'/>"


def wrapped(words: str, columns: int, most: int) -> list[str]:
    """Return words in at most so many lines; an ellipsis stands for what is left out."""
    return textwrap.wrap(" ".join(words.split()), columns, max_lines=most, placeholder=" …")


def lines(left: float, top: float, texts: Sequence[str], kind: str = "", step: int = 18) -> Iterator[str]:
    """Return texts below each other."""
    for place, each in enumerate(texts):
        yield text(left, top + place * step, each, kind)
