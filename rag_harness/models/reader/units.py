"""Units of Markdown text: sentences, list items and table rows that an answer can quote."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from rag_harness.models.reader.prompt import PromptSource
from rag_harness.words.citation_marks import says_unknown
from rag_harness.words.languages import ENGLISH
from rag_harness.words.sentence_ends import sentence_texts

MAX_UNITS = 3_000
LONGEST = 600
"""Characters of a unit; a longer one is divided."""

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---(?:\n|\Z)", re.S)
_FENCE = re.compile(r"```+|~~~+")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_BREAK = re.compile(r"<br ?/?>", re.I)
_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
# Citations inside a chunk must not get into an answer.
_CITATION = re.compile(r"\[Source \d+[^\]\[\n]{0,200}\]")

_ALL_ENGLISH: Mapping[int, str] = {}
LineGroup = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Unit:
    """A quotable piece of source ``source``. ``above`` is its frame: label, headings, lead-in or FAQ question."""

    source: int
    text: str
    above: tuple[str, ...]
    language: str = ENGLISH


def split_sources(sources: tuple[PromptSource, ...], languages: Mapping[int, str] = _ALL_ENGLISH) -> list[Unit]:
    """Return the units of all sources in order, an equal share of MAX_UNITS from each; ``languages`` is by number."""
    share = MAX_UNITS // max(1, len(sources)) + 1
    return [unit for source in sources for unit in _units(source, languages.get(source.number, ENGLISH), share)]


def _units(source: PromptSource, language: str, most: int) -> Iterator[Unit]:
    # More are read than are asked for, up to the next power of two: so it hangs less on how many sources there are.
    for text, frame in _framed(source.text, language, 1 << most.bit_length())[:most]:
        yield Unit(source.number, text, (source.label, *frame), language)


@lru_cache(maxsize=1024)
def _framed(text: str, language: str, most: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the first ``most`` units of a text, and headings and lead-in of each. Many prompts have the same chunk."""
    return tuple(islice(_read(text, language), most))


def _read(source: str, language: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    headings: list[tuple[int, str]] = []
    lead, led = "", ""
    for kind, lines in _blocks(_FRONT_MATTER.sub("", source)):
        if kind == "heading":
            headings, lead, led = _nest(headings, lines[0]), "", ""
            continue
        # A lead-in introduces one list or one table, not the table after the list.
        if kind == "text" or led not in ("", kind):
            lead = ""
        led = "" if kind == "text" else kind
        for text in _pieces(kind, lines, language):
            # A question or "as follows:" answers nothing. It introduces the next lines.
            if text.endswith(("?", ":")) and kind != "table":
                lead = text
                continue
            # As a quote, "I don't know" would make the answer decline. A question and the text after it are not quoted.
            if says_unknown(f"{lead} {text}" if lead.endswith(":") else text):
                continue
            yield text, (*(title for _, title in headings), lead)


def _nest(headings: list[tuple[int, str]], line: str) -> list[tuple[int, str]]:
    match = _HEADING.match(line)
    level, title = (len(match[1]), match[2]) if match else (6, line)
    return [*((above, text) for above, text in headings if above < level), (level, plain_text(title))]


def _blocks(text: str) -> Iterator[LineGroup]:
    """Group lines into headings, tables, list items and paragraphs. Fenced code and comments are left out."""
    kind, lines, fence = "", list[str](), ""
    for line in map(str.strip, text.splitlines()):
        opened = _FENCE.match(line)
        if fence or opened:
            fence = "" if fence and line.startswith(fence) else fence or (opened[0] if opened else "")
            new = ""
        else:
            new = _kind(line)
        joins = new == kind in ("table", "text") or (new == "text" and kind == "item")
        if not joins:
            if lines:
                yield kind, lines
            kind, lines = new, []
        if new:
            lines.append(line.lstrip("> "))
    if lines:
        yield kind, lines


def _kind(line: str) -> str:
    line = line.lstrip("> ")
    if not line or line.startswith("<!--") or (_is_rule(line) and "|" not in line):
        return ""
    if line.startswith("|"):
        return "table"
    if _HEADING.match(line):
        return "heading"
    return "item" if _ITEM.match(line) else "text"


def _is_rule(line: str) -> bool:
    return "-" in line and not line.strip("|:- ")


def _pieces(kind: str, lines: list[str], language: str) -> Iterator[str]:
    if kind == "table":
        found = _rows(lines)
    elif kind == "item":
        found = iter([plain_text(_ITEM.sub("", " ".join(lines), count=1))])
    else:
        found = iter(sentence_texts(plain_text(" ".join(lines)), language))
    for text in filter(None, found):
        yield from [text] if len(text) <= LONGEST else textwrap.wrap(text, LONGEST)


def _rows(lines: list[str]) -> Iterator[str]:
    """Write each row as "Header: cell; Header: cell", so that it is clear without its table."""
    has_header = len(lines) > 1 and _is_rule(lines[1])
    header = _cells(lines[0]) if has_header else []
    for line in lines[2:] if has_header else lines:
        cells = _cells(line)
        names = header if len(header) == len(cells) else [""] * len(cells)
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True) if cell)


def _cells(line: str) -> list[str]:
    return [
        plain_text(cell.replace("\\|", "|")) for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    ]


def plain_text(text: str) -> str:
    """Return ``text`` on one line without emphasis, code marks, line breaks, link targets and citations."""
    text = _LINK.sub(r"\1", _CITATION.sub("", _BREAK.sub(" ", text)))
    return " ".join(text.replace("**", "").replace("__", "").replace("`", "").split())
