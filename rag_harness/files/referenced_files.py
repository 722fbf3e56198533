"""Files that somebody else's file names: they are read from its own folder alone.

A config, a data set or a folder of documents comes from anywhere. What it names must not bring ``/etc/passwd``, a
neighbour's project or a device into questions and reports.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from rag_harness.errors import DataError

FILE = "file://"
_SHOWN = 200


def referenced_files(folder: Path, name: str, *, within: Path | None = None) -> Sequence[Path]:
    """Return the files of ``folder`` that ``name`` means: one, or all that a pattern with ``*`` matches, in order.

    Args:
        folder: that of the file in which the name stands.
        name: a path below the folder, with or without ``file://``.
        within: where links may lead, if that is more than the folder.

    Raises:
        DataError: the name leads out of the folder, nothing is there, or it is no regular file. The message
            has the name.
    """
    path = name.removeprefix(FILE)
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    if _leads_out(path):
        raise DataError(_outside(shown))
    try:
        found = sorted(folder.glob(path)) if "*" in path else [folder / path]
    except ValueError as error:
        raise DataError(f"{shown}: {error}. Mend the pattern.") from None
    if not found:
        raise DataError(f"no file matches {shown}. Put one there, or mend the pattern.")
    for each in found:
        if fault := reference_fault(each, within or folder):
            raise DataError(_said(fault, each, shown if "*" not in path else each.relative_to(folder).as_posix()))
    return found


LEADS_OUT = "a link that leads out of the folder. Copy the file into it"


def reference_fault(file: Path, folder: Path) -> str:
    """Return why ``file`` is not opened as one of ``folder``; empty where it may be opened.

    A link may point to another place in the folder. Only regular files are opened: a pipe never ends, a device has an
    effect.
    """
    try:
        if not file.resolve().is_relative_to(folder.resolve()):
            return LEADS_OUT
        return "" if file.is_file() else "no regular file, or a link to nothing. Remove it"
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name that the system refuses
        said = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        return f"cannot be looked at: {said}. Remove it, or mend its rights"


def _leads_out(path: str) -> bool:
    windows = PureWindowsPath(path)
    parts = {*PurePosixPath(path).parts, *windows.parts}
    return ".." in parts or "://" in path or path.startswith(("/", "\\")) or bool(windows.drive)


def _said(fault: str, file: Path, shown: str) -> str:
    if fault == LEADS_OUT:
        return _outside(shown)
    if not os.path.lexists(file):
        return f"there is no file {shown}. Put it there, or mend the name."
    return f"{shown}: {fault}."


def _outside(shown: str) -> str:
    return (
        f"{shown} is not in the folder of the file that names it, and no other is read. Copy it there, and name it by "
        f"its path in that folder."
    )
