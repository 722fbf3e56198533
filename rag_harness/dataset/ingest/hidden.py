"""Detection of hidden text on an HTML page, by attributes and the page's own style sheet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

Attributes = Mapping[str, str]
Declarations = Mapping[str, str]

_LONGEST = 20_000
"""Characters of a style that are read. Of a style sheet, five times as many are read."""
_BRACE = re.compile(r"[{}]")
_SIMPLE = re.compile(r"[a-z0-9]*[.#][\w-]+|[\w-]+")
_NUMBER = re.compile(r"-?\d*\.?\d+")
_RGB = re.compile(r"rgba?\((\d+)[, ]+(\d+)[, ]+(\d+)(?:[,/ ]+([\d.]+%?))?\)")
_NAMED = {"white": "#ffffff", "black": "#000000", "transparent": ""}
_SCREENS = {"", "all", "screen"}
_FAR, _FAR_EM = 500, 30
"""Distance, in pixels or any unit, that moves text off the page; and in letters."""
_LITTLE = {
    "": 2,
    "px": 2,
    "pt": 2,
    "em": 0.1,
    "rem": 0.1,
    "%": 1,
    "mm": 0.5,
    "cm": 0.05,
    "in": 0.02,
    "vw": 0.1,
    "vh": 0.1,
}
"""About two pixels, in each unit. In any other unit, only 0 is too small to see."""
_PICTURE = "picture"
_PLACES = ("left", "right", "top", "bottom", "margin-left", "margin-top")


@dataclass(frozen=True, slots=True)
class Look:
    """The look of text inside an element. ``gone`` holds for all inner elements; they may override the other fields.

    ``ink`` and ``paper`` are colours as ``#rrggbb``. Empty ink is invisible.
    """

    gone: bool = False
    invisible: bool = False
    tiny: bool = False
    ink: str = "#000000"
    paper: str = "#ffffff"

    @property
    def hidden(self) -> bool:
        """Whether text with this look is invisible."""
        return self.gone or self.invisible or self.tiny or self.ink in ("", self.paper)


class Sheet:
    """The rules of a page's own style sheets for a tag, a class or an id. Other selectors are ignored."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[str, str]] = {}

    def add(self, text: str, media: str = "") -> None:
        """Read the text of a ``<style>``, unless it is for print or only for some screens."""
        if not _SCREENS & {each.strip() for each in media.lower().split(",")}:
            return
        for selectors, body in _rules(_without_comments(text[: 5 * _LONGEST])):
            declared = declarations(body)
            for selector in selectors.lower().split(","):
                if _SIMPLE.fullmatch(selector.strip()):
                    self._rules.setdefault(selector.strip(), {}).update(declared)

    def of(self, tag: str, attributes: Attributes) -> dict[str, str]:
        """Return the declarations of all rules for an element."""
        if not self._rules:
            return {}
        found: dict[str, str] = {}
        for selector in _selectors(tag, attributes):
            found |= self._rules.get(selector, {})
        return found


