"""Loaders for Office files: docx, pptx and xlsx, and the same with macros, which never run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from io import BytesIO
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from rag_harness.core.errors import UnreadableError
from rag_harness.core.registry import missing_package
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import CELLS, PAGES, UNPACKED_BYTES, Parsed, joined_pages
from rag_harness.data.loaders.html_pages import PageReader
from rag_harness.data.loaders.markdown_writer import (
    MarkdownWriter,
    add_heading,
    add_paragraph,
    add_sheet,
    add_table,
    without_marks_of_loaders,
)
from rag_harness.data.loaders.reading import parsed_file
from rag_harness.data.loaders.text import ZIP, check_encrypted, check_kind, checked_text, office_kind

_MOST_MERGES = 50_000
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_MONEY = re.compile(r"""[€$£¥]|\b(?:EUR|USD|GBP|CHF|JPY)\b""")
_DECIMALS = re.compile(r"[0#]\.(0{1,15})")
_QUOTED = re.compile(r'"[^"]{0,99}"|\\.|\[[^\]]{0,99}\]')


@dataclass
class SheetMarks:
    """Counts of a sheet, and its merged cells: (column, last row) by the first row."""

    cells: int = 0
    without_value: int = 0
    merged: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _held: dict[int, tuple[str, int]] = field(default_factory=dict)

    def filled(self, number: int, cells: list[str]) -> list[str]:
        """Return row ``number`` with the text of cells that are merged with cells above. Rows come in order."""
        self._held = {at: (text, last) for at, (text, last) in self._held.items() if last >= number}
        most = max(self._held, default=-1) + 1
        row = [*cells, *[""] * (most - len(cells))]
        for at, (text, _) in self._held.items():
            row[at] = row[at] or text
        for at, last in self.merged.get(number, ()):
            if at < len(row) and row[at]:
                self._held[at] = (row[at], last)
        return row


def marks_of(pieces: Iterable[bytes], most: int) -> SheetMarks:
    """Return the marks of a sheet. A sheet of a million rows is refused before its values are read.

    Raises:
        UnreadableError: it has more than ``most`` cells with a value, or is damaged.
    """
    reading = _Reading(most)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    try:
        for piece in pieces:
            parser.Parse(piece)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise UnreadableError(f"a sheet is damaged: {error}. Save it again") from None
    return reading.marks


class _Reading:
    def __init__(self, most: int) -> None:
        self.marks = SheetMarks()
        self._most = most
        self._formula = self._value = self._inside = False
        self._merges = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "c":
            self._formula = self._value = False
        elif name == "f":
            self._formula = True
        elif name in ("v", "t"):
            self._inside = True
        elif name == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def text(self, said: str) -> None:
        self._value = self._value or (self._inside and bool(said))

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in ("v", "t"):
            self._inside = False
        elif name == "c":
            self.marks.cells += self._value
            self.marks.without_value += self._formula and not self._value
            if self.marks.cells > self._most:
                raise UnreadableError(f"has more than {CELLS:,} cells with a value. Split it, or save a part as CSV")

    def _merge(self, ref: str) -> None:
        found = _RANGE.fullmatch(ref)
        self._merges += 1
        if found and found[2] != found[4] and self._merges <= _MOST_MERGES:
            self.marks.merged.setdefault(int(found[2]), []).append((_column(found[1]), int(found[4])))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def shown_value(value: Any, number_format: str) -> str:
    """Return a value as text: dates as ISO writes them, percent as percent, other numbers with all their digits.

    Zeros at the end and the currency are often in the number format alone; they are added.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (date, time, timedelta)):
        return _shown_time(value)
    if isinstance(value, float | int):
        return _shown_number(value, number_format or "")
    return " ".join(str(value).split())


def _shown_time(value: date | time | timedelta) -> str:
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds") if value.time() != time() else value.date().isoformat()
    return value.isoformat()


def _shown_number(value: float, number_format: str) -> str:
    shown_as = number_format.partition(";")[0].replace("[$", "[")  # [$€-407] names a currency
    plain = _QUOTED.sub("", shown_as)
    if "%" in plain:
        return f"{value * 100:.12g}%"
    money = _MONEY.search(shown_as)
    return f"{_with_zeros(f'{value:.15g}', plain)} {money[0] if money else ''}".rstrip()


def _with_zeros(text: str, number_format: str) -> str:
    decimals = _DECIMALS.search(number_format)
    if not decimals or not text.lstrip("-").replace(".", "").isdigit():
        return text
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(len(decimals[1]), '0')}"


