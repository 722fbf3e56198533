"""Whether questions name pages that are there, by the files of a folder: no document is parsed for that."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from rag_harness.dataset.ingest import page_files
from rag_harness.errors import DataError, meant
from rag_harness.files.near_names import meant_beside
from rag_harness.words.comparison import composed


class Pages:
    """The pages of a folder by their names. The folder is looked at when the first name is: questions may name none.

    Args:
        folder: the knowledge base.
        parts: whether a heading or a chunk of a page may be named, too: ``page.md#heading``. Whether there is such a
            part is known when the documents are cut.
    """

    def __init__(self, folder: Path, parts: bool = False) -> None:
        self._folder, self._parts = folder, parts

    @cached_property
    def _names(self) -> frozenset[str]:
        check_folder(self._folder)
        return frozenset(composed(page.relative_to(self._folder).as_posix()) for page in page_files(self._folder))

    def __contains__(self, name: str) -> bool:
        """Return whether there is a page of that name.

        Raises:
            DataError: there is no such folder.
        """
        name = composed(name)
        # A page's own name may have a "#" in it, and so may a heading's.
        ends = [at for at, letter in enumerate(name) if letter == "#"] if self._parts else []
        return any(each in self._names for each in (name, *(name[:end] for end in ends)))

    def no_page_said(self, field: str, name: str) -> str:
        """Return the message that no page is called ``name``, which ``field`` says, with the nearest one."""
        page, mark, part = name.partition("#") if self._parts else (name, "", "")
        near = meant(page, sorted(self._names))
        whole = near.replace("'?", f"{mark}{part}'?") if mark else near
        return f"{field} {name!r} is no page of {self._folder}.{whole}"


def check_folder(folder: Path) -> None:
    """Check that there is a folder of documents.

    Raises:
        DataError: there is none; names the nearest.
    """
    if not folder.is_dir():
        what = f"{folder} is a file, and no folder of documents" if folder.exists() else f"No folder {folder}"
        raise DataError(
            f"{what}.{meant_beside(folder, Path.is_dir)} Name your own with --rag-kb DIR, rag_kb_dir in the ini file "
            "or KB_DIR: documents, and queries.jsonl with the questions. If a service or pipeline has the documents, "
            "name the questions alone: --rag-queries FILE."
        )
