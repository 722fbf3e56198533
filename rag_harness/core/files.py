"""Files: atomic writes, safe reads, digests, similar names, and references from other files."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from stat import S_ISREG
from time import gmtime, sleep, strftime
from typing import Any

from rag_harness.core.errors import DataError, name_meant

# What Windows does otherwise with files that are open: no rename, no removal, and line ends of its own.

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


# Atomic writing of files: in one step, or in two, where a kill between them must not lose the content.


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


# Reading files of the cache. Only regular files have content: a pipe would wait, a device would not end.

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def regular_bytes(file: Path) -> bytes:
    """Return the content of a regular file, or of one that a link leads to.

    Raises:
        OSError: it cannot be read, or is a folder, a pipe or a device.
    """
    # Before it is opened, because to open a device may have an effect. And after that, because it may have changed.
    _check(file.stat().st_mode, file)
    with os.fdopen(os.open(file, _FLAGS), "rb") as stream:
        _check(os.fstat(stream.fileno()).st_mode, file)
        return stream.read()


def _check(mode: int, file: Path) -> None:
    if not S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))


_LARGE = 2**26
"""Above this many bytes, the files of a folder are not read. Their sizes and times count instead."""


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return bytes_digest(file.read_bytes())


def bytes_digest(content: bytes) -> str:
    """Return the digest of bytes, as ``file_digest`` does for a file's."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file, as publishers of weights state it. Large files are read in pieces."""
    state = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text. The text may hold lone surrogates."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def json_digest(value: Any) -> str:
    """Return the digest of a JSON value; the order of keys does not count. What JSON cannot hold counts as text."""
    return text_digest(json.dumps(value, sort_keys=True, default=str))


def files_digest(folder: Path, files: Sequence[Path]) -> str:
    """Return the digest of files below a folder: of paths and bytes. Above a limit, of paths, sizes and times."""
    stats = [(file, file.stat()) for file in files]
    is_large = sum(stat.st_size for _, stat in stats) > _LARGE
    said = hashlib.blake2b(digest_size=8)
    for file, stat in stats:
        said.update(f"{file.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
        said.update((f"{stat.st_size} {stat.st_mtime_ns}" if is_large else file_digest(file)).encode())
    return said.hexdigest()


_MOST = 2_000
"""How many names of a folder are looked at."""


def meant_beside(place: Path, is_one: Callable[[Path], bool] = Path.is_file) -> str:
    """Return `` Did you mean 'queries.jsonl'?`` of a place that is not there; empty where no name is near.

    Args:
        place: file or folder that was named.
        is_one: whether a place is of the kind that was meant: ``Path.is_file``, ``Path.is_dir``.
    """
    try:
        beside = [each for each in islice(place.parent.iterdir(), _MOST) if is_one(each)]
    except OSError:
        return ""
    # The ending would make any two names of a kind alike.
    by_stem = {each.stem: each.name for each in beside}
    found = name_meant(place.stem, by_stem)
    return f" Did you mean {by_stem[found]!r}?" if found else ""


# Files that somebody else's file names: they are read from its own folder alone.
#
# A config, a data set or a folder of documents comes from anywhere. What it names must not bring ``/etc/passwd``, a
# neighbour's project or a device into questions and reports.

FILE = "file://"
_SHOWN = 200


def referenced_files(folder: Path, name: str, *, within: Path | None = None) -> Sequence[Path]:
    """Return the files of ``folder`` that ``name`` means: one, or all that a pattern with ``*`` matches, in order.

    Args:
        folder: the folder of the file that contains the name.
        name: a path below the folder, with or without ``file://``.
        within: where links may lead, if that is more than the folder.

    Raises:
        DataError: the name leads out of the folder, no file exists there, or it is not a regular file. The message has
            the name.
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


def now() -> str:
    """Return the current time in the format of result files."""
    return strftime("%Y-%m-%dT%H:%M:%S+00:00", gmtime())