# An Office file: a ZIP archive of XML parts. It is checked before a reader sees it.

Element = ElementTree.Element
_MOST_PARTS = 20_000
_TYPES = "[Content_Types].xml"
_XML = (".xml", ".rels", ".vml")
_PIECE = 4096
_LONGEST_TITLE = 300


class OfficePackage:
    """The parts of a file of one kind. Sizes are those that the archive states, and no part gives more.

    Raises:
        UnreadableError: it is encrypted, of another kind, damaged, too large, or declares entities.
    """

    def __init__(self, data: bytes, suffix: str) -> None:
        check_encrypted(data, suffix)
        try:
            self._zip = ZipFile(BytesIO(data))
            self._check_size()
            self._check_kind(suffix)
            self._check_entities()
        except BadZipFile:
            begins_well = data.startswith(ZIP)
            if not begins_well:
                check_kind(data, f"a {suffix}")
            what = "but the rest of it is damaged" if begins_well else "and this is something else"
            raise UnreadableError(f"is not a {suffix}: such a file is a ZIP archive, {what}. Save it again") from None

    def __contains__(self, part: object) -> bool:
        return part in self._names

    def xml(self, part: str) -> Element:
        """Return the root of a part.

        Raises:
            UnreadableError: the part is missing or damaged.
        """
        try:
            return ElementTree.fromstring(self._zip.read(part))
        except (KeyError, ElementTree.ParseError, BadZipFile) as error:
            raise UnreadableError(f"its part {part} is missing or damaged: {error}"[:300]) from None

    def pieces(self, part: str) -> Iterator[bytes]:
        """Yield the bytes of a part, piece by piece."""
        with self._zip.open(part) as stream:
            while piece := stream.read(_PIECE):
                yield piece

    def main(self) -> str:
        """Return the name of the part that is the document."""
        return self.related("", "officeDocument")[0]

    def related(self, part: str, kind: str) -> list[str]:
        """Return the names of the parts that ``part`` uses as ``kind``. Addresses outside the file are left out."""
        return [name for name, found in self.targets(part).values() if found == kind]

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """Return name and kind of each part that ``part`` uses, by the id of the relation."""
        relations = join(dirname(part), "_rels", f"{part.rpartition('/')[2]}.rels")
        if relations not in self:
            return {}
        found = {}
        for each in self.xml(relations):
            target, kind = each.get("Target", ""), each.get("Type", "").rpartition("/")[2]
            name = normpath(join("/", dirname(part), target)).lstrip("/")
            if each.get("TargetMode") != "External" and name in self:
                found[each.get("Id", "")] = (name, kind)
        return found

    def title(self) -> str:
        """Return the title in the properties of the file; empty where there is none."""
        for part in self.related("", "core-properties"):
            with suppress(UnreadableError):
                texts = (each.text or "" for each in self.xml(part) if local(each) == "title")
                return " ".join(next(texts, "").split())[:_LONGEST_TITLE]
        return ""

    def _check_size(self) -> None:
        parts = self._zip.infolist()
        self._names = {each.filename for each in parts}
        size = sum(each.file_size for each in parts)
        if size > UNPACKED_BYTES:
            raise UnreadableError(f"unpacks to {size >> 20:,} MB, more than {UNPACKED_BYTES >> 20}. Split it")
        if len(parts) > _MOST_PARTS:
            raise UnreadableError(f"has {len(parts):,} parts, more than {_MOST_PARTS:,}. Split it")
        if any(each.flag_bits & 1 for each in parts):
            raise UnreadableError("is encrypted. Save it without its password")

    def _check_kind(self, suffix: str) -> None:
        found = office_kind(self._zip.read(_TYPES)) if _TYPES in self else ""
        if found != suffix:
            what = f"a {found}" if found else "a ZIP archive of something else"
            raise UnreadableError(f"is not a {suffix}, but {what}. Give it the suffix of its kind")
        if not self.related("", "officeDocument"):
            raise UnreadableError(f"is not a whole {suffix}: its document is missing. Save it again")

    def _check_entities(self) -> None:
        """Refuse a declaration of entities, which no program of Office writes: they could grow, or name files."""
        for part in sorted(self._names):
            if part.lower().endswith(_XML) and _declares(self.pieces(part)):
                raise UnreadableError(f"its part {part} has a DOCTYPE, which Office files never have. Save it again")


class _HeadEnd(Exception):  # noqa: N818 - it ends the reading of a head
    pass


