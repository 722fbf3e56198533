"""The sections of all pages, which the site's search looks through.

Sphinx's own index knows which page has a word, but not which section, nor how often. It also requires every word of a
question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import tomllib
from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_WORDS = Path(__file__).with_name("words.toml")
_LOOKED_UP, _WITHOUT_ROWS = ("reference/", "how-to/"), ("reference/requirements",)
"""Pages whose tables are looked things up in: a row each is found by the name in its first cell."""
_MESSAGES, _BEGIN = "reference/errors", 8
"""The page whose list items are messages, each found by itself; words of one that name it."""
Section = tuple[str, str, str, str, str, str]
"""Page, anchor, heading, title of the page, text without that of sections below it, readers' words."""


def _sections(page: str, tree: nodes.document, words: dict[str, str]) -> Iterator[Section]:
    """Yield the sections of a page, and its rows and messages that are looked up. Takes their words from ``words``."""
    title = ""
    for section in tree.findall(nodes.section):
        heading = section.next_node(nodes.title)
        if heading is None:
            continue
        title = title or heading.astext()
        own = [each for each in section.children if not isinstance(each, (nodes.section, nodes.title))]
        is_top, anchor = section.parent is tree, section["ids"][0]
        said = words.pop(page if is_top else f"{page}#{anchor}", "")
        yield page, "" if is_top else anchor, heading.astext(), title, " ".join(_text(each) for each in own), said
        if page == _MESSAGES:
            for message in (_text(item) for each in own for item in each.findall(nodes.list_item)):
                begin = " ".join(message.split()[:_BEGIN])
                yield page, _at(anchor, begin), f"{heading.astext()}: {begin}", title, message, ""
        if page.startswith(_LOOKED_UP) and page not in _WITHOUT_ROWS:
            for row in (row for each in own for body in each.findall(nodes.tbody) for row in body.children):
                name, *cells = (_text(cell) for cell in row.children)
                if name:
                    yield page, _at(anchor, name), name, title, " ".join(cells), words.pop(f"{page}#{name}", "")


def _at(anchor: str, text: str) -> str:
    """Return the address of a text below an anchor: browsers scroll to it and mark it."""
    return f"{anchor}:~:text={quote(text)}"


def _text(node: nodes.Node) -> str:
    return " ".join(node.astext().split())


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    words: dict[str, str] = tomllib.loads(_WORDS.read_text(encoding="utf-8"))
    found = [
        section for page in sorted(app.env.found_docs) for section in _sections(page, app.env.get_doctree(page), words)
    ]
    if words:
        raise ValueError(f"{_WORDS}: no such page, section or row: {', '.join(words)}")
    said = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (Path(app.outdir) / "_static" / "sections.js").write_text(f"const SECTIONS = {said};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is written once all pages are."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
