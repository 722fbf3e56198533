"""The Markdown of each HTML element."""

from __future__ import annotations

from collections.abc import Callable

from rag_harness.dataset.ingest.hidden import Attributes
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter

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
