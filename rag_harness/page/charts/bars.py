"""Bars and dots: values with intervals on one axis, stacked bars, and pies of shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from rag_harness.page.charts.frame import (
    COLOURS,
    Axis,
    Box,
    Estimate,
    Rows,
    Scale,
    base_line,
    check_estimates,
    check_numbers,
    check_shares,
    colour_at,
    counted,
    estimate_in_words,
    filled,
    fills,
    legend,
    level,
    linear,
    marker,
    no_data,
    rows_below,
    short,
    swatch,
    whiskers,
)
from rag_harness.page.charts.svg import SMALL, Chart, coordinate, document, escaped, label, points, tag, text_width

_TALL, _FOOT = 22.0, 26.0
_NONE = "n/a"


@dataclass(frozen=True)
class Dot:
    """A name with its value; None is a missing value. ``colour`` is the number of its colour and shape."""

    name: str
    value: Estimate | None
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Dots(Chart):
    """Rows on one axis. The axis contains ``include`` too, e.g. (0, 1). ``percent`` writes 0.5 as 50%."""

    rows: tuple[Dot, ...]
    percent: bool = False
    include: tuple[float, ...] = ()


def dots(chart: Dots) -> str:
    """Return a row for each name, with a mark, its interval as a line, and its value as a number.

    Raises:
        ValueError: a number cannot be drawn, or an interval is inverted.
    """
    who = f"dots chart {chart.ident!r}"
    values = [n for row in chart.rows if row.value for n in check_estimates(who, row.name, [row.value])]
    if not values:
        return no_data(chart, "dots")
    axis = linear([*values, *chart.include], count=4, percent=chart.percent)
    rows = rows_below(2.0, (row.name for row in chart.rows), chart.width, _TALL)
    said = [_NONE if row.value is None else short(row.value.value, percent=chart.percent) for row in chart.rows]
    right = chart.width - max(text_width(text) for text in said) - 16
    box = Box(rows.left + 6, rows.top, right, rows.end(len(chart.rows)))
    drawn = [
        _row(chart, at, rows, axis.scale(box.left, box.right)) + _value(text, rows.middle(at), chart.width)
        for at, text in enumerate(said)
    ]
    frame = level(axis, box, chart.width) + base_line(box)
    told = ", ".join(f"{row.name} {text}" for row, text in zip(chart.rows, said, strict=True))
    return document(chart, box.bottom + _FOOT, frame, *drawn, desc=f"{told}. Lines are intervals.", kind="dots")


def _row(chart: Dots, at: int, rows: Rows, place: Scale) -> str:
    row, y = chart.rows[at], rows.middle(at)
    name = rows.name(row.name, at, chart.width - 4)
    if row.value is None:
        return name
    index = colour_at(row.colour, at)
    title = f"{row.name}: {estimate_in_words(row.value, percent=chart.percent)}"
    mark = marker(index, place(row.value.value), y, 5.0, title)
    low, high = (place(row.value.value if end is None else end) for end in (row.value.low, row.value.high))
    line = whiskers((low, high), y, f"stroke-{index % COLOURS}", upright=False) if low != high else ""
    return name + tag("g", line, mark, class_=f"series-{index % COLOURS}")


def _value(text: str, middle: float, width: float) -> str:
    kind = "label mute" if text == _NONE else "label"
    return label(width - 4, middle + SMALL * 0.36, text, anchor="end", kind=kind)


_WIDTH, _TICKS, _HEIGHT, _NAMED, _EDGE = 160.0, 13.0, 36.0, 51.0, 6.0
_FADE = 30.0

Tone = Literal["good", "bad", "unsure", "mute"]


@dataclass(frozen=True, kw_only=True)
class IntervalBar(Chart):
    """A value on a span with its threshold.

    ``better`` says which side of the threshold is good. An end of the interval that is None is open. The scale ends at
    round numbers, and values beyond it are drawn at its edge. ``is_signed`` writes a plus before numbers above 0, for
    differences. ``unit`` names what the scale is of. ``tone`` shows the verdict.
    """

    value: Estimate | None
    width: float = _WIDTH
    span: tuple[float, float] = (0.0, 1.0)
    threshold: float | None = None
    better: Literal["low", "high"] = "high"
    tone: Tone = "mute"
    percent: bool = False
    is_signed: bool = False
    unit: str = ""


def interval_bar(bar: IntervalBar) -> str:
    """Return the bar, 160 units wide, above its scale. An open interval fades towards its edge.

    Raises:
        ValueError: a number cannot be drawn, or the span or the interval is inverted.
    """
    who = f"interval bar chart {bar.ident!r}"
    check_numbers(who, "span", [*bar.span, *([] if bar.threshold is None else [bar.threshold])])
    if bar.span[0] >= bar.span[1]:
        raise ValueError(
            f"{who}: the span from {bar.span[0]} to {bar.span[1]} holds nothing; give its lower end first."
        )
    if bar.value is None:
        said = label(_EDGE, 13, "not measured", size=SMALL, kind="label mute")
        return document(bar, _HEIGHT, said, desc=_desc(bar), kind="interval-bar")
    check_estimates(who, "value", [bar.value])
    axis = _axis(bar)
    place = axis.scale(_EDGE, _WIDTH - _EDGE)
    drawn = [tag("line", x1=_EDGE, x2=_WIDTH - _EDGE, y1=9, y2=9, class_="track"), _interval(bar, bar.value, place)]
    drawn += [] if bar.threshold is None else [_threshold(_within(place, bar.threshold), bar.better)]
    scale = level(axis, Box(_EDGE, 0, _WIDTH - _EDGE, _TICKS), _WIDTH, grid=False)
    name = label(_WIDTH / 2, _NAMED - 5, bar.unit, _WIDTH, anchor="middle", size=SMALL, kind="axis-name")
    parts = tag("g", *drawn, class_=f"tone-{bar.tone}") + scale + (name if bar.unit else "")
    return document(bar, _NAMED if bar.unit else _HEIGHT, parts, desc=_desc(bar), kind="interval-bar")


def _axis(bar: IntervalBar) -> Axis:
    axis = linear(bar.span, count=2, percent=bar.percent)
    if not bar.is_signed:
        return axis
    labels = (f"+{text}" if tick > 0 else text for tick, text in zip(axis.ticks, axis.labels, strict=True))
    return replace(axis, labels=tuple(labels))


def _within(place: Scale, value: float) -> float:
    return min(max(place(value), _EDGE), _WIDTH - _EDGE)


def _interval(bar: IntervalBar, value: Estimate, place: Scale) -> str:
    x = _within(place, value.value)
    bare = value.low is None and value.high is None
    left = x if bare else _EDGE if value.low is None else _within(place, value.low)
    right = x if bare else _WIDTH - _EDGE if value.high is None else _within(place, value.high)
    drawn = [_solid(left if value.low is not None else x, right if value.high is not None else x)]
    if not bare:
        drawn += [_fading(x, left)] if value.low is None else [_cap(left)]
        drawn += [_fading(x, right)] if value.high is None else [_cap(right)]
    return "".join(drawn) + _mark(bar.tone, x)


def _solid(left: float, right: float) -> str:
    return tag("rect", x=left, y=7, width=right - left, height=4, class_="tone") if right > left else ""


def _cap(x: float) -> str:
    return tag("line", x1=x, x2=x, y1=4.5, y2=13.5, class_="tone-line", stroke_width=1.5)


def _fading(start: float, end: float) -> str:
    """Return a bar to the edge that becomes paler in steps: its end is unknown."""
    sign = 1 if end >= start else -1
    fade = min(_FADE, abs(end - start))
    solid = end - sign * fade
    drawn = [_solid(min(start, solid), max(start, solid))]
    for step, opacity in enumerate((0.85, 0.65, 0.48, 0.32, 0.18)):
        edges = sorted((solid + sign * fade * step / 5, solid + sign * fade * (step + 1) / 5))
        shape = {"x": edges[0], "y": 7, "width": edges[1] - edges[0], "height": 4, "opacity": opacity}
        drawn.append(tag("rect", **shape, class_="tone"))
    return "".join(drawn)


def _threshold(x: float, better: str) -> str:
    """Return a line with a flag at its top that points to the good side."""
    tip = min(max(x + (6 if better == "high" else -6), 0.0), _WIDTH)
    flag = tag("polygon", points=points([(x, 0), (tip, 2.5), (x, 5)]), class_="ink-fill")
    return tag("line", x1=x, x2=x, y1=0, y2=18, class_="ink", stroke_width=1.5) + flag


def _mark(tone: Tone, x: float) -> str:
    """Return the value's mark: full where it passed, a cross where it failed, hollow where it is undecided."""
    if tone == "bad":
        arms = [(1, 1), (1, -1)]
        return "".join(
            tag("line", x1=x - 4.5, x2=x + 4.5, y1=9 - 4.5 * up, y2=9 + 4.5 * up, class_="tone-line", stroke_width=3)
            for _, up in arms
        )
    return tag("circle", cx=x, cy=9, r=4, class_="tone edge" if tone == "good" else "plate tone-line", stroke_width=2)


