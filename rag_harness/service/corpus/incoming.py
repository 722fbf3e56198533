"""Uploaded files that wait to be read, in the state folder under random names. Their own names are not used here."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

SPARE = 16 << 20
"""Bytes of the disk that documents may not use: the server needs them to go on, to end and to start again."""


class Incoming:
    """A folder of waiting files.

    Args:
        folder: of the state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, file: Path | bytes, suffix: str) -> tuple[Path, int]:
        """Take over a file, or write bytes; return the file's place and length.

        Raises:
            OSError: the file cannot be written; nothing of it is left.
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
