"""Finds the user's documents: the folder that was named, or a folder with a usual name."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rag_harness.commands.starter.started import Started
from rag_harness.dataset.ingest import is_page, kinds, page_files
from rag_harness.errors import DataError
from rag_harness.files.near_names import meant_beside

USUAL_FOLDERS = ("docs", "my_docs", "doc", "documentation", "content", "kb")
"""Usual names of folders of documents, the likeliest first."""
_EXAMPLE = "In an empty folder, rag-harness init --example brings a small knowledge base to try."


class Documents(NamedTuple):
    """A folder of documents, relative to the suite's folder, and the number of its documents."""

    folder: str
    pages: int


def documents_folder(folder: Path, kb: str, done: Started) -> Documents:
    """Return the folder of documents, relative to ``folder``. Note how many it has and why it was chosen.

    Raises:
        DataError: there is no document in the folders that were searched.
    """
    named = kb or next((name for name in USUAL_FOLDERS if _has_pages(folder / name)), "")
    named = named or ("." if _has_pages_at_its_top(folder) else "")
    if not named:
        places = ", ".join(USUAL_FOLDERS)
        raise DataError(
            f"No document ({kinds()}) in {folder}, nor in a folder there called {places}. Name yours: "
            f"rag-harness init --kb DIR. {_EXAMPLE}"
        )
    place = folder / named
    if not place.is_dir():
        what = f"{place} is a file, and no folder of documents" if place.exists() else f"No folder {place}"
        raise DataError(
            f"{what}.{meant_beside(place, Path.is_dir)} Name the folder of your documents: rag-harness init --kb DIR. "
            f"{_EXAMPLE}"
        )
    pages = sum(1 for _ in page_files(place))
    if not pages:
        raise DataError(
            f"No document ({kinds()}) in {place}. Name the folder of your documents: rag-harness init --kb "
            f"DIR. {_EXAMPLE}"
        )
    done.found.append(f"found  {pages} document{'s' * (pages != 1)} in {_said(named, kb)}")
    return Documents(named, pages)


def _said(named: str, kb: str) -> str:
    if kb or named == USUAL_FOLDERS[0]:
        return named
    what = "this folder and all below it" if named == "." else named
    return f"{what}; if your documents are elsewhere: rag-harness init --kb DIR"


def _has_pages(place: Path) -> bool:
    return place.is_dir() and next(page_files(place), None) is not None


def _has_pages_at_its_top(folder: Path) -> bool:
    return folder.is_dir() and any(each.is_file() and is_page(each, folder) for each in folder.iterdir())
