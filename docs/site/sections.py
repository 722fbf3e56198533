"""The sections of all pages, which the site's search looks through.

Sphinx's own index knows which page has a word, but not which section, nor how often. It also requires every word of a
question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib
from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_WORDS = Path(__file__).with_name("words.toml")
_LOOKED_UP = ("reference/", "how-to/")
"""Pages in whose tables things are looked up: each row is found by the name in its first cell."""
Section = tuple[str, str, str, str, str, str]
"""Page, anchor, heading, title of the page, text without that of sections below it, readers' words."""


def _name_parts(app: Sphinx, tree: nodes.document) -> None:
    """Give each row that is looked up an anchor of its own."""
    taken: set[str] = set()
    for section in tree.findall(nodes.section):
        for part in _parts(app.env.docname, section):
            anchor = f"row-{nodes.make_id(_text(part)[:60])}"
            while anchor in taken:
                anchor += "-"
            taken.add(anchor)
            part["ids"] = [anchor]


def _parts(page: str, section: nodes.section) -> Iterator[nodes.Element]:
    """Yield the first cells of the rows of a section."""
    for own in _own(section):
        if page.startswith(_LOOKED_UP):
            for row in (row for body in own.findall(nodes.tbody) for row in body.findall(nodes.row)):
                yield from (cell for cell in list(row.findall(nodes.entry))[:1] if _text(cell))


def _own(section: nodes.section) -> list[nodes.Element]:
    others = (nodes.section, nodes.title)
    return [each for each in section.children if isinstance(each, nodes.Element) and not isinstance(each, others)]


def _sections(page: str, tree: nodes.document, words: dict[str, Any]) -> Iterator[Section]:
    """Yield the sections of a page, and its rows that are looked up. Takes their words from ``words``."""
    title = ""
    for section in tree.findall(nodes.section):
        heading = next(section.findall(nodes.title)).astext()
        title = title or heading
        is_top, anchor = section.parent is tree, section["ids"][0]
        said = words.pop(page if is_top else f"{page}#{anchor}", "")
        yield page, "" if is_top else anchor, heading, title, " ".join(map(_text, _own(section))), said
        for part in _parts(page, section):
            name = _text(part)
            yield page, part["ids"][0], name, title, _cells(part.parent), words.pop(f"{page}#{name}", "")


def _cells(row: nodes.Element) -> str:
    """Return the cells behind the first, each after the head of its column."""
    heads = [_text(each) for head in row.parent.parent.findall(nodes.thead) for each in head.findall(nodes.entry)]
    cells = zip(heads[1:], map(_text, row.children[1:]), strict=True)
    return "; ".join(f"{head}: {cell}" if head else cell for head, cell in cells if cell)


def _text(node: nodes.Node) -> str:
    return " ".join(node.astext().split())


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    words: dict[str, Any] = tomllib.loads(_WORDS.read_text(encoding="utf-8"))
    same = words.pop("same")
    pages = sorted(app.env.found_docs)
    found = [section for page in pages for section in _sections(page, app.env.get_doctree(page), words)]
    if words:
        raise ValueError(f"{_WORDS}: no such page, section or row: {', '.join(words)}")
    said = "".join(
        f"const {name} = {json.dumps(value, ensure_ascii=False, separators=(',', ':'))};\n"
        for name, value in (("SECTIONS", found), ("SAME", same))
    )
    (Path(app.outdir) / "_static" / "sections.js").write_text(said, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is done to a page that was read, and what is written once all are."""
    app.connect("doctree-read", _name_parts)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
