"""Writes sections as GitHub's Markdown, small enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.page.content import Block, Cell, Code, Facts, Failures, Figure, More, Prose, Section, Table
from rag_harness.shown.markdown import code, code_block, in_html, plain

LONGEST_COMMENT = 60_000
"""Bytes. A comment on GitHub may have 65,536 characters."""
_SIGNS = {"good": "✅ ", "bad": "❌ ", "unsure": "❔ "}
_FEW_FAILURES = 3


def markdown_of(title: str, sections: Sequence[Section], most: int = LONGEST_COMMENT) -> str:
    """Return the report, at most ``most`` bytes long. Blocks at the end that do not fit are left out and named."""
    parts, left, room = [f"# {plain(title)}\n"], list[str](), most - 400
    for section in sections:
        parts.append(f"\n## {plain(section.title)}\n")
        for block in section.blocks:
            text = "\n" + "\n".join(_block(block)) + "\n"
            if len("".join([*parts, text]).encode()) <= room:
                parts.append(text)
            elif section.title not in left:
                left.append(section.title)
    note = f"\n*Cut short: {plain(', '.join(left))}. The whole report: `rag-harness report`.*\n" if left else ""
    return "".join(parts) + note


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Figure):
        yield from _folded(block.title, [block.table])
    elif isinstance(block, More):
        yield from _folded(block.title, block.blocks)
    elif isinstance(block, Failures):
        yield from _failures(block)
    elif isinstance(block, Facts):
        yield from (f"- {plain(name)}: {plain(value)}" for name, value in block.pairs)
    elif isinstance(block, Prose):
        yield f"{_SIGNS.get(block.tone, '')}{plain(block.text)}"
    elif isinstance(block, Code):
        yield from code_block(block.lines)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield f"{plain(table.caption)}\n"
    shown = [n for n in range(len(table.head)) if any(row[n].text for row in table.rows) or not table.rows]
    yield _row([plain(table.head[n]) for n in shown])
    yield _row(["---"] * len(shown))
    yield from (_row([_cell(row[n]) for n in shown]) for row in table.rows)
    if table.notes:
        yield ""
        yield from (f"<sub>{plain(note)}</sub>" for note in table.notes)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = plain(cell.text)
    return f"**{text}** ★" if cell.is_best else f"{_SIGNS.get(cell.tone, '')}{text}"


def _folded(title: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield a folded part. GitHub reads Markdown inside it only between empty lines."""
    yield from (f"<details><summary>{in_html(title)}</summary>", "")
    for block in blocks:
        yield from (*_block(block), "")
    yield "</details>"


def _failures(block: Failures) -> Iterator[str]:
    shown = block.shown[:_FEW_FAILURES]
    yield f"**{plain(block.experiment)}**: the worst {len(shown)} of {block.total}\n"
    for failure in shown:
        yield f"- {code(failure.trial)} {plain(failure.query)}  "
        yield f"  **{plain(failure.cause)}**. {plain(failure.evidence)}  "
        if failure.apart:
            yield f"  Kind of answer: {plain(failure.category)}. {plain(failure.apart)}  "
        yield f"  → {plain(failure.remedy)}"
