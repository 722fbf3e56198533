"""The names of uploaded documents. They are shown and compared, and never become paths."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath

from rag_harness.dataset.ingest import is_readable, kinds
from rag_harness.service.problems import ProblemError
from rag_harness.service.unseen import unseen_fault

LONGEST_NAME = 255
"""The most characters of a name."""


def checked_name(name: str) -> str:
    """Return a name in Unicode's form NFC.

    Raises:
        ProblemError: it is empty or too long, or has invisible characters or segments such as "..".
    """
    normal = unicodedata.normalize("NFC", name)
    fault = _fault(normal)
    if fault:
        raise ProblemError(422, "bad_name", f"The file's name {fault}. Send the file under another name.")
    return normal


def suffix_of(name: str) -> str:
    """Return the suffix that decides how a file is read, in lower case.

    Raises:
        ProblemError: no loader reads such files; the message names the suffixes that can be read.
    """
    path = PurePosixPath(name)
    # Reading a folder skips some names, such as README.md. Here the file was sent on purpose, so only the suffix
    # counts.
    if not is_readable(Path(f"document{path.suffix}")):
        raise ProblemError(
            415,
            "kind_not_read",
            f"Files of kind {path.suffix or 'without a suffix'!r} are not read. Send one of {kinds()}; the suffix of "
            f"the name decides, and Content-Type does not.",
        )
    return path.suffix.lower()


def _fault(name: str) -> str:
    if fault := unseen_fault(name):
        return fault
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, and {LONGEST_NAME} are the most"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "has an empty segment, or one of dots"
    if any(unseen_fault(PurePosixPath(part).stem) for part in name.split("/")):
        return "has a segment that cannot be seen"
    return ""
