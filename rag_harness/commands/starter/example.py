"""The shipped example: a dozen made-up pages and their questions."""

from __future__ import annotations

from pathlib import Path

from rag_harness.commands.starter.started import Started
from rag_harness.dataset.ingest import page_files
from rag_harness.errors import DataError

EXAMPLE_QUERIES_FILE = "queries.jsonl"
_PLACE = Path(__file__).with_name("shipped")
_ABOUT = "README.md"


def copy_pages(target: Path, done: Started) -> int:
    """Write the pages and the file that describes them; return how many pages there are.

    Raises:
        DataError: ``target`` holds documents that are not the example's.
    """
    pages = {page.name: page for page in sorted((_PLACE / "docs").iterdir())}
    there = [page.relative_to(target).as_posix() for page in page_files(target)] if target.is_dir() else []
    if strange := sorted(set(there) - set(pages)):
        raise DataError(
            f"{target} holds {len(strange)} documents of yours, {strange[0]} for one. For questions about them leave "
            "--example out; to try the example choose an empty folder, or another with --kb DIR."
        )
    for name, page in {_ABOUT: _PLACE / _ABOUT, **pages}.items():
        done.write(target / name, page.read_text(encoding="utf-8"))
    return len(pages)


def questions() -> str:
    """Return the lines of its questions."""
    return (_PLACE / EXAMPLE_QUERIES_FILE).read_text(encoding="utf-8")
