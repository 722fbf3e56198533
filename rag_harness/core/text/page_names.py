"""Names of pages in other people's software, and anchors of headings as GitHub numbers them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote

from rag_harness.core.text.comparison import composed

# Pages by the names that other people's software gives them: paths of another machine, URLs, names without suffix.

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