def _desc(bar: IntervalBar) -> str:
    value = "not measured" if bar.value is None else estimate_in_words(bar.value, percent=bar.percent)
    if bar.threshold is None:
        return f"{value}."
    needed = estimate_in_words(Estimate(bar.threshold), percent=bar.percent)
    return f"{value}; needed: {'at least' if bar.better == 'high' else 'at most'} {needed}."


# Stacked bars of shares, one for each row. They are easier to compare than pies.

_STACKED_HEIGHT, _BETWEEN = 20.0, 8.0
_SEEN = 6.0
"""How much of a part is seen beside the number in it."""
_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), ("0%", "25%", "50%", "75%", "100%"))


@dataclass(frozen=True)
class StackedBar:
    """A bar: the size of each of its parts, in any unit."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Stacked(Chart):
    """Rows with the same parts, each scaled to 100 %.

    ``colours`` are the numbers of the parts' colours and patterns; without them they are their positions.
    """

    parts: tuple[str, ...]
    rows: tuple[StackedBar, ...]
    colours: tuple[int, ...] = ()

    def colour(self, part: int) -> int:
        """Return the number of a part's colour and pattern."""
        return colour_at(self.colours[part] if self.colours else None, part)


def stacked(chart: Stacked) -> str:
    """Return a horizontal bar for each row. A share is written inside where it has room, the row's sum after it.

    Raises:
        ValueError: a row and the parts differ in number, or a value is negative or no number.
    """
    _check(chart)
    if not any(sum(row.values) for row in chart.rows):
        return no_data(chart, "stacked")
    colours = [chart.colour(part) for part in range(len(chart.parts))]
    head, end = legend(chart.parts, lambda *at: swatch(chart.ident, *at), 14, chart.width, colours)
    rows = rows_below(end + 4, (row.name for row in chart.rows), chart.width, _STACKED_HEIGHT + _BETWEEN)
    right = chart.width - 10 - max(text_width(_sum(row), SMALL) for row in chart.rows)
    box = Box(rows.left, rows.top, right, rows.end(len(chart.rows)))
    drawn = [_stacked_bar(chart, place, rows, box) for place in range(len(chart.rows))]
    frame = (fills(chart.ident, colours), head, level(_AXIS, box, chart.width), base_line(box))
    desc = f"Shares of {', '.join(chart.parts)} in {', '.join(row.name for row in chart.rows)}."
    return document(chart, box.bottom + 26, *frame, *drawn, desc=desc, kind="stacked")


