"""Forms in which texts are compared, and names of pages in other people's software."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from html import unescape
from itertools import pairwise
from pathlib import PurePosixPath
from urllib.parse import unquote

# The form in which texts are compared. What is shown stays as written.
#
# Two texts that a reader takes for the same are the same here: letters are composed and compatible forms replaced
# (NFKC), so that an accent in two characters, a ligature and a full-width digit are what they look like; soft hyphens,
# zero-width characters and marks of direction count for nothing; quotes and dashes are those of ASCII; HTML entities
# are characters.
#
# Chinese, Japanese, Thai, Lao, Khmer and Burmese have no blanks between words. Where words are counted, each character
# is one, as in the scripts of CMRC 2018 and MLQA; where they are searched, each pair of neighbours is one, as in
# Lucene's CJKAnalyzer. A dictionary finds better words, and another one for each language (jieba alone is 19 MB).

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_EMPHASIS = re.compile(r"\*\*|__|`+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<![\w_])_(?=[^\W_])|(?<=[^\W_])_(?![\w_])")
"""Marks of bold, italics and code in Markdown, but not those inside a name: ``max_tokens``."""
_INVISIBLE = (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
_SELECTORS = range(0xFE00, 0xFE10)
_REPLACED: dict[int, str | None] = {
    **dict.fromkeys((*_INVISIBLE, *_SELECTORS)),
    **dict.fromkeys(map(ord, "‘’‚‛′ʼ＇´"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»＂"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-"),
}
_TO_REPLACE = re.compile(f"[{re.escape(''.join(map(chr, _REPLACED)))}]")
_SMALL = re.compile("([ªº²³¹¼-¾ʰ-ʸˠ-ˤ⁰-ₜ℠™⅐-⅟↉]+)")
"""Superscripts and fractions stay: 10² is no 102, and 2½ no 21/2."""
_WITHOUT_BLANKS = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
_JOINED_RUN = re.compile(f"[{_WITHOUT_BLANKS}]+|[^{_WITHOUT_BLANKS}]+")
_JOINED = re.compile(f"[{_WITHOUT_BLANKS}]")
_MARKED = re.compile("[\u0300-\u036f\u0483-\u0489\u0590-\u1fff\u20d0-\u20ff\u2c00-\U0010ffff]")
"""Scripts with combining marks, or without blanks. Finding all marks takes 15 ms: other texts do not wait for it."""
_UNREADABLE = re.compile(f"[\u0300-\u036f{''.join(map(chr, (*_INVISIBLE, *_SELECTORS)))}\ufb00-\ufb06\uff01-\uff5e]")
"""Marks in a character of their own, what is not seen, ligatures and full-width signs."""
_PLAIN_WORD = re.compile(r"\w+")


def composed(name: str) -> str:
    """Return a name with composed letters (NFC): macOS and PDFs write é as two characters."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def comparable(text: str) -> str:
    """Return a text as it is compared; upper and lower case stay."""
    if "&" in text:
        text = _ENTITY.sub(lambda found: unescape(found[0]), text)
    if text.isascii():
        return text
    # ``str.translate`` looks up each character, and is four times slower.
    text = _TO_REPLACE.sub(lambda found: _REPLACED[ord(found[0])] or "", text)
    parts = _SMALL.split(text)
    return "".join(part if at % 2 else unicodedata.normalize("NFKC", part) for at, part in enumerate(parts))


def folded(text: str) -> str:
    """Return a text as it is compared, without regard to case."""
    return comparable(text).casefold()


def is_marked(text: str) -> bool:
    """Return whether a text may have combining marks, or words without blanks between them."""
    return not text.isascii() and _MARKED.search(text) is not None


