"""A small bar for a line of text: a value, its interval, its threshold, and the scale that they are on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rag_harness.page.charts.axes import Axis, Scale, linear
from rag_harness.page.charts.estimates import Estimate, check_estimates, check_numbers
from rag_harness.page.charts.frame import Box, level
from rag_harness.page.charts.series_marks import estimate_in_words
from rag_harness.page.charts.svg import Chart, document, points, tag
from rag_harness.page.charts.texts import SMALL, label

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