def _declares(pieces: Iterator[bytes]) -> bool:
    """Return whether XML has a DOCTYPE, which comes before its first element."""
    found: list[str] = []
    parser = expat.ParserCreate()

    def doctype(*_: object) -> None:
        found.append("doctype")
        raise _HeadEnd

    def element(*_: object) -> None:
        raise _HeadEnd

    parser.StartDoctypeDeclHandler, parser.StartElementHandler = doctype, element
    with suppress(_HeadEnd, expat.ExpatError):  # what is damaged, the reader of the part says
        for piece in pieces:
            parser.Parse(piece)
    return bool(found)


def local(element: Element) -> str:
    """Return the name of an element without its namespace: those of ISO's strict files differ."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def own(element: Element, name: str) -> str | None:
    """Return an attribute by its name without a namespace."""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), None)


def children(element: Element, name: str) -> list[Element]:
    """Return the children of that name."""
    return [each for each in element if local(each) == name]


def below(element: Element, name: str) -> Iterator[Element]:
    """Yield all elements of that name inside."""
    return (each for each in element.iter() if local(each) == name)


# Hidden text of Word: readers do not see it, and it may contain instructions for a model.

_MARK = b"vanish"
_NO = ("0", "false", "off")


def without_hidden_words(data: bytes, package: OfficePackage) -> tuple[bytes, int]:
    """Return the file without runs that are marked as hidden, and the number of their characters.

    Text that a style hides, or that has the colour of the page, is not found.
    """
    main = package.main()
    if _MARK not in b"".join(package.pieces(main)):
        return data, 0
    root = package.xml(main)
    hidden = 0
    for around in list(root.iter()):
        for run in [each for each in children(around, "r") if _is_hidden(each)]:
            hidden += sum(len("".join((text.text or "").split())) for text in below(run, "t"))
            around.remove(run)
    return _with_part(data, main, ElementTree.tostring(root)), hidden


def _is_hidden(run: Element) -> bool:
    marks = [each for about in children(run, "rPr") for each in about if local(each) == "vanish"]
    return any(own(each, "val") not in _NO for each in marks)


def _with_part(data: bytes, part: str, content: bytes) -> bytes:
    made = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(made, "w", ZIP_DEFLATED) as new:
        for name in dict.fromkeys(old.namelist()):
            new.writestr(name, content if name == part else old.read(name))
    return made.getvalue()


# Loader for docx. mammoth makes HTML of it, and our reader of HTML makes Markdown of that.

_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
"""
_BACK_TO_TEXT = re.compile(r' <a href="#(?:foot|end)note-ref-[^"]{1,40}">↑</a>')
"""What mammoth adds to each note."""


def _no_picture(_: object) -> dict[str, str]:
    return {"src": ""}  # its alternative text is kept


def load_word(file: Path, doc_id: str) -> Document:
    """Read a document of Word.

    Raises:
        UnreadableError, OSError: the file cannot be read, or the package that reads it is not installed.
    """
    return parsed_file("docx", file).document(file, doc_id)


def parse_word(data: bytes) -> Parsed:
    """Return the text with its headings, lists, tables, links and notes.

    Deleted text, hidden text and comments are left out.
    """
    package = OfficePackage(data, "docx")
    seen, hidden = without_hidden_words(data, package)
    try:
        import mammoth
    except ImportError as error:
        raise UnreadableError(missing_package("loader 'docx'", error)) from None
    # A style map in the file could turn any text into any element.
    made = mammoth.convert_to_html(
        BytesIO(seen),
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(_no_picture),
        external_file_access=False,
    )
    page = PageReader()
    page.feed(_BACK_TO_TEXT.sub("", made.value.replace("\0", "")))
    page.close()
    text = page.text()
    if not text.strip():
        raise UnreadableError("holds no text: pictures alone? Recognise their text first")
    checked = checked_text(text, without_marks_of_loaders(text))
    lacks = ("equations: they are not read",) if any("oMath" in each.message for each in made.messages) else ()
    return Parsed(checked, package.title(), hidden=hidden, unread_parts=lacks)


# The figures of a chart, as its file keeps them beside the drawing.

_MOST_POINTS = 1_000


def chart_rows(chart: Element) -> tuple[str, list[list[str]]]:
    """Return the title of a chart, and a table with a row for each category and a column for each series."""
    series = list(below(chart, "ser"))[:50]
    names = [" ".join(_points(each, "tx").values()) for each in series]
    values = [_points(each, "val") or _points(each, "yVal") for each in series]
    labels: dict[int, str] = {}
    for each in series:
        labels = labels or _points(each, "cat") or _points(each, "xVal")
    places = sorted({at for points in (labels, *values) for at in points})[:_MOST_POINTS]
    rows = [[labels.get(at, ""), *(points.get(at, "") for points in values)] for at in places]
    return _title(chart), [["", *names], *rows] if rows else []


