"""Local paths and URLs such as ``s3://bucket/docs/*.parquet`` -> files, by pyarrow's file systems."""

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
class Place:
    """A path in a file system of pyarrow's; ``said`` is how somebody wrote it, or would have."""

    system: Any
    path: str
    said: str

    def open(self) -> Any:
        """Open it for reading, anywhere in it."""
        return self.system.open_input_file(self.path)


def is_parquet(said: str) -> bool:
    """Return whether a path names Parquet files: by its suffix, or as a URL, which nothing else is read from."""
    return "://" in said or said.rstrip("/").lower().endswith(".parquet")


def place_of(said: str) -> Place:
    """Return a local path or URL as a place, whether there is something or not.

    Raises:
        PrerequisiteError: pyarrow is not installed.
        DataError: pyarrow knows no such URL.
    """
    try:
        from pyarrow import fs
    except ImportError as error:
        raise PrerequisiteError(f"Parquet needs pyarrow: {install('parquet')}") from error
    if "://" not in said:
        return Place(fs.LocalFileSystem(), Path(said).absolute().as_posix(), said)
    head, wild = _parted(said)
    try:
        system, path = fs.FileSystem.from_uri(head)
    except (OSError, ValueError) as error:
        raise DataError(f"{said} cannot be opened: {error}. Known are s3://, gs://, hdfs:// and file://.") from error
    return Place(system, "/".join([path.rstrip("/"), *wild]), said)


def found(saids: Sequence[str]) -> list[Place]:
    """Return the files that paths, folders and patterns name, each once, those of one in the order of their names.

    Raises:
        DataError: one of them names nothing.
    """
    places: dict[str, Place] = {}
    for said in saids:
        some = list(_named(place_of(said)))
        if not some:
            raise DataError(f"No Parquet file {said}. Put a pattern in quotes: 's3://bucket/docs/*.parquet'.")
        places |= {each.said: each for each in some}
    return list(places.values())


def _named(asked: Place) -> Iterator[Place]:
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
            yield Place(asked.system, path, f"{root}{path}")


def _parted(path: str) -> tuple[str, list[str]]:
    """Return what stands before the first component with a wildcard, and that component with all behind it."""
    parts = path.split("/")
    first = next((number for number, part in enumerate(parts) if _WILD & set(part)), len(parts))
    return "/".join(parts[:first]) or "/", parts[first:]


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
