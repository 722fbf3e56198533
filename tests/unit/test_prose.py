"""The pages are read once: short sentences, and none of the phrases of ``docs/style.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.pages import DOCS, ROOT, place, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STYLE: dict[str, Any] = tomllib.loads(read(DOCS / "style.toml"))
MADE = {"api.md", "commands.md", "errors.md", "options.md", "output.md"}
PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if page.name not in MADE]
_NO_PROSE = re.compile(r"^```.*?^```|<!--.*?-->|^(?: {4}|\t).*?$|^[|: -]{3,}$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]{1,300}`")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^()\s]{0,300}\)")
_BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d{1,3}\.) |\n#{1,6} |\n>|\|")
_END = re.compile(r"(?<=[.!?])[)*_\"]{0,3}\s+(?=[\"*_(\[A-Z`0-9])")


@cache
def sentences(page: Path) -> list[tuple[str, str]]:
    """Return the sentences of a page's prose, of its lists and of the cells of its tables, each with its place.

    A piece of code is a word.
    """
    text = _NO_PROSE.sub(lambda match: "|" + "\n" * match[0].count("\n"), read(page))
    text = _LINK.sub(r"\1", _CODE.sub("CODE", text))
    found = []
    # A heading in the first line is one, too.
    for begin, block in _parts(_BLOCK, f"\n{text}"):
        for at, said in _parts(_END, block):
            first = begin + at + len(said) - len(said.lstrip()) - 1
            found.append((place(page, text, first), " ".join(said.split())))
    return [(where, said) for where, said in found if said]


def _parts(between: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands between matches, and where it begins."""
    last = 0
    for match in between.finditer(text):
        yield last, text[last : match.start()]
        last = match.end()
    yield last, text[last:]


def is_long(sentence: str) -> bool:
    """Whether a sentence has more words than the style allows."""
    return len(re.findall(r"[A-Za-z][\w'’-]*", sentence)) > int(STYLE["words"])


def test_sentences_are_split_where_they_end() -> None:
    said = [each for _, each in sentences(DOCS / "index.md")]
    assert "Measures, judges." not in said
    assert is_long("word " * 29)
    assert not is_long("word " * 28)


def test_few_sentences_are_long() -> None:
    said = [each for page in PAGES for each in sentences(page)]
    long = [f"{where}: {each}" for where, each in said if is_long(each)]
    assert len(long) <= STYLE["long_share"] * len(said), "\n".join(long)


def test_no_phrase_has_to_be_read_twice() -> None:
    any_of_them = re.compile("|".join(f"(?:{phrase})" for phrase in STYLE["phrases"]), re.IGNORECASE)
    suspects = [each for page in PAGES for each in sentences(page) if any_of_them.search(each[1])]
    faults = [
        f"{where}: {said}: {why}"
        for where, said in suspects
        for phrase, why in STYLE["phrases"].items()
        if re.search(phrase, said, re.IGNORECASE)
    ]
    assert not faults, "\n".join(faults)
