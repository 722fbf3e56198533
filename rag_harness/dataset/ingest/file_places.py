"""Checks of a file's place before it is opened: a regular file, inside its folder, with a printable name."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from pathlib import Path

from rag_harness.errors import UnreadableError
from rag_harness.files.referenced_files import reference_fault

MOST_FILE_BYTES = 64 << 20
"""Most bytes of one file. Documents are never that long, but a sparse file may claim any length."""


_FORGES = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories: control characters, surrogates, line and paragraph separators."""


def fault_of_place(file: Path, folder: Path) -> str:
    """Return why ``file`` is not opened as a document of ``folder``; empty where it may be opened.

    A link may point to another place in the folder. A name with a line break could forge lines in prompts, results
    and reports.
    """
    name = file.relative_to(folder).as_posix()
    if not name.isprintable() and any(unicodedata.category(each) in _FORGES for each in name):
        return "its name has control characters or is no Unicode. Rename it"
    # A walk follows no folder that is a link, so a file that is none lies where its name says: resolving is slow.
    with suppress(OSError):
        if file.is_file() and not file.is_symlink():
            return ""
    return reference_fault(file, folder)


def read_bytes(file: Path) -> bytes:
    """Return all bytes of a file.

    Raises:
        UnreadableError: the file is longer than ``MOST_FILE_BYTES``.
        OSError: the file cannot be read.
    """
    with file.open("rb") as stream:
        # The stated size first, because of sparse files. Then the bytes read, because a file may grow meanwhile.
        too_long = file.stat().st_size > MOST_FILE_BYTES
        data = b"" if too_long else stream.read(MOST_FILE_BYTES + 1)
    if too_long or len(data) > MOST_FILE_BYTES:
        raise UnreadableError(f"longer than {MOST_FILE_BYTES >> 20} MB. Split it")
    return data
