"""Atomic writing of files: in one step, or in two, where a kill between them must not lose the content."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from rag_harness.files.open_files import CREATING, put_in_place


def write_atomically(file: Path, content: bytes | Iterable[bytes]) -> None:
    """Write ``file`` so that a reader always sees all of the old content or all of the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)  # noqa: PTH101 - mkstemp makes 0600, which another user's CI could not read
        put_in_place(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def begun_file(file: Path) -> Path:
    """Return the file beside ``file`` that has its content until it is on the disk."""
    return file.with_name(f".{file.name}.begun")


def begin_atomically(file: Path, content: bytes) -> Callable[[], None]:
    """Write ``content`` beside ``file`` at once; return what syncs it and puts it in place, to be called in a thread.

    From this on a kill of the process loses nothing: ``finish_begun`` finds it. The sync is for a machine that loses
    power. A reader of ``file`` always sees all of the content or none.
    """
    begun = begun_file(file)
    try:
        descriptor = _created(begun)
    except FileExistsError:  # another process writes the same, or a machine without power has left a part
        return lambda: _write_over(file, content)
    try:
        rest = content
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        begun.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return lambda: _finish(begun, file, content)


def _created(begun: Path) -> int:
    try:
        return os.open(begun, CREATING, 0o644)
    except FileNotFoundError:
        begun.parent.mkdir(parents=True, exist_ok=True)
        return os.open(begun, CREATING, 0o644)


def _finish(begun: Path, file: Path, content: bytes) -> None:
    try:
        with begun.open("rb+") as stream:
            os.fsync(stream.fileno())
        begun.chmod(0o644)
        put_in_place(str(begun), file)
    except FileNotFoundError:
        if not file.exists():  # else somebody who asked for it has put it in place meanwhile
            write_atomically(file, content)
    except BaseException:
        begun.unlink(missing_ok=True)
        raise


def _write_over(file: Path, content: bytes) -> None:
    write_atomically(file, content)
    begun_file(file).unlink(missing_ok=True)


def finish_begun(file: Path, is_whole: Callable[[Path], bool]) -> bool:
    """Put in place what a killed process has begun, if it ``is_whole``; return whether ``file`` is there now."""
    begun = begun_file(file)
    if not begun.exists() or not is_whole(begun):
        return False
    with suppress(OSError):
        put_in_place(str(begun), file)
    return file.is_file()
