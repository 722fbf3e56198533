"""A store of arrays by content key: vectors, token vectors and pair scores.

It is a folder of immutable segments, each a safetensors file: ``keys`` (n, 16), ``offsets`` (n + 1), ``data`` (rows,
d). Entry i is ``data[offsets[i]:offsets[i + 1]]``. A writer only adds segments, each with a name made from its keys,
by an atomic rename. So several writers lose nothing, and folders are merged by copying. Entries are never rewritten,
because a vector computed again in another batch differs in its last bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.errors import DataError, RecordingWriteError
from rag_harness.files.atomic import write_atomically

KEY_BYTES = 16
Array = npt.NDArray[Any]

_FLUSH_AT = 256
"""Entries in memory before they are written. A killed run loses at most so many."""


def key_of(*parts: str) -> bytes:
    """Return the key of a text, or of several texts (a query and a chunk)."""
    state = blake2b(digest_size=KEY_BYTES)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.digest()


class ArrayStore:
    """Arrays by key, read from several folders and written to at most one.

    Args:
        folders: the folders to read; the first match counts.
        write_to: the folder for new segments; None makes the store read-only.
    """

    def __init__(self, folders: Sequence[Path], write_to: Path | None = None) -> None:
        self._folders = list(dict.fromkeys([*folders, *([write_to] if write_to else [])]))
        self._write_to = write_to
        self._segments: dict[Path, _Segment] = {}
        self._where: dict[bytes, tuple[_Segment, int]] = {}
        self._pending: dict[bytes, Array] = {}
        # The thread that closes a run may flush while the thread that ranks still adds entries.
        self._lock = RLock()

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        """Return the array of each key, or None where there is none. Shapes are (rows, d)."""
        with self._lock:
            if any(key not in self._where and key not in self._pending for key in keys):
                self._look_for_new_segments()
            return [self._read(key) for key in keys]

    def put(self, items: Mapping[bytes, Array]) -> None:
        """Add arrays of shape (rows, d). Existing keys stay unchanged.

        New arrays are found at once. They are on disk after ``flush``, which also runs when enough are in memory.
        """
        with self._lock:
            new = {key: np.atleast_2d(array) for key, array in items.items() if key not in self._where}
            self._pending = new | self._pending
            if len(self._pending) >= _FLUSH_AT:
                self.flush()

    def flush(self) -> None:
        """Write the entries in memory as one segment, except those that another process has written meanwhile."""
        with self._lock:
            if self._write_to is None or not self._pending:
                return
            self._look_for_new_segments()
            new = {key: array for key, array in self._pending.items() if key not in self._where}
            if new:
                file = _free(self._write_to, blake2b(b"".join(sorted(new)), digest_size=8).hexdigest())
                try:
                    _write_segment(file, new)
                except OSError as error:
                    raise RecordingWriteError(
                        f"{len(new)} vectors or scores cannot be kept in {file.parent}: {error.strerror or error}. "
                        f"What was there is whole. Make room, or name other folders: --rag-project, --rag-cache-dir."
                    ) from error
                self._look_for_new_segments()
            self._pending = {}

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> set[bytes]:
        """Return the keys of all entries."""
        with self._lock:
            self._look_for_new_segments()
            return {*self._where, *self._pending}

    def _look_for_new_segments(self) -> None:
        for folder in self._folders:
            for file in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
                # A folder, a pipe or a device has the name alone.
                if file not in self._segments and file.is_file():
                    self._add(file)

    def _add(self, file: Path) -> None:
        segment = self._segments[file] = _Segment(file)
        for position, key in enumerate(segment.keys):
            self._where.setdefault(key, (segment, position))

    def _read(self, key: bytes) -> Array | None:
        found = self._where.get(key)
        return found[0].entry(found[1]) if found else self._pending.get(key)


class _Segment:
    def __init__(self, file: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            # Memory-mapped: only requested entries are read.
            self._open: Any = safe_open(str(file), framework="numpy")
            packed = self._open.get_tensor("keys")
            self._offsets: list[int] = self._open.get_tensor("offsets").tolist()
        except (SafetensorError, OSError) as error:
            raise DataError(
                f"{file} cannot be read ({error}): it was cut short or damaged. Delete it; its entries are computed "
                f"again in mode auto, or come back with git checkout if it is a committed recording."
            ) from error
        self.keys = [bytes(row) for row in packed]
        self._data = self._open.get_slice("data")

    def entry(self, position: int) -> Array:
        array: Array = self._data[self._offsets[position] : self._offsets[position + 1]]
        return array


def _free(folder: Path, name: str) -> Path:
    """Return the file for a new segment. Only a folder can have its name and stay: anything else is replaced."""
    while (folder / f"{name}.safetensors").is_dir():
        name += "-"
    return folder / f"{name}.safetensors"


def _write_segment(file: Path, items: Mapping[bytes, Array]) -> None:
    from safetensors.numpy import save

    keys = sorted(items)
    arrays = [items[key] for key in keys]
    content = save(
        {
            "keys": np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY_BYTES),
            "offsets": np.cumsum([0, *(len(array) for array in arrays)], dtype=np.int64),
            "data": np.ascontiguousarray(np.concatenate(arrays)),
        }
    )
    write_atomically(file, content)