def _check(chart: Stacked) -> None:
    for row in chart.rows:
        who = f"stacked chart {chart.ident!r}"
        if len(row.values) != len(chart.parts):
            raise ValueError(f"{who}: series {row.name!r} has {len(row.values)} values for {len(chart.parts)} parts.")
        check_shares(who, row.name, row.values)


def _sum(row: StackedBar) -> str:
    return f"n = {counted(math.fsum(row.values))}"


def _stacked_bar(chart: Stacked, place: int, rows: Rows, box: Box) -> str:
    row, middle = chart.rows[place], rows.middle(place)
    total, start, drawn = math.fsum(row.values), 0.0, []
    for index, (part, value) in enumerate(zip(chart.parts, row.values, strict=True)):
        if value:
            share = value / total
            left, right = (box.left + (box.right - box.left) * edge for edge in (start, min(1.0, start + share)))
            title = f"{row.name}, {part}: {short(share, percent=True)} ({counted(value)})"
            drawn.append(_piece(filled(chart.ident, chart.colour(index)), left, right, middle, title))
            drawn.append(_inside(share, left, right, middle))
            start += share
    if not total:
        drawn.append(label(box.left + 6, middle + 4, "no data", size=SMALL, kind="label mute"))
    beside = rows.name(row.name, place, chart.width - 4)
    behind = label(box.right + 6, middle + 4, _sum(row), size=SMALL, kind="axis-label")
    return beside + "".join(drawn) + behind


def _piece(fill: dict[str, str], left: float, right: float, middle: float, title: str) -> str:
    inside = tag("title", escaped(title))
    return tag(
        "rect", inside, x=left, y=middle - _STACKED_HEIGHT / 2, width=right - left, height=_STACKED_HEIGHT, **fill
    )


def _inside(share: float, left: float, right: float, middle: float) -> str:
    text, x = f"{share:.0%}", (left + right) / 2
    wide = text_width(text, SMALL) + 2
    if wide + _SEEN > right - left:
        return ""
    # The pattern would make the number unreadable, so it has a plate in the page's colour behind it.
    plate = tag("rect", x=x - wide / 2, y=middle - 8, width=wide, height=16, rx=2, class_="plate")
    return plate + label(x, middle + SMALL * 0.36, text, anchor="middle", size=SMALL)


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