@cache
def marks() -> str:
    """Return the combining marks as ranges of a character class: ``\\w`` has letters without their marks."""
    places = [at for at in range(0x300, 0x1F000) if unicodedata.category(chr(at))[0] == "M"]
    starts = [at for before, at in pairwise([-2, *places]) if at != before + 1]
    ends = [at for at, behind in pairwise([*places, -2]) if behind != at + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[\w{marks()}]+")


@cache
def _character() -> re.Pattern[str]:
    return re.compile(rf"[^{marks()}][{marks()}]*|[{marks()}]+")


def compared_words(text: str) -> list[str]:
    """Return the words of a text as they are compared: in lower case, and in pairs where the script has no blanks."""
    text = folded(text)
    if not is_marked(text):
        return _PLAIN_WORD.findall(text)
    return divided(_word().findall(text))


def content_words(text: str, least: int = 4) -> set[str]:
    """Return the compared words that carry a topic: of ``least`` letters and without figures, or without blanks."""
    words = compared_words(text)
    long = {word for word in words if len(word) >= least and not any(map(str.isdigit, word))}
    return long if text.isascii() else long | {word for word in words if _JOINED.match(word)}


def divided(words: Sequence[str], size: int = 2) -> list[str]:
    """Return words, and in place of those of scripts without blanks their characters (1), or neighbours (2)."""
    if not any(_JOINED.search(word) for word in words if not word.isascii()):
        return list(words)
    runs = (run for word in words for run in ([word] if word.isascii() else _JOINED_RUN.findall(word)))
    return [part for run in runs for part in ([run] if not _JOINED.match(run) else _parts(run, size))]


def _parts(run: str, size: int) -> Iterable[str]:
    characters = _character().findall(run)
    if len(characters) <= size:
        return ["".join(characters)] if size > 1 else characters
    return ["".join(characters[at : at + size]) for at in range(len(characters) - size + 1)]


@dataclass(frozen=True)
class ComparableText:
    """A text as it is compared, with the places of its characters in the text as written.

    Attributes:
        text: without marks of emphasis.
        starts: place of each character in the text as written.
        ends: the place behind it.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place of a part of the compared text in the text as written."""
        if start >= end:
            at = self.starts[start] if start < len(self.starts) else (self.ends[-1] if self.ends else 0)
            return at, at
        return self.starts[start], self.ends[end - 1]


@lru_cache(maxsize=4096)
def without_emphasis(text: str) -> str:
    """Return a text as it is compared, without marks of emphasis; as written where nothing else would stay."""
    return comparable(_EMPHASIS.sub("", text)) or text


def quotable(text: str) -> str:
    """Return a text as a quote is looked for in it: as it is compared, without marks of emphasis, on one line."""
    return " ".join(without_emphasis(text).split())


def comparable_text(text: str) -> ComparableText:
    """Return a text as it is compared, without marks of emphasis, and the places of its characters."""
    dropped = [found.span() for found in _EMPHASIS.finditer(text)]
    return _made(text, dropped, comparable) if dropped or comparable(text) != text else _as_written(text)


def readable_text(text: str) -> ComparableText:
    """Return a text as rules and models read it, and the places of its characters.

    Letters are composed, what is not seen is left out, and ligatures and full-width signs are what they look like.
    Quotes, dashes and emphasis stay.
    """
    return _made(text, (), _readable) if _UNREADABLE.search(text) else _as_written(text)


def _readable(unit: str) -> str:
    if not _UNREADABLE.search(unit):
        return unit
    return unicodedata.normalize("NFKC", unit.translate(dict.fromkeys((*_INVISIBLE, *_SELECTORS))))


def _as_written(text: str) -> ComparableText:
    return ComparableText(text, range(len(text)), range(1, len(text) + 1))


def _made(text: str, dropped: Sequence[tuple[int, int]], form: Callable[[str], str]) -> ComparableText:
    made: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _units(text, dropped):
        unit = text[start:end]
        if unit.isascii() and "&" not in unit:  # characters of their own, as they are
            made.append(unit)
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            piece = form(unit)
            made.append(piece)
            starts += [start] * len(piece)
            ends += [end] * len(piece)
    return ComparableText("".join(made), starts, ends)


_ASCII = re.compile(r"[\x00-\x25\x27-\x7f]+(?![^\x00-\x7f])")
"""A run of characters that stay as they are: the last one before another script may have a mark behind it."""


def _units(text: str, dropped: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Yield the parts of a text that are replaced as one: an entity, a character with its marks, or a run in ASCII."""
    entities = {found.start(): found.end() for found in _ENTITY.finditer(text)} if "&" in text else {}
    gone = deque(dropped)
    at = 0
    while at < len(text):
        if gone and at >= gone[0][0]:
            at = max(at, gone.popleft()[1])
            continue
        run = _ASCII.match(text, at, gone[0][0] if gone else len(text))
        end = run.end() if run else entities.get(at, at + 1)
        while not run and end < len(text) and _joins(text[end]):
            end += 1
        yield at, end
        at = end


def _joins(letter: str) -> bool:
    """Whether a character is a part of the one before it: a mark, an end of a Hangul syllable, or nothing to see."""
    if letter <= "\x7f":
        return False
    is_invisible = _REPLACED.get(ord(letter), "") is None
    return is_invisible or unicodedata.category(letter)[0] == "M" or "\u1160" <= letter <= "\u11ff"


# Whether two texts have the same words. Markdown, white space, punctuation and capitals do not count.

FEWEST_WORDS_FOUND = 4
"""Fewest words that identify a quote: "45 days" is in many texts."""
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\n]{0,200}\)")
_TAG = re.compile(r"<[^<>\n]{1,200}>")
_NUMBER = re.compile(r"(?m)(?:^[ \t>]*|(?<=[.:;!?]\s))\d{1,2}[.)](?=\s)")
"""The number of a list item, at the beginning of a line, or of a sentence where lines were joined."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without Markdown, targets of links and HTML tags.

    Numbers of list items are left out, too.
    """
    return compared_words(_NUMBER.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", text))).replace("_", " "))


def says_words(text: str, quote: str) -> bool:
    """Return whether ``text`` contains the words of ``quote``, at least four, in one sequence."""
    wanted = words_of(quote)
    return len(wanted) >= FEWEST_WORDS_FOUND and f" {' '.join(wanted)} " in f" {' '.join(words_of(text))} "


# What differs by chance between two messages that say the same: addresses in memory, ids of requests, times.

_CHANCE = re.compile(
    r"""\b0x[0-9a-f]{4,}
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b   # a UUID
    | \b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*Z?
    | (?<![\d.])\d{1,15}(?:\.\d{1,15})?\s?(?:ms|s|seconds?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME = re.compile(r"(?<![\w-])[\w-]{16,}(?![\w-])")
_HEX = "0123456789abcdefABCDEF"
_LEAST_HEX = 16


def without_chance(message: str) -> str:
    """Return a message with a mark in place of each part that differs by chance."""
    return _CHANCE.sub("<>", _NAME.sub(_without_id, message))


def _without_id(found: re.Match[str]) -> str:
    """Return a name as it is, or a mark where it ends as ids of requests do: req_011CQx4f09…"""
    name = found[0]
    is_id = any(map(str.isdigit, name)) and len(name) - len(name.rstrip(_HEX)) >= _LEAST_HEX
    return "<>" if is_id else name


def with_single_blanks(text: str) -> str:
    """Return ``text`` with each run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


NAMES_OF_PAGES = (
    "doc_id", "document_id", "ref_doc_id", "source", "source_id", "file_name", "filename", "file_path", "path", "file",
    "url",
)  # fmt: skip
"""Keys under which frameworks have the name of a chunk's document: the first that is one counts."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://(?P<path>[^?#]*)")


class PageNames:
    """Finds pages by names that end like their paths.

    Args:
        names: returns the names of all pages, paths with ``/``; called when a name is looked for.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._read = names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self._read())

    @cached_property
    def _ends(self) -> Mapping[str, str]:
        return _by_ends(self._names, str)

    @cached_property
    def _ends_in_any_case(self) -> Mapping[str, str]:
        return _by_ends(self._names, str.casefold)

    @cached_property
    def _deepest(self) -> int:
        return max((len(PurePosixPath(name).parts) for name in self._names), default=0)

    def find(self, told: str) -> str:
        """Return the page that a name tells: its own name, or a path that ends like its path and no other's.

        A prefix before the whole path of a page does not count: the pages may be below another root. A folder
        that is told and differs does: the same name there is another page.
        """
        if not told or told in self._names:
            return told
        plain = composed(told)
        return next((page for name in _readings(plain) if (page := self._page(name))), "")

    def _page(self, name: str) -> str:
        if name in self._names:
            return name
        path = PurePosixPath(name)
        # "3.12" is a numbered chunk, and not a file "3".
        stem = "" if path.suffix[1:].isdecimal() else path.stem
        folders = [part for part in path.parts[:-1] if part not in ("/", ".")]
        told = [[*folders, last] for last in (path.name, stem) if last]
        return next((at for parts in told if (at := self._ending(parts, self._ends))), "") or next(
            (at for parts in told if (at := self._ending(list(map(str.casefold, parts)), self._ends_in_any_case))), ""
        )

    def _ending(self, told: Sequence[str], ends: Mapping[str, str]) -> str:
        """Return the page whose path ends as a told one does, as far as both go."""
        for end in _ends_of(told[max(0, len(told) - self._deepest) :]):
            if end in ends:
                page, length = ends[end], end.count("/") + 1
                is_whole = length in (len(told), len(PurePosixPath(page).parts))
                return page if is_whole else ""
        return ""


def _readings(told: str) -> Iterable[str]:
    """Yield a name as it may be meant: a path of Windows, a URL, percent-encoded."""
    url = _URL.match(told)
    if url is None:
        yield told.replace("\\", "/")
    for path in dict.fromkeys((url["path"],) if url else (told,)):
        yield composed(unquote(path)).replace("\\", "/").rstrip("/")


def _by_ends(names: Iterable[str], key: Callable[[str], str]) -> dict[str, str]:
    """Return pages by each end of their paths, from the file name or its stem on; "" where several end so."""
    stems, whole = dict[str, str](), dict[str, str]()
    for name in names:
        path = PurePosixPath(name)
        for found, last in ((stems, path.stem), (whole, path.name)):
            for end in map(key, _ends_of([*path.parts[:-1], last])):
                found[end] = "" if end in found else name
    return stems | whole


def _ends_of(parts: Sequence[str]) -> list[str]:
    """Return the ends of a path, the longest first."""
    return ["/".join(parts[start:]) for start in range(len(parts))]


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, hyphens for blanks, no punctuation."""
    return "".join(_slug_character(character) for character in heading.strip().lower())


def _slug_character(character: str) -> str:
    if character == " ":
        return "-"
    category = unicodedata.category(character)
    return character if character == "-" or category[0] in "LMN" or category == "Pc" else ""


def numbered(headings: Iterable[str]) -> list[str]:
    """Return the anchor of each heading of one page, in order: the second ``Notes`` is ``notes-1``."""
    anchors: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for heading in headings:
        plain = unique = slug(heading)
        # Another heading may be "Notes 1", so the number alone does not make the anchor unique.
        while unique in anchors:
            seen[plain] += 1
            unique = f"{plain}-{seen[plain]}"
        anchors[unique] = None
    return list(anchors)
