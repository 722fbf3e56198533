"""A pie chart of shares, with a list of the parts beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import counted, short
from rag_harness.page.charts.estimates import check_shares
from rag_harness.page.charts.fills import filled, fills, swatch
from rag_harness.page.charts.frame import no_data
from rag_harness.page.charts.series_marks import colour_at
from rag_harness.page.charts.svg import Chart, coordinate, document, escaped, tag
from rag_harness.page.charts.texts import SMALL, label

_RADIUS, _LINE, _MARGIN = 54.0, 19.0, 4.0
_MIDDLE = _MARGIN + _RADIUS
_LIST, _SHARE = 122.0, 52.0


@dataclass(frozen=True)
class PieSlice:
    """A part and its size, in any unit. ``colour`` is the number of its colour and pattern; None takes its position."""

    name: str
    value: float
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Pie(Chart):
    """Parts of a whole."""

    slices: tuple[PieSlice, ...]


@dataclass(frozen=True)
class _Piece:
    index: int
    name: str
    value: float
    share: float
    start: float

    def at(self, part: float, centre: float) -> tuple[float, float]:
        """Return the position at a fraction of the part's arc. Arcs begin at the top and go clockwise."""
        angle = 2 * math.pi * (self.start + part * self.share)
        return _MIDDLE + _RADIUS * math.sin(angle), centre - _RADIUS * math.cos(angle)


def pie(chart: Pie) -> str:
    """Return a pie, and the share and name of each part in their order. Parts of size 0 are left out.

    Raises:
        ValueError: a value is negative or cannot be drawn.
    """
    for one in chart.slices:
        check_shares(f"pie chart {chart.ident!r}", one.name, [one.value])
    pieces = _pieces(chart)
    if not pieces:
        return no_data(chart, "pie")
    height = max(2 * (_RADIUS + _MARGIN), _LINE * len(pieces) + 2 * _MARGIN)
    top = (height - _LINE * len(pieces)) / 2
    drawn = [_area(chart.ident, piece, height / 2) for piece in pieces]
    told = [_told(chart, piece, top + _LINE * (place + 0.5)) for place, piece in enumerate(pieces)]
    patterns = fills(chart.ident, (piece.index for piece in pieces))
    desc = "; ".join(f"{piece.name} {short(piece.share, percent=True)}" for piece in pieces)
    return document(chart, height, patterns, *drawn, *told, desc=f"Shares: {desc}.", kind="pie")


def _pieces(chart: Pie) -> list[_Piece]:
    total = math.fsum(one.value for one in chart.slices)
    pieces: list[_Piece] = []
    start = 0.0
    for place, one in enumerate(chart.slices):
        if one.value > 0:
            pieces.append(_Piece(colour_at(one.colour, place), one.name, one.value, one.value / total, start))
            start += one.value / total
    return pieces


def _area(ident: str, piece: _Piece, centre: float) -> str:
    title = tag("title", escaped(f"{piece.name}: {short(piece.share, percent=True)} ({counted(piece.value)})"))
    if piece.share > 1 - 1e-9:
        return tag("circle", title, cx=_MIDDLE, cy=centre, r=_RADIUS, **filled(ident, piece.index))
    (x1, y1), (x2, y2) = (piece.at(part, centre) for part in (0, 1))
    arc = f"A{coordinate(_RADIUS)},{coordinate(_RADIUS)} 0 {int(piece.share > 0.5)} 1 {coordinate(x2)},{coordinate(y2)}"
    path = f"M{coordinate(_MIDDLE)},{coordinate(centre)} L{coordinate(x1)},{coordinate(y1)} {arc} Z"
    return tag("path", title, d=path, **filled(ident, piece.index))


def _told(chart: Pie, piece: _Piece, middle: float) -> str:
    y, right = middle + SMALL * 0.36, _LIST + _SHARE
    share = label(right, y, short(piece.share, percent=True), anchor="end", size=SMALL, kind="label strong")
    name = label(right + 5, y, piece.name, chart.width - right - 5, size=SMALL)
    return swatch(chart.ident, piece.index, _LIST, middle) + share + name
