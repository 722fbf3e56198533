"""Files that wait to be read, below the state folder, under random names: what an upload is called never gets here."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

SPARE = 16 << 20
"""Bytes of the disk that no document is given: the server goes on with them, ends, and starts again."""


class Incoming:
    """A folder of files that wait.

    Args:
        folder: of the state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, file: Path | bytes, suffix: str) -> tuple[Path, int]:
        """Take a file over, or write bytes; return where it is, and its length.

        Raises:
            OSError: it cannot be written; nothing is left of it.
        """
        place = self.folder / f"{uuid4().hex}{suffix}"
        try:
            if isinstance(file, bytes):
                place.write_bytes(file)
            else:
                shutil.move(file, place)
            return place, place.stat().st_size
        except OSError:
            place.unlink(missing_ok=True)
            raise
