"""Pages that code and settings speak of are there: whoever moves a page mends what names it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.unit.pages import DOCS, ROOT

FOLDERS = (".ci", ".github", "benchmarks", "comment", "docs/made", "examples", "rag_harness", "templates", "tests")
FOLDERS_OF_SUITES = ("test_experiments", "test_retrieval_golden")
KINDS = {"", ".ini", ".j2", ".js", ".py", ".sh", ".sql", ".toml", ".yaml", ".yml"}
_PAGE = re.compile(r"(?<![\w/-])(?:\.{1,2}/)*(docs/[\w./-]*\w\.md)\b")
"""A page by its path from the root. That of another project has an address, or its project before it."""
_BEGINS = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
"""What stands before a string that is a statement of its own: a docstring, or what is said of a constant."""


def files() -> Iterator[Path]:
    below = (file for folder in (*FOLDERS, *FOLDERS_OF_SUITES) for file in (ROOT / folder).rglob("*"))
    for file in (*ROOT.iterdir(), *below):
        # What tools leave in folders of their own, such as .venv, is not ours.
        is_left = any(part.startswith(".") for part in file.relative_to(ROOT).parts[1:-1])
        if file.suffix in KINDS and file.is_file() and not is_left:
            yield file


def said(file: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield what a file says, each part with its first line: of a test its comments and docstrings, for it has inputs.

    An input may name any page of any folder.
    """
    if ROOT / "tests" not in file.parents:
        yield 1, text
        return
    if file.suffix != ".py":
        return
    before, depth = tokenize.ENCODING, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_alone = token.type == tokenize.STRING and before in _BEGINS and depth == 0
        if token.type == tokenize.COMMENT or is_alone:
            yield token.start[0], token.string
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        before = token.type


def named(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the path of each page that a file names."""
    text = file.read_text(encoding="utf-8", errors="ignore")
    for first, part in said(file, text) if "docs/" in text else ():
        for match in _PAGE.finditer(part):
            yield f"{file.relative_to(ROOT).as_posix()}:{first + part.count(chr(10), 0, match.start())}", match[1]


def test_pages_that_are_named_are_there() -> None:
    found = [each for file in files() for each in named(file)]
    faults = [f"{where}: {page}{_moved(page)}" for where, page in found if not (ROOT / page).is_file()]
    assert not faults, "\n".join(faults)
    assert len(found) > 50


def _moved(page: str) -> str:
    """Say where a page of this name lies."""
    here = [each.relative_to(ROOT).as_posix() for each in DOCS.rglob(Path(page).name)]
    return f" is {' or '.join(here)} now" if here else " is no page"


def test_of_a_test_comments_and_docstrings_are_looked_at_and_its_inputs_are_not() -> None:
    text = (
        '"""See docs/a.md,\nor docs/b.md."""\nX = "docs/in.md"\n"""docs/c.md"""\n\n\ndef f():\n    # docs/d.md\n'
        '    g(\n        "docs/in.md", "http://x/docs/in.md"\n    )  # x/docs/of-x.md, ../docs/e.md\n'
    )
    found = [
        (line + part.count("\n", 0, match.start()), match[1])
        for line, part in said(ROOT / "tests" / "x.py", text)
        for match in _PAGE.finditer(part)
    ]
    assert found == [(1, "docs/a.md"), (2, "docs/b.md"), (4, "docs/c.md"), (8, "docs/d.md"), (11, "docs/e.md")]
