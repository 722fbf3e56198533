"""One review of a file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rag_harness.errors import DataError, SettingsError


@contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Keep other reviews of the file out.

    Raises:
        SettingsError: there is one.
        DataError: the folder cannot be written.
    """
    lock = FileLock(file.with_name(f".{file.name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SettingsError(
            f"{file} is open in another review. End that one first, or review a copy: --page review.html"
        ) from None
    except OSError as error:
        raise DataError(
            f"Nothing can be kept in {file.parent}: {error.strerror}. Mend its rights, or review a copy of {file.name}."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # a system that removes no open file
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
