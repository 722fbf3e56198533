"""The pages are read once: short sentences, and none of the phrases of ``docs/style.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = Path(__file__).parents[2] / "docs"
STYLE: dict[str, Any] = tomllib.loads((DOCS / "style.toml").read_text(encoding="utf-8"))
MADE = {"api.md", "commands.md", "errors.md", "options.md", "output.md"}
PAGES = [page for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))] if page.name not in MADE]
_NO_PROSE = re.compile(r"^```.*?^```|<!--.*?-->|^(?: {4}|\t).*?$|^[|: -]{3,}$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]{1,300}`")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^()\s]{0,300}\)")
_BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d{1,3}\.) |\n#{1,6} |\n>|\|")
_END = re.compile(r"(?<=[.!?])[)*_\"]{0,3}\s+(?=[\"*_(\[A-Z`0-9])")


def sentences(page: Path) -> Iterator[str]:
    """Yield the sentences of a page's prose, of its lists and of the cells of its tables. A piece of code is a word."""
    text = _NO_PROSE.sub("\n\n", "\n" + page.read_text(encoding="utf-8"))
    text = _LINK.sub(r"\1", _CODE.sub("CODE", text))
    for block in _BLOCK.split(text):
        yield from filter(None, (" ".join(each.split()) for each in _END.split(block)))


def is_long(sentence: str) -> bool:
    """Whether a sentence has more words than the style allows."""
    return len(re.findall(r"[A-Za-z][\w'’-]*", sentence)) > int(STYLE["words"])


def test_sentences_are_split_where_they_end() -> None:
    page = DOCS / "index.md"
    assert "Measures, judges." not in list(sentences(page))
    assert is_long("word " * 29)
    assert not is_long("word " * 28)


def test_few_sentences_are_long() -> None:
    said = [(page.relative_to(DOCS.parent), each) for page in PAGES for each in sentences(page)]
    long = [f"{page}: {each}" for page, each in said if is_long(each)]
    assert len(long) <= STYLE["long_share"] * len(said), "\n".join(long)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_phrase_has_to_be_read_twice(page: Path) -> None:
    text = "\n".join(sentences(page))
    found = [f"{phrase}: {why}" for phrase, why in STYLE["phrases"].items() if re.search(phrase, text, re.IGNORECASE)]
    assert found == []
