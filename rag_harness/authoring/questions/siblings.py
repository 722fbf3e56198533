"""Groups of similar things: the rows of a table, names with the same ending, the pages of a folder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rag_harness.authoring.questions.quotable_passages import QuotablePassage, passages, seen
from rag_harness.retrieval.chunking.heading_sections import read_headings
from rag_harness.types import Document

_NAME = re.compile(r"[^\W\d_][\w .&+-]{1,40}")
_CODE = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_LABEL = re.compile(r"^[^\S\n]*[-*+] +(\*\*[^*\n]{2,40}\*\*|`[^`\n]{2,40}`)(?=:| [–—-] )", re.M)
_APART = 4
"""From so many lines apart on, items belong to two lists."""
_FEWEST, _MOST = 2, 40
"""The size of a group. In a larger group, things would not be mistaken for each other."""
_ALIKE = 2
"""How many words titles must share at the beginning."""
_LONGEST = 4
"""The most words of a thing's name."""


def siblings(documents: Sequence[Document], names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return for each thing's name the names of its siblings, in the order of the text.

    ``names`` are words that keep their capital within a sentence.
    """
    groups = [*_folders(documents, names), *_suffixes(documents), *_titles(documents)]
    for document in documents:
        groups += [*_tables(passages(document)), *_labels(document), *_headings(document, names)]
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for group in groups:
        if _FEWEST <= len(group) <= _MOST:
            for name in group:
                found[name].update((other, None) for other in group if other != name)
    return {name: tuple(others) for name, others in found.items()}


def swapped(question: str, of_kind: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the question about a sibling, with that sibling and the thing that it replaces."""
    for name in _named_in(question, of_kind):
        for other in of_kind[name]:
            alone = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-]| [A-Z])", question)
            if alone and not _behind_name(question[: alone.start()]) and not _overlapping(name, other):
                yield _put(other, question, alone.span()), other, name


def _behind_name(before: str) -> bool:
    """Whether the last word is a name; the words that follow would be a part of that name."""
    words = before.split()
    return len(words) > 1 and words[-1][:1].isupper() and words[-1] != "I"


def _put(name: str, question: str, span: tuple[int, int]) -> str:
    before = question[: span[0]]
    vowel = name[:1].lower() in "aeio"
    before = re.sub(r"\b([Aa])n? $", lambda article: f"{article[1]}{'n' if vowel else ''} ", before)
    return f"{before}{name}{question[span[1] :]}"


def _named_in(question: str, of_kind: Mapping[str, Iterable[str]]) -> list[str]:
    words = re.findall(r"[\w.&+-]+", question.rstrip("?"))
    runs = (
        " ".join(words[at : at + length]) for length in range(_LONGEST, 0, -1) for at in range(len(words) - length + 1)
    )
    return [run for run in dict.fromkeys(runs) if run in of_kind]


def _overlapping(name: str, other: str) -> bool:
    return name.casefold() in other.casefold() or other.casefold() in name.casefold()


def _tables(found: Iterable[QuotablePassage]) -> list[list[str]]:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for passage in found:
        if passage.names and _is_name(passage.cells[0]):
            groups[passage.section, passage.names].append(passage.cells[0])
    return [list(dict.fromkeys(group)) for group in groups.values()]


def _labels(document: Document) -> list[list[str]]:
    """Return the labels of the items of each list: bold or code, followed by a colon or a dash."""
    groups: dict[int, list[str]] = {}
    last = begins = 0
    for match in _LABEL.finditer(document.text):
        apart = document.text.count("\n", last, match.start()) > _APART
        begins = match.start() if apart or not groups else begins
        last = match.start()
        if _is_name(name := seen(match[1]).rstrip(":")):
            groups.setdefault(begins, []).append(name)
    return [list(dict.fromkeys(group)) for group in groups.values()]


def _headings(document: Document, names: Collection[str]) -> list[list[str]]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for heading in read_headings(document.text):
        title = seen(heading.title)
        if _is_name(title) and all(word in names or not word.isalpha() for word in title.split()):
            groups[heading.path[:-1]].append(title)
    return list(groups.values())


def _suffixes(documents: Sequence[Document]) -> list[list[str]]:
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        for name in _CODE.findall(document.text):
            groups[re.findall(r"[A-Z][a-z]+", name)[-1]][name] = None
    return [list(group) for group in groups.values()]


def _folders(documents: Sequence[Document], names: Collection[str]) -> list[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        folder, slash, _ = document.doc_id.rpartition("/")
        title = seen(document.title)
        if slash and _is_name(title) and all(word in names for word in title.split()):
            groups[folder].append(title)
    return [group for folder, group in groups.items()]


def _titles(documents: Sequence[Document]) -> list[list[str]]:
    """Return where otherwise equal titles differ: "Returning the Alder kettle", "… the Brisk toaster"."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        words = seen(document.title).rstrip(".:").split()
        for start in range(_ALIKE, len(words)):
            name = " ".join(words[start : start + _LONGEST])
            if len(words) - start <= _LONGEST and _is_name(name):
                groups[" ".join(words[:start])][name] = None
    return [list(group) for group in groups.values()]


def _is_name(text: str) -> bool:
    """Whether a text is a short name with a capital; "up to €50" is not."""
    return (bool(_NAME.fullmatch(text)) and len(text.split()) <= _LONGEST and text[0].isupper()) or _is_code(text)


def _is_code(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z]+(?:_[a-z0-9]+)+|[A-Z]+-?\d[\w-]*", text) is not None
