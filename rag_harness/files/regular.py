"""Reading files of the cache. Whatever else has their names is no content: a pipe would wait, a device have no end."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def regular_bytes(file: Path) -> bytes:
    """Return the content of a regular file, or of one that a link leads to.

    Raises:
        OSError: it cannot be read, or is a folder, a pipe or a device.
    """
    # Before it is opened: to open a device may have an effect. And after that, for it may have changed meanwhile.
    _check(file.stat().st_mode, file)
    with os.fdopen(os.open(file, _FLAGS), "rb") as stream:
        _check(os.fstat(stream.fileno()).st_mode, file)
        return stream.read()


def _check(mode: int, file: Path) -> None:
    if not S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
