"""Fills of series: a colour with a pattern, so that they differ in grey, too."""

from __future__ import annotations

from collections.abc import Iterable

from rag_harness.page.charts.series_marks import COLOURS
from rag_harness.page.charts.svg import tag

_TILE = 7.0
_HATCHES: tuple[tuple[str, ...], ...] = (
    (),
    ("M-1,8L8,-1M-1,1L1,-1M6,8L8,6",),
    ("M-1,-1L8,8M-1,6L1,8M6,-1L8,1",),
    ("M0,3.5L7,3.5",),
    ("M3.5,0L3.5,7",),
    ("M-1,8L8,-1M-1,1L1,-1M6,8L8,6", "M-1,-1L8,8M-1,6L1,8M6,-1L8,1"),
    ("M2,3.5L5,3.5",),
    ("M0,3.5L7,3.5", "M3.5,0L3.5,7"),
)


def fill_number(colour: int, hatch: int) -> int:
    """Return the number of the fill with this colour and this hatch, each 0 to 7."""
    return colour + COLOURS * ((hatch - colour) % len(_HATCHES))


def fills(ident: str, indexes: Iterable[int]) -> str:
    """Return the definitions of the patterns of these series."""
    return tag("defs", *(_pattern(ident, index) for index in sorted(set(indexes))))


def filled(ident: str, index: int) -> dict[str, str]:
    """Return the attributes of a shape with the fill and the edge of a series."""
    return {"fill": f"url(#{ident}-fill{index})", "class_": f"area stroke-{index % COLOURS}"}


def swatch(ident: str, index: int, x: float, y: float) -> str:
    """Return a filled square for a legend, 14 units wide, centred at the middle of a line of text."""
    return tag("rect", x=x, y=y - 7, width=14, height=14, **filled(ident, index))


def _pattern(ident: str, index: int) -> str:
    # The second eight have the colours of the first with other hatches.
    hatches = _HATCHES[(index + index // COLOURS) % len(_HATCHES)]
    return tag(
        "pattern",
        tag("rect", width=_TILE, height=_TILE, class_=f"fill-{index % COLOURS}"),
        *(tag("path", d=path, class_="hatch", fill="none") for path in hatches),
        id=f"{ident}-fill{index}",
        width=_TILE,
        height=_TILE,
        patternUnits="userSpaceOnUse",
    )
