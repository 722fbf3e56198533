"""Loader for pptx: the text of its slides, in order. A slide is a page; hidden slides are left out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.markdown_blocks import add_heading, add_paragraph, add_table, without_marks_of_loaders
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter
from rag_harness.dataset.ingest.office.charts import chart_rows
from rag_harness.dataset.ingest.office.package import Element, OfficePackage, below, children, local, own
from rag_harness.dataset.ingest.parsed import Parsed, joined_pages
from rag_harness.dataset.ingest.process_limits import PAGES
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

_TITLES = ("title", "ctrTitle")
_MARGINAL = ("dt", "ftr", "hdr", "sldNum")
"""Placeholders that say the same on every slide."""
_TRUE = ("1", "true")


def load(file: Path, doc_id: str) -> Document:
    """Read a presentation.

    Raises:
        UnreadableError, OSError: the file cannot be read, or no slide has text.
    """
    return parsed_file("pptx", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
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
        # It has an id of its own beside that of the relation.
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
    """Yield the rows of a table. A cell over several rows stands in each of them."""
    above: list[str] = []
    for row in children(grid, "tr"):
        cells: list[str] = []
        for at, cell in enumerate(children(row, "tc")):
            merged = cell.get("vMerge") in _TRUE and at < len(above)
            cells.append(above[at] if merged else " ".join(_lines(cell)))
        above = cells
        yield cells
