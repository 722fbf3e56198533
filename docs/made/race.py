"""A race of configurations, drawn: its rule from the code, and the race of the retail study as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docs.made.recorded import RECORDED
from docs.made.svg import GAP, box, lines, svg, text
from rag_harness.diagnosis.tuning.race import HALVED_AFTER, TOGETHER

_STYLE = (
    ".asked{fill:#0a5a9c}.aside{fill:#eaeef2}.block{stroke:#fff;stroke-width:1.5}.axis{stroke:#d0d7de}"
    ".span{stroke:#57606a;stroke-width:2}.dot{fill:#57606a}.won{stroke:#0a5a9c;fill:#0a5a9c}.out{stroke:#afb8c1}"
    ".gone{fill:#afb8c1}.small{font-size:13px}"
)
_LEFT, _ACROSS, _TOP, _HIGH, _BLOCKS = 130, 500, 70, 200, 16
_STARTS, _ENDS = (0.0, *HALVED_AFTER), (*HALVED_AFTER, 1.0)
_NAMES = ("all configurations", "the better half", "a quarter", "an eighth")
_ROW, _FROM, _TO, _AXIS, _SAID = 20, 0.40, 0.80, 390, 720


def rule() -> str:
    """Return how a race with answers goes: blocks of questions, the better half after some, the held-out questions."""
    parts = [
        text(GAP, 30, "Race questions, in blocks", "head"),
        text(GAP, 48, f"{TOGETHER} groups of questions, asked of all that are left; then a look", "note"),
        box("aside", _LEFT, _TOP, _ACROSS, _HIGH),
        *_stairs(),
        *_held_out(),
    ]
    return svg("A race: all configurations are asked some questions, the better ones more", 340, parts, _STYLE)


def _stairs() -> Iterator[str]:
    for place, (start, end, name) in enumerate(zip(_STARTS, _ENDS, _NAMES, strict=True)):
        left, high = _LEFT + _ACROSS * start, _HIGH / 2**place
        top = _TOP + _HIGH - high
        yield f"<rect class='asked' x='{left:g}' y='{top:g}' width='{_ACROSS * (end - start):g}' height='{high:g}'/>"
        yield text(_LEFT - GAP, top + 14, name, "small", "end")
        yield text(_LEFT + _ACROSS * end, _TOP + _HIGH + 20, _fraction(end), "note", "middle")
    for block in range(1, _BLOCKS):
        part = block / _BLOCKS
        at, high = _LEFT + _ACROSS * part, max(_HIGH / 2**n for n, end in enumerate(_ENDS) if part < end)
        yield f"<path class='block' d='M{at:g} {_TOP + _HIGH - high:g}v{high:g}'/>"
    yield text(_LEFT, _TOP + _HIGH + 20, "0", "note", "middle")
    said = ("Set aside after 1/8, 1/4 and 1/2 of the groups:", "behind, and nothing is claimed of it.")
    yield from lines(_LEFT + _ACROSS / 4 + 2 * GAP, _TOP + 34, [*said, "Shown to be worse: it leaves at any look."])
    share = sum((end - start) / 2**place for place, (start, end) in enumerate(zip(_STARTS, _ENDS, strict=True)))
    asked = f"Blue is what is asked: {100 * share:.0f} % of all calls, if none leaves sooner."
    yield text(_LEFT, _TOP + _HIGH + 48, asked, "small")


def _held_out() -> Iterator[str]:
    left = _LEFT + _ACROSS + 70
    yield f"<path class='arrow' d='M{_LEFT + _ACROSS + 8} {_TOP + _HIGH - 12}H{left - 8}'/>"
    yield text(left, 30, "Held-out questions", "head")
    yield text(left, 48, "the race never asked them", "note")
    for place, name in enumerate(("the chosen one", "today's")):
        top = _TOP + _HIGH - 60 + place * 36
        yield box("asked" if not place else "dot", left, top, 26, 26)
        yield text(left + 36, top + 18, name)
    yield from lines(left, _TOP + 40, ("Both are asked, and", "compared: this is the", "figure to report."))


def _fraction(share: float) -> str:
    return "all" if share == 1 else f"1/{1 / share:.0f}"


def shipped() -> str:
    """Return the race of the retail study: each configuration with its interval, and the two on held-out questions."""
    race = RECORDED["race"]
    racing, held = race["questions"]
    rows, top = race["entries"], 76
    end = top + len(rows) * _ROW
    head = f"{len(rows)} configurations, {race['objective']} on {racing} questions"
    parts = [text(GAP, 24, head, "head"), text(GAP, 44, "dot: mean; line: 95 % interval", "note")]
    parts += _grid(top - 14, end + 84)
    for place, each in enumerate(rows):
        parts += _entry(top + place * _ROW, each)
    parts += [text(GAP, end + 30, f"The best one and today's, on the {held} held-out questions", "head")]
    chosen = next(each["title"] for each in rows if each["is_chosen"])
    for place, (name, title) in enumerate((("chosen", chosen), ("today", "today"))):
        each = {"title": title, "figure": race["held_out"][name], "state": "", "is_chosen": name == "chosen"}
        parts += _entry(end + 56 + place * _ROW, each)
    value, low, high = race["held_out"]["difference"]
    said = "not told apart" if low <= 0 <= high else "told apart"
    parts.append(text(GAP, end + 112, f"Difference {value:+.3f} [{low:+.2f}, {high:+.2f}]: {said}", "head"))
    left = sum(each["state"] == "left" for each in rows)
    title = f"The race of the retail study: {left} of {len(rows)} configurations are shown not to be the best"
    return svg(title, end + 130, parts, _STYLE)


def _entry(top: int, each: Mapping[str, Any]) -> Iterator[str]:
    value, low, high = each["figure"]
    is_out, won = each["state"] == "left", " won" if each["is_chosen"] else ""
    said = " left: another is better" if is_out else f" {each['state']}".rstrip()
    yield text(GAP, top + 4, each["title"], "note" if is_out else "small")
    yield f"<path class='{'out' if is_out else 'span'}{won}' d='M{_at(low):g} {top}H{_at(high):g}'/>"
    yield f"<circle class='{'gone' if is_out else 'dot'}{won}' cx='{_at(value):g}' cy='{top}' r='4'/>"
    yield text(_SAID, top + 4, f"{value:.3f}{said}", "note" if is_out else "small")


def _grid(top: int, end: int) -> Iterator[str]:
    for tenth in range(4, 9):
        yield f"<path class='axis' d='M{_at(tenth / 10):g} {top}V{end}'/>"
        yield text(_at(tenth / 10), top - 4, f"0.{tenth}", "note", "middle")


def _at(value: float) -> float:
    return round(_AXIS + (_SAID - 30 - _AXIS) * (value - _FROM) / (_TO - _FROM), 1)