def _points(series: Element, role: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for holder in children(series, role):
        for point in below(holder, "pt"):
            at = point.get("idx", "")
            if at.isascii() and at.isdigit() and len(at) < 7:
                found[int(at)] = " ".join((each.text or "").strip() for each in below(point, "v"))
    return found


def _title(chart: Element) -> str:
    for each in below(chart, "title"):
        return " ".join("".join(text.text or "" for text in below(each, "t")).split())
    return ""


# Loader for pptx: the text of its slides, in order. A slide is a page; hidden slides are left out and counted.

_TITLES = ("title", "ctrTitle")
_MARGINAL = ("dt", "ftr", "hdr", "sldNum")
"""Placeholders that say the same on every slide."""
_TRUE = ("1", "true")


def load_slides(file: Path, doc_id: str) -> Document:
    """Read a presentation.

    Raises:
        UnreadableError, OSError: the file cannot be read, or no slide has text.
    """
    return parsed_file("pptx", file).document(file, doc_id)


def parse_slides(data: bytes) -> Parsed:
    """Return the slides with their tables, the figures of their charts, and the speaker's notes."""
    package = OfficePackage(data, "pptx")
    texts: list[str] = []
    hidden, unread = 0, []
    for number, part in enumerate(_slides(package), 1):
        if number > PAGES:
            raise UnreadableError(f"has more than {PAGES:,} slides. Split it")
        text = ""
        try:
            slide = package.xml(part)
            text = _text(package, part, slide)
            if own(slide, "show") in ("0", "false"):
                hidden, text = hidden + sum(map(str.isalnum, text)), ""
        except UnreadableError:
            unread.append(number)
        texts.append(text)
    whole, starts = joined_pages(texts)
    if not whole.strip():
        raise UnreadableError(f"no text in its {len(texts)} slides: pictures alone? Recognise their text first")
    checked = checked_text(whole, without_marks_of_loaders(whole))
    return Parsed(checked, package.title(), starts, hidden, tuple(unread))


def _slides(package: OfficePackage) -> Iterator[str]:
    main = package.main()
    targets = package.targets(main)
    for each in below(package.xml(main), "sldId"):
        # It has an id of its own beside the id of the relation.
        relation = next((value for key, value in each.items() if key.endswith("}id")), "")
        if relation in targets:
            yield targets[relation][0]


def _text(package: OfficePackage, part: str, slide: Element) -> str:
    out = MarkdownWriter()
    targets = package.targets(part)
    for shape in _shapes(slide):
        if local(shape) == "sp":
            _add_text(out, shape)
        for each in below(shape, "tbl"):
            add_table(out, _rows(each))
        for each in below(shape, "chart"):
            name, _ = targets.get(own(each, "id") or "", ("", ""))
            if name:
                title, rows = chart_rows(package.xml(name))
                add_paragraph(out, title)
                add_table(out, rows)
    for notes in package.related(part, "notesSlide"):
        said = [line for shape in _shapes(package.xml(notes)) if _role(shape) == "body" for line in _lines(shape)]
        if said:
            add_paragraph(out, f"Notes: {said[0]}", *said[1:])
    return out.text().strip()


def _shapes(slide: Element) -> Iterator[Element]:
    """Yield the shapes in the order of the file, also those in groups; the title comes first."""
    trees = list(below(slide, "spTree"))[:1]
    found: list[Element] = []
    stack = list(reversed([each for tree in trees for each in tree]))
    while stack:
        shape = stack.pop()
        if local(shape) in ("grpSp", "AlternateContent"):
            # Of alternatives the first is the newest; the others say the same.
            inner = list(shape)[:1] if local(shape) == "AlternateContent" else [shape]
            stack.extend(reversed([each for one in inner for each in one]))
        else:
            found.append(shape)
    return iter(sorted(found, key=lambda shape: _role(shape) not in _TITLES))


def _role(shape: Element) -> str:
    return next((each.get("type", "body") for each in below(shape, "ph")), "")


def _add_text(out: MarkdownWriter, shape: Element) -> None:
    role = _role(shape)
    if role in _MARGINAL:
        return
    if role in _TITLES:
        add_heading(out, 2, " ".join(_lines(shape)))
    elif role:
        _add_list(out, shape)
    else:
        for line in _lines(shape):
            add_paragraph(out, line)


def _add_list(out: MarkdownWriter, shape: Element) -> None:
    """Add the paragraphs of a placeholder, which are points of a list in nearly every design."""
    depth = 0
    for each in below(shape, "p"):
        text = _said(each)
        if not text:
            continue
        level = next((about.get("lvl", "") for about in children(each, "pPr")), "")
        wanted = 1 + (min(int(level), 8) if level.isascii() and level.isdigit() and len(level) < 3 else 0)
        for _ in range(depth - wanted):
            out.end_inside(quote=False)
            out.end_list()
        if depth >= wanted:
            out.end_inside(quote=False)
        for _ in range(wanted - depth):
            out.begin_list(False, "")
        out.begin_item()
        out.write(text)
        depth = wanted
    for _ in range(depth):
        out.end_inside(quote=False)
        out.end_list()


def _lines(shape: Element) -> list[str]:
    return [said for each in below(shape, "p") if (said := _said(each))]


def _said(paragraph: Element) -> str:
    parts = (
        (each.text or "") if local(each) == "t" else " " for each in paragraph.iter() if local(each) in ("t", "br")
    )
    return " ".join("".join(parts).split())


def _rows(grid: Element) -> Iterator[list[str]]:
    """Yield the rows of a table. A cell over several rows is repeated in each of them."""
    above: list[str] = []
    for row in children(grid, "tr"):
        cells: list[str] = []
        for at, cell in enumerate(children(row, "tc")):
            merged = cell.get("vMerge") in _TRUE and at < len(above)
            cells.append(above[at] if merged else " ".join(_lines(cell)))
        above = cells
        yield cells


# Loader for xlsx: its sheets as tables. A sheet is a page; hidden sheets are left out and counted.


def load_sheets(file: Path, doc_id: str) -> Document:
    """Read a workbook.

    Raises:
        UnreadableError, OSError: the file cannot be read, or the package that reads it is not installed.
    """
    return parsed_file("xlsx", file).document(file, doc_id)


def parse_sheets(data: bytes) -> Parsed:
    """Return the sheets with the values that were there when the file was saved; no formula is computed."""
    package = OfficePackage(data, "xlsx")
    sheets = list(_sheets(package))
    marks: dict[str, SheetMarks] = {}
    for name, part, _ in sheets:
        marks[name] = marks_of(package.pieces(part), CELLS - sum(each.cells for each in marks.values()))
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UnreadableError(missing_package("loader 'xlsx'", error)) from None
    book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
    texts, hidden = [], 0
    for name, _, seen in sheets:
        text = _sheet_text(name, book[name], marks[name]) if name in book.sheetnames and marks[name].cells else ""
        texts.append(text if seen else "")
        hidden += 0 if seen else sum(map(str.isalnum, text))
    whole, starts = joined_pages(texts)
    if not whole.strip():
        raise UnreadableError(f"no value in its {len(sheets)} sheets. Remove it, or fill it")
    lacks = tuple(_lack(name, each.without_value) for name, each in marks.items() if each.without_value)
    checked = checked_text(whole, without_marks_of_loaders(whole))
    return Parsed(checked, package.title(), starts, hidden, unread_parts=lacks)


def _sheets(package: OfficePackage) -> Iterator[tuple[str, str, bool]]:
    """Yield name and part of each sheet with cells, in order, and whether it is visible."""
    main = package.main()
    targets = package.targets(main)
    for each in below(package.xml(main), "sheet"):
        relation = next((value for key, value in each.items() if key.endswith("}id")), "")
        part, kind = targets.get(relation, ("", ""))
        if kind == "worksheet":
            yield each.get("name", ""), part, each.get("state", "visible") == "visible"


def _lack(name: str, count: int) -> str:
    what = "a formula has no stored value" if count == 1 else f"{count:,} formulas have no stored value"
    return f"sheet {name}: {what}. Open and save the file in a program that computes them"


def _sheet_text(name: str, sheet: Any, marks: SheetMarks) -> str:
    sheet.reset_dimensions()  # what the file says of its size may be a lie of a billion cells
    out = MarkdownWriter()
    add_heading(out, 2, name)
    block: list[list[str]] = []
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [shown_value(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        if any(cells):
            block.append(marks.filled(number, cells))
        elif block:
            add_sheet(out, block)
            block = []
    add_sheet(out, block)
    return out.text().strip()
