"""Loader for HTML: the visible text as Markdown, without hidden elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import Parsed
from rag_harness.data.loaders.markdown_writer import MarkdownWriter, without_marks_of_loaders
from rag_harness.data.loaders.reading import parsed_file
from rag_harness.data.loaders.text import check_kind, checked_text, decoded

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
class TextStyle:
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


def look_of(tag: str, attributes: Attributes, around: TextStyle, sheet: Sheet) -> TextStyle:
    """Return the look of text in an element, given the look ``around`` the element."""
    look = around
    if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
        look = replace(look, gone=True)
    style = sheet.of(tag, attributes) | declarations(attributes.get("style", ""))
    style = _attributes_of_old(attributes) | style
    return _styled(look, style) if style else look


def _styled(look: TextStyle, style: Declarations) -> TextStyle:
    return TextStyle(
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


Begin = Callable[[MarkdownWriter, Attributes], None]
End = Callable[[MarkdownWriter], None]

HEADINGS = {f"h{level}": level for level in range(1, 7)}


def tags(names: str) -> frozenset[str]:
    """Return a set of the names in a text; blanks separate them."""
    return frozenset(names.split())


BLOCKS = tags(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p pre section summary table tbody td "
    "tfoot th thead tr ul"
)
_MOST_ALT = 1_000


def _heading(tag: str) -> Begin:
    return lambda out, _: out.begin_heading(HEADINGS[tag])


def _block(out: MarkdownWriter, _: Attributes) -> None:
    out.end_block()


BEGINS: dict[str, Begin] = {
    **dict.fromkeys(BLOCKS, _block),
    **{tag: _heading(tag) for tag in HEADINGS},
    "ul": lambda out, _: out.begin_list(False, ""),
    "ol": lambda out, about: out.begin_list(True, about.get("start", "")),
    "li": lambda out, _: out.begin_item(),
    "blockquote": lambda out, _: out.begin_quote(),
    "pre": lambda out, _: out.begin_code(),
    "table": lambda out, _: out.begin_table(),
    "tr": lambda out, _: out.end_row(),
    "td": lambda out, about: out.begin_cell(about.get("colspan", ""), about.get("rowspan", "")),
    "th": lambda out, about: out.begin_cell(about.get("colspan", ""), about.get("rowspan", "")),
    "a": lambda out, about: out.begin_mark("link", about.get("href", "")),
    "code": lambda out, _: out.begin_mark("code"),
    "br": lambda out, _: out.line_break(),
    "hr": lambda out, _: out.rule(),
    "img": lambda out, about: out.write(about.get("alt", "")[:_MOST_ALT]),
}
"""What is written at the beginning of an element. All other elements are only their text."""

ENDS: dict[str, End] = {
    **dict.fromkeys(BLOCKS, MarkdownWriter.end_block),
    **dict.fromkeys(HEADINGS, MarkdownWriter.end_heading),
    **dict.fromkeys(("ul", "ol"), MarkdownWriter.end_list),
    "li": lambda out: out.end_inside(quote=False),
    "blockquote": lambda out: out.end_inside(quote=True),
    "pre": MarkdownWriter.end_code,
    "table": MarkdownWriter.end_table,
    "tr": MarkdownWriter.end_row,
    "td": MarkdownWriter.end_cell,
    "th": MarkdownWriter.end_cell,
    "a": lambda out: out.end_mark("link"),
    "code": lambda out: out.end_mark("code"),
}


DEEPEST_ELEMENT = 500
"""Most open elements. Of deeper elements only the text counts."""
_LONGEST_TITLE = 300

_VOID = tags("area base br col embed hr img input link meta param source track wbr")
_NO_TEXT = tags(
    "script style template noscript svg math iframe object audio video canvas select datalist textarea button nav"
)
_NO_TEXT_ROLES = frozenset({"navigation", "menu", "menubar", "search"})
# The elements that a start tag closes, and the elements at which the search for them stops.
_ENDS = {
    "li": (("li",), ("ul", "ol")),
    "tr": (("tr",), ("table",)),
    "td": (("td", "th"), ("table",)),
    "th": (("td", "th"), ("table",)),
    "dt": (("dt", "dd"), ("dl",)),
    "dd": (("dt", "dd"), ("dl",)),
}
_P_STANDS = ("table", "td", "th", "caption", "object", "button")
_TABLE = tags("table tbody thead tfoot tr td th caption")
_FORMATTING = tags("a b big code em font i nobr s small strike strong tt u")


@dataclass(slots=True)
class _OpenElement:
    tag: str
    look: TextStyle
    silent: bool
    began: bool = False


class PageReader(HTMLParser):
    """Reads one page. ``hidden`` counts the characters of hidden text that were left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: str = ""
        self.hidden: int = 0
        self._open: list[_OpenElement] = []
        self._count: Counter[str] = Counter()
        self._too_deep: Counter[str] = Counter()
        self._sheet = Sheet()
        self._media = ""
        self._out = MarkdownWriter()

    def text(self) -> str:
        """Return the page as Markdown."""
        return self._out.text()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}  # of equal attributes the first counts
        self._end_implied(tag)
        self._media = attributes.get("media", "")
        around = self._open[-1] if self._open else _OpenElement("", TextStyle(), False)
        look = look_of(tag, attributes, around.look, self._sheet)
        if tag in ("main", "article") and self._count["nav"]:
            around = replace(around, silent=False)  # the nav was never closed
        silent = around.silent or tag in _NO_TEXT or attributes.get("role", "").lower() in _NO_TEXT_ROLES
        opened = _OpenElement(tag, look, silent, began=not (silent or look.hidden))
        if tag not in _VOID and len(self._open) >= DEEPEST_ELEMENT:
            self._too_deep[tag] += 1
            self._out.end_block()
            return
        if opened.began and tag in BEGINS:
            BEGINS[tag](self._out, attributes)
        if tag not in _VOID:
            self._open.append(opened)
            self._count[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if self._too_deep[tag]:
            self._too_deep[tag] -= 1
            self._out.end_block()
        elif self._count[tag]:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else _OpenElement("", TextStyle(), False)
        if inside.tag == "title" and not self._count["svg"]:
            self.title = " ".join(f"{self.title}{data[:_LONGEST_TITLE]}".split())[:_LONGEST_TITLE]
        elif inside.tag == "style":
            self._sheet.add(data, self._media)
        elif inside.silent:
            return
        elif inside.look.hidden:
            self.hidden += sum(map(len, data.split()))
        else:
            self._out.write(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:  # noqa: ARG002
        """Read ``<![…`` as a comment, as browsers do. The standard library refuses unknown ones."""
        return self.parse_bogus_comment(i)

    def _end(self, tag: str) -> None:
        """Close ``tag`` and all elements inside, as browsers do. Else an end tag could make hidden text visible."""
        for depth in range(len(self._open) - 1, -1, -1):
            inside = self._open[depth].tag
            if inside == tag:
                while len(self._open) > depth:
                    self._close_last()
                return
            if inside in (_P_STANDS if tag in BLOCKS else BLOCKS) and tag not in _TABLE:
                self._drop_formatting(tag, depth)
                return

    def _drop_formatting(self, tag: str, below: int) -> None:
        # Bold text ends inside a block that began in it. The text after it is not bold, but still in the block.
        if tag in _FORMATTING:
            depth = next((n for n in range(below - 1, -1, -1) if self._open[n].tag == tag), None)
            if depth is not None:
                del self._open[depth]
                self._count[tag] -= 1

    def _end_implied(self, tag: str) -> None:
        if tag in BLOCKS and self._count["p"]:
            self._close_nearest(("p",), _P_STANDS)
        ended, stop = _ENDS.get(tag, ((), ()))
        if any(self._count[name] for name in ended):
            self._close_nearest(ended, stop)

    def _close_nearest(self, tags: tuple[str, ...], stop: tuple[str, ...]) -> None:
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth].tag in stop:
                return
            if self._open[depth].tag in tags:
                while len(self._open) > depth:
                    self._close_last()
                return

    def _close_last(self) -> str:
        closed = self._open.pop()
        self._count[closed.tag] -= 1
        if closed.began and closed.tag in ENDS:
            ENDS[closed.tag](self._out)
        return closed.tag


# Loader for HTML: the visible text as Markdown. It uses the standard library's parser, without recursion.

_HEAD = 4096
"""Bytes in which a declaration of the charset is searched for; browsers read 1,024."""
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


def load(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnreadableError, OSError: the file cannot be read.
    """
    return parsed_file("html", file).document(file, doc_id)


def parse(data: bytes, charset: str = "") -> Parsed:
    """Return the visible text of ``data`` as Markdown, and the number of hidden characters that were left out.

    ``charset`` replaces the guess for a page that names none and is not UTF-8.
    """
    check_kind(data, "HTML")
    declared = _DECLARED.search(data[:_HEAD])
    found = decoded(data, declared[1].decode("ascii", "replace") if declared else "", charset)
    page = PageReader()
    try:
        page.feed(found.text.replace("\0", ""))
        page.close()
    except AssertionError as error:  # the standard library's parser refuses some declarations in this way
        raise UnreadableError(f"cannot be parsed as HTML: {error}. Save it again"[:300]) from None
    text = page.text()
    return Parsed(
        checked_text(text, without_marks_of_loaders(text)), page.title, hidden=page.hidden, guessed=found.guessed
    )
