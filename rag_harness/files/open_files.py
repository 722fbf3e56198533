"""What Windows does otherwise with files that are open: no rename, no removal, and line ends of its own."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import sleep

APPENDING: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
"""Flags of ``os.open`` for lines that are put at the end. Without the last, Windows writes ``\\r\\n`` for ``\\n``."""
CREATING: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
"""Flags of ``os.open`` for a file that is not there yet."""
_ATTEMPTS = 6
_FIRST_WAIT = 0.01
"""Seconds; each wait is twice the one before, 0.31 s in all."""


def put_in_place(made: str, file: Path) -> None:
    """Rename the file ``made`` to ``file``, which may exist. Windows refuses while somebody reads it: try again.

    Raises:
        OSError: it cannot be renamed, or ``file`` is still open after 0.3 s.
    """
    for attempt in range(_ATTEMPTS - 1):
        with suppress(PermissionError):
            os.replace(made, file)  # noqa: PTH105 - a temporary file has a name, no path
            return
        sleep(_FIRST_WAIT * 2**attempt)
    os.replace(made, file)  # noqa: PTH105


def remove_unless_open(file: Path) -> None:
    """Remove a file, if it is there. On Windows one that is open stays."""
    with suppress(PermissionError):
        file.unlink(missing_ok=True)
