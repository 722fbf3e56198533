"""The frame of a plot: estimates, axes, grid and labels, and the marks, fills and legends of its series."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag_harness.page.charts.svg import (
    LINE,
    SIZE,
    SMALL,
    Chart,
    broken,
    document,
    drop,
    escaped,
    label,
    points,
    reach,
    shortened,
    tag,
    text_width,
    turned,
)

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# Smaller numbers count as 0: their powers of ten would leave the range of a float.
_NOTHING = 1e-100


@dataclass(frozen=True)
class Scale:
    """Maps numbers from ``low`` to ``high`` to positions from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, place = (math.log10(n) if self.log else n for n in (self.low, self.high, value))
        return self.start + (place - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Axis:
    """The range of an axis, with its ticks and their format."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    log: bool = False

    def scale(self, start: float, end: float) -> Scale:
        """Return the scale that maps this axis to the range between two positions."""
        return Scale(self.low, self.high, start, end, self.log)


def linear(values: Iterable[float], *, count: int = 5, percent: bool = False) -> Axis:
    """Return an axis that contains all values and ends at ticks; 0 to 1 without values."""
    low, high = _span(list(values))
    step = _step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(place * step for place in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, tuple(_written(tick, step, percent, ticks) for tick in ticks))


def logarithmic(values: Iterable[float]) -> Axis:
    """Return an axis of powers of ten, with 2 and 5 between them where ticks would be few.

    Raises:
        ValueError: no value is given, or one is not above 0.
    """
    found = list(values)
    if not found or min(found) <= 0:
        raise ValueError("a logarithmic axis needs values above 0.")
    decades = range(math.floor(math.log10(min(found))) - 1, math.ceil(math.log10(max(found))) + 2)
    marks = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
    low = max(mark for mark in marks if mark <= min(found))
    high = min(mark for mark in marks if mark >= max(found) and mark > low)
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) > 7:
        ticks = [tick for tick in (10.0**decade for decade in decades) if low <= tick <= high]
        ticks = ticks[:: math.ceil(len(ticks) / 7)]
    return Axis(low, high, tuple(ticks), tuple(_power(tick) for tick in ticks), log=True)


def wide_apart(values: Iterable[float]) -> bool:
    """Return whether a logarithmic axis suits the values: all are above 0, the largest is over 50 times the least."""
    found = list(values)
    return bool(found) and min(found) > _NOTHING and max(found) > 50 * min(found)


def short(value: float, *, percent: bool = False, among: float | None = None) -> str:
    """Return a number for a label: three significant digits, two decimals for a share; as many as ``among`` gets."""
    if percent and abs(value) >= 100:
        return f"{short(100 * value)}%"
    if percent:
        return _signed(f"{100 * value:.0f}%" if abs(value) >= 0.0995 or not value else f"{100 * value:.1f}%")
    size = abs(value if among is None else among)
    if size and (size < 1e-4 or size >= 1e7):
        return _power(float(f"{value:.2g}"))
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return _signed(f"{value:,.{decimals}f}" if size >= 0.0095 or not size else f"{value:.2g}")


def counted(value: float) -> str:
    """Return a count: without decimals unless it has some."""
    return _signed(f"{value:,.0f}" if value == round(value) else f"{value:,.2f}")


def _span(values: list[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-12):
        return low, high
    # All values are equal: leave room on both sides, so that the mark is not on the edge.
    return (low - 0.1 * size, high + 0.1 * size) if size > 1e-11 else (0.0, 1.0)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def _written(tick: float, step: float, percent: bool, ticks: tuple[float, ...]) -> str:
    tick, step, unit = (100 * tick, 100 * step, "%") if percent else (tick, step, "")
    if step < 1e-4 or step >= 1e6:
        # As many digits as needed to tell ticks apart.
        digits = 3 + math.ceil(math.log10(max(abs(ticks[0]), abs(ticks[-1])) * (100 if percent else 1) / step))
        return _signed(f"{tick:.{min(15, digits)}g}{unit}") if tick else f"0{unit}"
    decimals = next(n for n in range(8) if n == 7 or abs(step * 10**n - round(step * 10**n)) < 1e-6 * step * 10**n)
    return _signed(f"{tick:,.{decimals}f}{unit}")


def _power(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e6:
        return _signed(f"{value:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e"))
    return _signed(f"{value:,.10g}")


def _signed(text: str) -> str:
    if text.startswith("-") and not text.strip("-0.,%"):
        return text[1:]
    return text.replace("-", "−")


_MARGIN = 12.0
_LONGEST = 130.0


@dataclass(frozen=True)
class Box:
    """The area of a plot's marks."""

    left: float
    top: float
    right: float
    bottom: float


def no_data(chart: Chart, kind: str) -> str:
    """Return a chart with a note that data are missing."""
    text = label(chart.width / 2, 38, "No data: nothing was measured.", chart.width, anchor="middle", kind="label mute")
    return document(chart, 64, text, desc="There is no data to draw.", kind=kind)


def right_of(chart: Chart) -> float:
    """Return the right edge of a plot."""
    return chart.width - _MARGIN


def left_of(axis: Axis) -> float:
    """Return the left edge of a plot, beside the labels of its vertical axis."""
    return max(text_width(text, SMALL) for text in axis.labels) + 12


def upright(axis: Axis, box: Box) -> str:
    """Return grid lines and labels of a vertical axis."""
    place = axis.scale(box.bottom, box.top)
    drawn = []
    for tick, text in zip(axis.ticks, axis.labels, strict=True):
        y = place(tick)
        drawn.append(tag("line", x1=box.left, x2=box.right, y1=y, y2=y, class_="grid"))
        drawn.append(label(box.left - 6, y + SMALL * 0.35, text, anchor="end", size=SMALL, kind="axis-label"))
    return "".join(drawn)


def level(axis: Axis, box: Box, width: float, *, grid: bool = True) -> str:
    """Return grid lines and labels of a horizontal axis. Labels that would touch are left out.

    ``width`` is the width of the chart. Labels do not reach beyond it.
    """
    place = axis.scale(box.left, box.right)
    drawn, taken = [], -1.0
    for tick, text in zip(axis.ticks, axis.labels, strict=True):
        x, half = place(tick), text_width(text, SMALL) / 2
        drawn.append(tag("line", x1=x, x2=x, y1=box.top if grid else box.bottom, y2=box.bottom + 4, class_="grid"))
        middle = min(max(x, half), width - half)
        if middle - half > taken:
            y = box.bottom + 18
            drawn.append(label(middle, y, text, anchor="middle", size=SMALL, kind="axis-label"))
            taken = middle + half + 6
    return "".join(drawn)


def base_line(box: Box) -> str:
    """Return the line below the marks."""
    return tag("line", x1=box.left, x2=box.right, y1=box.bottom, y2=box.bottom, class_="axis")


def names(x_label: str, y_label: str, box: Box, below: float, width: float) -> str:
    """Return the names of the axes: the horizontal one's below its middle, the vertical one's above its top."""
    drawn = []
    if x_label:
        half = min(text_width(x_label), width - 8) / 2
        middle = min(max((box.left + box.right) / 2, half + 4), width - half - 4)
        drawn.append(label(middle, below, x_label, 2 * half, anchor="middle", kind="axis-name"))
    if y_label:
        drawn.append(label(4, box.top - 14, y_label, width - 8, kind="axis-name"))
    return "".join(drawn)


def categories(texts: Sequence[str], middles: Sequence[float], band: float, top: float) -> tuple[str, float]:
    """Return the labels below categories, and where they end. Labels are turned where two lines are too few."""
    drawn, lines = level_names(texts, middles, band, top + LINE)
    if lines:
        return drawn, top + LINE * lines + 6
    widths = [text_width(text) for text in texts]
    rooms = [min(_LONGEST, width, reach(x - 4)) for width, x in zip(widths, middles, strict=True)]
    drawn = "".join(turned(x + 4, top + 14, text, room) for x, text, room in zip(middles, texts, rooms, strict=True))
    return drawn, top + 14 + drop(max(rooms))


def level_names(texts: Sequence[str], middles: Sequence[float], band: float, top: float) -> tuple[str, int]:
    """Return names in one or two lines within their bands, and the number of lines; 0 where a name needs more."""
    split = [broken(text, band - 4) for text in texts]
    lines = [(x, line) for x, line in zip(middles, split, strict=True) if line]
    if len(lines) < len(texts):
        return "", 0
    drawn = (
        label(x, top + LINE * place, part, anchor="middle") for x, line in lines for place, part in enumerate(line)
    )
    return "".join(drawn), max(len(line) for _, line in lines)


_LARGEST = 1e15


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its interval. An unknown end is None."""

    value: float
    low: float | None = None
    high: float | None = None

    def numbers(self) -> Iterator[float]:
        """Yield the value and the known ends."""
        yield from (number for number in (self.value, self.low, self.high) if number is not None)


@dataclass(frozen=True)
class Series:
    """A name and a value for each category; None is a missing value.

    ``colour`` is the number of its colour and shape, the same in every chart; None takes its position.
    """

    name: str
    values: tuple[Estimate | None, ...]
    colour: int | None = None


def check_series(chart: str, categories: tuple[str, ...], series: Iterable[Series]) -> list[float]:
    """Return all numbers of the series.

    Raises:
        ValueError: a series and the categories differ in number, or a number cannot be drawn.
    """
    found: list[float] = []
    for one in series:
        if len(one.values) != len(categories):
            raise ValueError(
                f"{chart}: series {one.name!r} has {len(one.values)} values for {len(categories)} categories. "
                "Give None for what was not measured."
            )
        found += check_estimates(chart, one.name, (value for value in one.values if value is not None))
    return found


def check_estimates(chart: str, name: str, values: Iterable[Estimate]) -> list[float]:
    """Return the numbers of the estimates. Raise ``ValueError`` for an inverted interval or an impossible number."""
    found: list[float] = []
    for value in values:
        if value.low is not None and value.high is not None and value.low > value.high:
            raise ValueError(
                f"{chart}: series {name!r} has an interval from {value.low} to {value.high}; swap its ends."
            )
        found += value.numbers()
    return check_numbers(chart, name, found)


def check_numbers(chart: str, name: str, values: Iterable[float]) -> list[float]:
    """Return the numbers unchanged. Raise ``ValueError`` for NaN, infinity, and numbers beyond 1e15."""
    found = list(values)
    for value in found:
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise ValueError(
                f"{chart}: series {name!r} has the value {value}, which cannot be drawn. "
                "Give finite numbers, and None or nothing for what was not measured."
            )
    return found


def check_shares(chart: str, name: str, values: Iterable[float]) -> list[float]:
    """Return the counts unchanged. Raise ``ValueError`` where one is negative or no number."""
    found = check_numbers(chart, name, values)
    if any(value < 0 for value in found):
        raise ValueError(f"{chart}: series {name!r} has the value {min(found)}; a share of a whole is not negative.")
    return found


# Marks of series. They differ by shape and dashes as well as by colour.

COLOURS = 8

_DASHES = (None, "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "6 2 2 2 2 2", "1 2")


def _regular(corners: int, turn: float = -90.0) -> list[tuple[float, float]]:
    angles = [math.radians(turn + 360 * corner / corners) for corner in range(corners)]
    return [(1.15 * math.cos(angle), 1.15 * math.sin(angle)) for angle in angles]


_PLUS = [(-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)]
_PLUS += [(-x, -y) for x, y in _PLUS]
_CROSS = [((x - y) * math.sqrt(0.5), (x + y) * math.sqrt(0.5)) for x, y in _PLUS]
_SQUARE = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]
_DIAMOND = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
# The first mark is a circle, which has no corners.
_SHAPES: tuple[list[tuple[float, float]], ...] = (
    [],
    _SQUARE,
    _regular(3),
    _DIAMOND,
    _regular(3, 90),
    _CROSS,
    _regular(5),
    _PLUS,
)


def colour_at(colour: int | None, place: int) -> int:
    """Return the number of a series' colour and shape: its own, or its position in the chart."""
    return place if colour is None else colour


def dash(index: int) -> str | None:
    """Return the dash pattern of a series' line. Series with the same colour differ in it."""
    return _DASHES[(index + index // COLOURS) % len(_DASHES)]


def marker(index: int, x: float, y: float, size: float = 4.5, title: str = "") -> str:
    """Return a series' mark at a position. Every second group of eight has hollow marks."""
    colour = index % COLOURS
    hollow = index // COLOURS % 2 == 1
    kind = f"plate stroke-{colour}" if hollow else f"fill-{colour} edge"
    inside = [tag("title", escaped(title))] if title else []
    shape = _SHAPES[colour]
    if not shape:
        return tag("circle", *inside, cx=x, cy=y, r=size, class_=kind)
    corners = points([(x + size * dx, y + size * dy) for dx, dy in shape])
    return tag("polygon", *inside, points=corners, class_=kind)


def line(index: int, places: list[tuple[float, float]]) -> str:
    """Return a series' line through positions."""
    return tag(
        "polyline",
        points=points(places),
        class_=f"line stroke-{index % COLOURS}",
        fill="none",
        stroke_width=2,
        stroke_dasharray=dash(index),
    )


def legend_sample(index: int, x: float, y: float) -> str:
    """Return a legend's sample of a series: a piece of its line with its mark, 30 units wide."""
    return line(index, [(x, y), (x + 30, y)]) + marker(index, x + 15, y)


def whiskers(ends: tuple[float, float], across: float, kind: str, *, upright: bool = True, cap: float = 3.0) -> str:
    """Return an error bar between two positions, with caps on both sides, at the position ``across``."""
    low, high = ends
    strokes = [(across, low, across, high)] + [(across - cap, end, across + cap, end) for end in ends]
    if not upright:
        strokes = [(y1, x1, y2, x2) for x1, y1, x2, y2 in strokes]
    drawn = (tag("line", x1=x1, y1=y1, x2=x2, y2=y2) for x1, y1, x2, y2 in strokes)
    return tag("g", *drawn, class_=f"whiskers {kind}", stroke_width=1.2)


def estimate_in_words(value: Estimate, *, percent: bool = False) -> str:
    """Return a value with its interval as text for tooltips."""
    if value.low is None and value.high is None:
        return short(value.value, percent=percent)
    low, high = ("?" if end is None else short(end, percent=percent) for end in (value.low, value.high))
    return f"{short(value.value, percent=percent)} [{low}, {high}]"


# Fills of series: a colour with a pattern, so that they differ in grey, too.

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


_GAP, _BESIDE = 18.0, 6.0
# Draws the sample of a series at x and at the height of the line's middle.
Sample = Callable[[int, float, float], str]


def legend(
    names: Sequence[str],
    sample: Sample,
    sample_width: float,
    width: float,
    colours: Sequence[int | None] = (),
) -> tuple[str, float]:
    """Return the legend and its lower end; nothing without names.

    ``width`` is the width of the chart. ``colours`` are the colours of the series, by default their positions.
    """
    left, right, top = 4.0, width - 4, 4.0
    room = min(200.0, right - left - sample_width - _BESIDE)
    x, y, drawn = left, top + LINE / 2, []
    for index, name in enumerate(names):
        colour = colour_at(colours[index] if colours else None, index)
        wide = sample_width + _BESIDE + text_width(shortened(name, room))
        if x > left and x + wide > right:
            x, y = left, y + LINE + 2
        drawn += [sample(colour, x, y), label(x + sample_width + _BESIDE, y + SIZE * 0.35, name, room)]
        x += wide + _GAP
    return (tag("g", *drawn, class_="legend"), y + LINE / 2 + 6) if names else ("", top)


_NAMES_SHARE = 0.3
"""Share of a chart's width that names may take beside the marks."""
_NAMES_GAP = 12.0


@dataclass(frozen=True)
class Rows:
    """The places of rows below ``top``. ``left`` is the left edge of their marks, ``tall`` their height."""

    top: float
    left: float
    tall: float
    is_above: bool

    @property
    def step(self) -> float:
        """The height of a row with its name."""
        return self.tall + (LINE if self.is_above else 0.0)

    def middle(self, place: int) -> float:
        """Return the height of the middle of a row's marks."""
        return self.top + self.step * (place + 1) - self.tall / 2

    def end(self, count: int) -> float:
        """Return the lower end of the last of so many rows."""
        return self.top + self.step * count

    def name(self, text: str, place: int, right: float) -> str:
        """Return the name of a row; above the marks it may reach to ``right``."""
        middle = self.middle(place)
        if self.is_above:
            return label(self.left, middle - self.tall / 2 - 2, text, right - self.left)
        return label(self.left - 8, middle + 4.5, text, self.left - _NAMES_GAP, anchor="end")


def rows_below(top: float, names: Iterable[str], width: float, tall: float) -> Rows:
    """Return the places of rows with these names in a chart of this width."""
    widest = max(map(text_width, names), default=0.0)
    is_above = widest > _NAMES_SHARE * width
    return Rows(top, 4.0 if is_above else widest + _NAMES_GAP, tall, is_above)
