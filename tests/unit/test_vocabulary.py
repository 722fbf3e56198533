"""Terminal, page, comment and files say one thing in one word; no riddle is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.pages import DOCS, ROOT, read

WORDS = (
    *("correct", "wrong", "not checked", "retrieved", "not retrieved", "supported", "unsupported", "declined"),
    *("reused", "recorded", "replayed", "asked", "passed", "failed", "undecided", "not judged"),
    *("cause", "category", "label"),
)
INSTEAD = {
    "inconclusive": "undecided",
    "taken over": "reused",
    "no candidate": "not among the candidates",
    "in between": "the category's name, in its table",
    "kind of answer": "category",
    "kinds of answers": "categories of answers",
    "would be: ": "what happens if",
    "not right": "wrong, or not correct",
}
"""What is not printed, and what is said instead."""
REMOVED = "core/settings/removed.py"
"""Says what options are called that had another name."""
_FORBIDDEN = re.compile("|".join(rf"(?<![\w-]){re.escape(each)}" for each in INSTEAD), re.IGNORECASE)
CODE = sorted((ROOT / "rag_harness").rglob("*.py"))
SHOWN = [*sorted((ROOT / "rag_harness" / "page" / "assets").glob("*.j2")), ROOT / "rag_harness/page/assets/page.js"]


def printed(code: str) -> Iterator[str]:
    """Yield the texts of code that are no docstrings: what may be printed."""
    tree = ast.parse(code)
    alone = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def riddles(texts: Iterator[str]) -> list[str]:
    return [f"{match[0]!r} in {text[:100]!r}" for text in texts for match in _FORBIDDEN.finditer(text)]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('say("3 gates inconclusive")', 1),
        ('say(f"{n} rows were taken over from {x}")', 1),
        ('"""An inconclusive gate."""\nsay("undecided")', 0),
        ('state = "Inconclusive"', 1),
        ('one = "No gate looks at it; one would be a recall"', 0),
    ],
)
def test_the_words_are_looked_for_in_what_is_printed(code: str, found: int) -> None:
    assert len(riddles(printed(code))) == found


def test_no_text_of_the_package_has_another_word_or_a_riddle() -> None:
    found = {str(file): said for file in CODE if not file.match(REMOVED) and (said := riddles(printed(read(file))))}
    found |= {str(file): said for file in SHOWN if (said := riddles(iter([read(file)])))}
    assert found == {}


def test_the_glossary_has_each_word_of_the_vocabulary() -> None:
    listed = _first_cells(DOCS / "reference" / "glossary.md")
    assert set(WORDS) - listed == set()


def _first_cells(page: Path) -> set[str]:
    rows = [line.split("|")[1] for line in read(page).splitlines() if line.startswith("| ")]
    return {word.strip() for cell in rows for word in cell.split(",")}
