"""A pie chart of shares, with a name beside each part."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import counted, short
from rag_harness.page.charts.estimates import check_shares
from rag_harness.page.charts.fills import filled, fills
from rag_harness.page.charts.frame import no_data
from rag_harness.page.charts.svg import CHART_WIDTH, Chart, coordinate, document, escaped, points, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

_RADIUS, _MIDDLE, _LINE = 90.0, CHART_WIDTH / 2, 19.0


@dataclass(frozen=True)
class PieSlice:
    """A part and its size, in any unit."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Pie(Chart):
    """Parts of a whole. The position in ``slices`` decides the colour, so pies with equal names look alike."""

    slices: tuple[PieSlice, ...]


@dataclass(frozen=True)
class _Piece:
    index: int
    name: str
    value: float
    share: float
    start: float

    @property
    def middle(self) -> float:
        """Position of the part's name on its arc. A whole circle has its name on the right."""
        return 0.25 if self.share > 1 - 1e-9 else 0.5

    def at(self, part: float, radius: float, centre: float) -> tuple[float, float]:
        """Return the position at a fraction of the part's arc. Arcs begin at the top and go clockwise."""
        angle = 2 * math.pi * (self.start + part * self.share)
        return _MIDDLE + radius * math.sin(angle), centre - radius * math.cos(angle)


def pie(chart: Pie) -> str:
    """Return a pie with the name and share of each part. Parts of size 0 are left out.

    Raises:
        ValueError: a value is negative or cannot be drawn.
    """
    for one in chart.slices:
        check_shares(f"pie chart {chart.ident!r}", one.name, [one.value])
    pieces = _pieces(chart)
    if not pieces:
        return no_data(chart, "pie")
    sides = [[p for p in pieces if (p.at(p.middle, 1, 0)[0] >= _MIDDLE) == right] for right in (True, False)]
    height = max(2 * _RADIUS + 44, _LINE * max(len(side) for side in sides) + 12)
    drawn = [_area(chart.ident, piece, height / 2) for piece in pieces]
    told = [_named(side, height, sign) for side, sign in zip(sides, (1, -1), strict=True)]
    patterns = fills(chart.ident, (piece.index for piece in pieces))
    desc = "; ".join(f"{piece.name} {short(piece.share, percent=True)}" for piece in pieces)
    return document(chart, height, patterns, *drawn, *told, desc=f"Shares: {desc}.", kind="pie")


def _pieces(chart: Pie) -> list[_Piece]:
    total = math.fsum(one.value for one in chart.slices)
    pieces: list[_Piece] = []
    start = 0.0
    for index, one in enumerate(chart.slices):
        if one.value > 0:
            pieces.append(_Piece(index, one.name, one.value, one.value / total, start))
            start += one.value / total
    return pieces


def _area(ident: str, piece: _Piece, centre: float) -> str:
    title = tag("title", escaped(f"{piece.name}: {short(piece.share, percent=True)} ({counted(piece.value)})"))
    if piece.share > 1 - 1e-9:
        return tag("circle", title, cx=_MIDDLE, cy=centre, r=_RADIUS, **filled(ident, piece.index))
    (x1, y1), (x2, y2) = (piece.at(part, _RADIUS, centre) for part in (0, 1))
    arc = f"A{coordinate(_RADIUS)},{coordinate(_RADIUS)} 0 {int(piece.share > 0.5)} 1 {coordinate(x2)},{coordinate(y2)}"
    path = f"M{coordinate(_MIDDLE)},{coordinate(centre)} L{coordinate(x1)},{coordinate(y1)} {arc} Z"
    return tag("path", title, d=path, **filled(ident, piece.index))


def _named(side: list[_Piece], height: float, sign: int) -> str:
    """Return the names of one side's parts from top to bottom, each joined to its part."""
    if not side:
        return ""
    ordered = sorted(side, key=lambda piece: piece.at(piece.middle, 1, 0)[1])
    wanted = [piece.at(piece.middle, _RADIUS + 16, height / 2)[1] for piece in ordered]
    heights = _apart(wanted, _LINE / 2 + 3, height - _LINE / 2 - 3)
    return "".join(_name(piece, y, height / 2, sign) for piece, y in zip(ordered, heights, strict=True))


def _name(piece: _Piece, y: float, centre: float, sign: int) -> str:
    beside = _MIDDLE + sign * (_RADIUS + 22)
    leader = [*(piece.at(piece.middle, _RADIUS + far, centre) for far in (1, 10)), (beside, y)]
    share = short(piece.share, percent=True)
    at, anchor = beside + sign * 4, "start" if sign > 0 else "end"
    far = at + sign * (1.12 * text_width(share) + 4)  # the text is bold
    room = (far if sign < 0 else CHART_WIDTH - far) - 4
    return (
        tag("polyline", points=points(leader), fill="none", class_="leader")
        + label(at, y + SMALL * 0.35, share, anchor=anchor, kind="label strong")
        + label(far, y + SMALL * 0.35, piece.name, room, anchor=anchor)
    )


def _apart(wanted: list[float], low: float, high: float) -> list[float]:
    """Return heights in the same order, at least a line apart and between the ends, near the wanted ones."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + _LINE if places else low))
    ceiling = high
    for index in reversed(range(len(places))):
        places[index] = min(places[index], ceiling)
        ceiling = places[index] - _LINE
    return places
