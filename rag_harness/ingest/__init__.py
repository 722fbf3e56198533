"""Files -> documents: one loader a suffix, found under the entry point ``rag_harness.loaders``.

A loader is a function ``load(file, doc_id) -> Document``, registered under its suffix without the dot:
``rst = my_package.rst:load``. It raises UnicodeDecodeError or OSError for a file that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rag_harness.registry import registered, resolve
from rag_harness.types import Document, Metadata

Loader = Callable[[Path, str], Document]

LEFT_OUT = "README.md"
"""Explains a folder to people; it is no page of the knowledge base."""


def page_files(folder: Path) -> Iterator[Path]:
    """Yield the files below ``folder`` that a loader reads, in the order of their paths."""
    known = {f".{suffix}" for suffix in registered("loaders")}
    return (
        file for file in sorted(folder.rglob("*")) if file.suffix in known and file.name != LEFT_OUT and file.is_file()
    )


def load(file: Path, doc_id: str, metadata: Metadata | None = None) -> Document:
    """Read ``file`` with the loader of its suffix; ``metadata`` goes over what the loader found, its title too."""
    document = _loader(file.suffix.lstrip("."))(file, doc_id)
    if not metadata:
        return document
    title = str(metadata.get("title") or document.title)
    return replace(document, title=title, metadata={**document.metadata, **metadata})


@lru_cache
def _loader(suffix: str) -> Loader:
    loader: Loader = resolve("loaders", suffix)
    return loader
