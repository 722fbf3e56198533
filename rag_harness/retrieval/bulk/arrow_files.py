"""Files of local paths and URLs such as ``s3://bucket/docs/*.parquet``, by pyarrow's file systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.registry.installed import install

_WILD = frozenset("*?[")


@dataclass(frozen=True)
class FilePlace:
    """A path in a file system of pyarrow. ``said`` is the path as a user would write it."""

    system: Any
    path: str
    said: str

    def open(self) -> Any:
        """Open the file for reading with random access."""
        return self.system.open_input_file(self.path)


def is_parquet(said: str) -> bool:
    """Return whether a path names Parquet files: by its suffix, or as a URL. URLs always name Parquet files."""
    return "://" in said or said.rstrip("/").lower().endswith(".parquet")


def file_place_of(said: str) -> FilePlace:
    """Return a local path or URL as a place, which need not exist.

    Raises:
        PrerequisiteError: pyarrow is not installed.
        DataError: pyarrow does not support the URL.
    """
    try:
        from pyarrow import fs
    except ImportError as error:
        raise PrerequisiteError(f"Parquet needs pyarrow: {install('parquet')}") from error
    if "://" not in said:
        return FilePlace(fs.LocalFileSystem(), Path(said).absolute().as_posix(), said)
    head, wild = _parted(said)
    try:
        system, path = fs.FileSystem.from_uri(head)
    except (OSError, ValueError) as error:
        raise DataError(f"{said} cannot be opened: {error}. Known are s3://, gs://, hdfs:// and file://.") from error
    return FilePlace(system, "/".join([path.rstrip("/"), *wild]), said)


def found(saids: Sequence[str]) -> list[FilePlace]:
    """Return the files of paths, folders and patterns, each once. Files of one folder or pattern are sorted by name.

    Raises:
        DataError: a path, folder or pattern has no file.
    """
    places: dict[str, FilePlace] = {}
    for said in saids:
        some = list(_named(file_place_of(said)))
        if not some:
            raise DataError(f"No Parquet file {said}. Put a pattern in quotes: 's3://bucket/docs/*.parquet'.")
        places |= {each.said: each for each in some}
    return list(places.values())


def _named(asked: FilePlace) -> Iterator[FilePlace]:
    from pyarrow import fs

    head, wild = _parted(asked.path)
    try:
        about = asked.system.get_file_info(head)
        if about.type == fs.FileType.File and not wild:
            yield asked
            return
        if about.type != fs.FileType.Directory:
            return
        pattern = wild or ["**", "*.parquet"]
        below = asked.system.get_file_info(fs.FileSelector(head, recursive=len(pattern) > 1))
    except OSError as error:
        raise DataError(f"{asked.said} cannot be listed: {error}. Are name, region and key right?") from error
    root = asked.said.partition("://")[0] + "://" if "://" in asked.said else ""
    for path in sorted(each.path for each in below if each.type == fs.FileType.File):
        if _matches(path[len(head) :].strip("/").split("/"), pattern):
            yield FilePlace(asked.system, path, f"{root}{path}")


def _parted(path: str) -> tuple[str, list[str]]:
    """Split a path before its first component with a wildcard."""
    parts = path.split("/")
    first = next((number for number, part in enumerate(parts) if _WILD & set(part)), len(parts))
    return "/".join(parts[:first]) or "/", parts[first:]


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
