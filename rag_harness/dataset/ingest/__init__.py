"""Loaders of files, one for each suffix, found under the entry point ``rag_harness.loaders``.

A loader is a function ``load(file, doc_id) -> Document``, registered under its suffix without the dot, in lower case:
``rst = my_package.rst:load``. It raises UnicodeDecodeError, OSError or ``UnreadableError`` for a file that cannot be
read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from rag_harness.dataset.ingest import csv_tables, openapi
from rag_harness.dataset.ingest.file_places import fault_of_place
from rag_harness.registry import module_of, registered, resolve
from rag_harness.types import Document, Metadata

_PERHAPS = {".json": openapi, ".yaml": openapi, ".yml": openapi, ".csv": csv_tables}
"""Suffixes of many files that are no documents, and our module that looks into them."""
Loader = Callable[[Path, str], Document]
"""Reads a file as the document of that id; what a loader of your own is."""

LEFT_OUT = ("README.md", "requirements*.txt", "robots.txt", "LICENSE*")
"""Files for people or programs that are no pages of the knowledge base."""


def page_files(folder: Path) -> Iterator[Path]:
    """Yield the files below ``folder`` that a loader reads, in the order of their paths.

    Links that lead out of the folder, files that are not regular, and folders such as ``.git`` are skipped.
    """
    return (file for file, fault in files_below(folder) if not fault)


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield all files with the name of a page, in the order of paths, each with a reason not to open it, or "".

    A folder that cannot be listed is yielded with that reason.
    """
    shut: dict[Path, str] = {}
    named = list(_named(folder, shut))
    return ((each, shut.get(each) or fault_of_place(each, folder)) for each in sorted([*named, *shut]))


def is_readable(file: Path) -> bool:
    """Return whether a loader exists for the name of a file."""
    return file.suffix.lower().lstrip(".") in registered("loaders") and not is_left_out(file)


def is_page(file: Path, folder: Path) -> bool:
    """Return whether a file below ``folder`` is a document by its name, or by its beginning if the name may lie."""
    if is_page_named(file):
        return True
    # Only a file that may be opened is looked into. One that may not is no document, rather than an error.
    is_open = is_readable(file) and not fault_of_place(file, folder)
    return is_open and _PERHAPS[file.suffix.lower()].is_document(file)


def is_page_named(file: Path) -> bool:
    """Return whether the name alone says that a file is a document."""
    suffix = file.suffix.lower()
    ours = _PERHAPS.get(suffix)
    is_other = ours is None or module_of("loaders", suffix.lstrip(".")) != ours.__name__
    return is_other and is_readable(file)


def other_files(folder: Path) -> Counter[str]:
    """Return how many files below ``folder`` are no documents, by suffix, without those that are left out by name."""
    found: Counter[str] = Counter()
    for place, folders, files in os.walk(folder):
        folders[:] = _seen(folders)
        others = (Path(place, name) for name in _seen(files))
        found.update(each.suffix.lower() for each in others if not (is_page(each, folder) or is_left_out(each)))
    return found


def kinds() -> str:
    """Return the suffixes that have a loader, as text for a message."""
    return ", ".join(f".{suffix}" for suffix in sorted(registered("loaders")))


def is_left_out(file: Path) -> bool:
    """Return whether a file has a name that is never a document."""
    return any(fnmatchcase(file.name, pattern) for pattern in LEFT_OUT)


def _named(folder: Path, shut: dict[Path, str]) -> Iterator[Path]:
    def tell(error: OSError) -> None:
        shut[Path(error.filename)] = f"a folder that cannot be listed: {error.strerror}. Mend its rights"

    for place, folders, files in os.walk(folder, onerror=tell):
        folders[:] = _seen(folders)
        yield from (file for name in files if is_page(file := Path(place, name), folder))


def _seen(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(".")]


def load(file: Path, doc_id: str, metadata: Metadata | None = None) -> Document:
    """Read ``file`` with the loader of its suffix. ``metadata`` overrides what the loader found, also the title."""
    document = _loader(file.suffix.lower().lstrip("."))(file, doc_id)
    if not metadata:
        return document
    title = str(metadata.get("title") or document.title)
    return replace(document, title=title, metadata={**document.metadata, **metadata})


@lru_cache
def _loader(suffix: str) -> Loader:
    loader: Loader = resolve("loaders", suffix)
    return loader
