"""Messages for a disk that is full or cannot be written: which file, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TO_DO = {
    errno.ENOSPC: "Make room on its disk",
    errno.EDQUOT: "Make room there, or have the quota raised",
    errno.EROFS: "Its disk can only be read: mount it for writing",
    errno.EIO: "Its disk fails: look at the system's log, and copy what is there first",
}


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the name ``file`` to an OSError of the block. An error of an open stream has no file name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


def unwritable(error: OSError, journals: Path) -> str:
    """Return a message: what failed, what to do, and that finished trials are safe in ``journals``."""
    to_do = _TO_DO.get(error.errno or 0, "See that it can be written")
    return (
        f"{error.filename or 'A result'} cannot be written: {error.strerror or error}. {to_do}, and run again: what "
        f"has come back is kept in {journals}, and the next run takes it over and asks only for the rest."
    )