def _without_comments(css: str) -> str:
    """Return a style sheet without comments. An unclosed comment stays."""
    kept, at = [], 0
    while (begin := css.find("/*", at)) >= 0 and (end := css.find("*/", begin + 2)) >= 0:
        kept.append(css[at:begin])
        at = end + 2
    return "".join([*kept, css[at:]])


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield selectors and bodies of the unconditional rules. Text hidden by ``@media print`` is visible on a screen."""
    depth, end, head = 0, 0, sheet[:0]
    for brace in _BRACE.finditer(sheet):
        if brace[0] == "{":
            head = sheet[end : brace.start()].rpartition(";")[2].strip() if depth == 0 else "@"
            depth, end = depth + 1, brace.end()
        else:
            if depth == 1 and not head.startswith("@"):
                yield head, sheet[end : brace.start()]
            depth, end = max(0, depth - 1), brace.end()


def declarations(style: str) -> dict[str, str]:
    """Return the properties of a ``style`` with their values, in lower case."""
    pairs = (part.partition(":") for part in style[:_LONGEST].lower().split(";"))
    return {name.strip(): value.replace("!important", "").strip() for name, colon, value in pairs if colon}


def look_of(tag: str, attributes: Attributes, around: Look, sheet: Sheet) -> Look:
    """Return the look of text in an element, given the look ``around`` the element."""
    look = around
    if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
        look = replace(look, gone=True)
    style = sheet.of(tag, attributes) | declarations(attributes.get("style", ""))
    style = _attributes_of_old(attributes) | style
    return _styled(look, style) if style else look


def _styled(look: Look, style: Declarations) -> Look:
    return Look(
        look.gone or _is_gone(style),
        style["visibility"] in ("hidden", "collapse") if "visibility" in style else look.invisible,
        _is_little(style["font-size"]) if "font-size" in style else look.tiny,
        _colour(style.get("color", ""), look.ink),
        _paper(style, look.paper),
    )


def _is_gone(style: Declarations) -> bool:
    def said(name: str) -> str:
        return style.get(name, "")

    return (
        said("display") == "none"
        or _is_faint(said("opacity"))
        or (said("overflow") in ("hidden", "clip") and any(_is_little(said(side)) for side in ("height", "width")))
        or _far(said("text-indent"))
        or (said("position") in ("absolute", "fixed") and any(_far(said(place)) for place in _PLACES))
        or said("clip").replace(" ", "").startswith(("rect(0", "rect(1px,1px"))
        or said("clip-path").replace(" ", "").startswith(("inset(50%", "inset(100%", "circle(0"))
        or "scale(0)" in said("transform")
    )


def _paper(style: Declarations, around: str) -> str:
    named = style.get("background-color") or style.get("background", "")
    image = style.get("background-image") or style.get("background", "")
    # The colours of a picture are unknown: neither the ink nor the colour around it.
    return _PICTURE if "url(" in image or "gradient(" in image else _colour(named, around) or around


def _is_faint(opacity: str) -> bool:
    number = _NUMBER.match(opacity)
    return number is not None and float(number[0]) < (5 if opacity.endswith("%") else 0.05)


def _is_little(length: str) -> bool:
    """Return whether a font or a box of this length is too small to see."""
    number = _NUMBER.match(length)
    if number is None:
        return False
    size = abs(float(number[0]))
    return not size or size < _LITTLE.get(length[number.end() :].strip(), 0)


def _far(value: str) -> bool:
    number = _NUMBER.match(value)
    return number is not None and float(number[0]) <= -(_FAR_EM if value.endswith("em") else _FAR)


def _colour(value: str, otherwise: str) -> str:
    word = value.split(maxsplit=1)[0] if value and not value.startswith("rgb") else value
    if word in _NAMED:
        return _NAMED[word]
    rgb = _RGB.match(value)
    if rgb:
        faint = rgb[4] is not None and float(rgb[4].rstrip("%") or 1) == 0
        return "" if faint else "#" + "".join(f"{min(255, int(part)):02x}" for part in rgb.groups()[:3])
    if re.fullmatch(r"#[0-9a-f]{3}", word):
        return "#" + "".join(2 * digit for digit in word[1:])
    if re.fullmatch(r"#[0-9a-f]{6}", word):
        return word
    # An unknown name, a gradient or a variable: some colour, which is neither ink nor paper.
    return otherwise if not word or word in ("inherit", "none", "initial") else word


def _attributes_of_old(attributes: Attributes) -> dict[str, str]:
    """Return ``<font color>`` and ``<body bgcolor>`` as declarations of a style."""
    named = {"color": attributes.get("color", ""), "background-color": attributes.get("bgcolor", "")}
    return {name: value.strip().lower() for name, value in named.items() if value}


def _selectors(tag: str, attributes: Attributes) -> Iterator[str]:
    yield tag
    for name in attributes.get("class", "").lower().split()[:50]:
        yield from (f".{name}", f"{tag}.{name}")
    if attributes.get("id"):
        yield from (f"#{attributes['id'].lower()}", f"{tag}#{attributes['id'].lower()}")
