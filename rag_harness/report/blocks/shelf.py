"""Blocks kept beside a file of rows or scores: ``columns/<experiment>/<digest of the lines>.safetensors``.

They are made from the file's lines and can be deleted at any time. A block is made again where it cannot be read, or
was made for other cases, measures or code.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from rag_harness.files.atomic import write_atomically
from rag_harness.files.log import log
from rag_harness.report.blocks.block import Array, KeptBlock
from rag_harness.report.blocks.made import BlockInputs

COLUMNS_FOLDER = "columns"
"""Folder beside the files."""
_Block = TypeVar("_Block", bound=KeptBlock)
_SMALL = np.iinfo(np.int32)


class Shelf(Generic[_Block]):
    """The kept blocks of one file.

    Args:
        lines: the file.
        wanted: what its blocks must be made of.
        kind: class of its blocks.
    """

    def __init__(self, lines: Path, wanted: BlockInputs, kind: type[_Block]) -> None:
        self._folder, self._wanted, self._kind = lines.parent / COLUMNS_FOLDER / lines.stem, wanted, kind

    def get(self, digest: str) -> _Block | None:
        """Return the block of the lines with this digest; None where no usable one is kept."""
        from safetensors import SafetensorError, safe_open

        file = self._file(digest)
        if not file.is_file():
            return None
        try:
            with safe_open(str(file), framework="numpy") as opened:
                said = opened.metadata() or {}
                if not BlockInputs(**json.loads(said["made"])).serves(self._wanted):
                    return None
                arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is no dict
                return self._kind.of(arrays, json.loads(said["texts"]))
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read and is made again: %s", file, error)
            return None

    def put(self, digest: str, block: _Block) -> None:
        """Keep a block. Where that fails, e.g. in a read-only folder, the next reader makes it again."""
        from safetensors.numpy import save

        said = {"made": json.dumps(asdict(self._wanted)), "texts": json.dumps(asdict(block.texts))}
        arrays = {name: _narrow(array) for name, array in block.arrays.items()}
        try:
            write_atomically(self._file(digest), save(arrays, said))
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file(digest), error)

    def keep_only(self, digests: Collection[str]) -> None:
        """Delete the blocks of lines that are no longer in the file."""
        for file in self._folder.glob("*.safetensors"):
            if file.stem not in digests:
                try:
                    file.unlink(missing_ok=True)
                except OSError as error:
                    log.warning("%s cannot be deleted: %s", file, error)

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.safetensors"


def _narrow(array: Array) -> Array:
    """Store integers in 32 bits where they fit."""
    fits = array.dtype == np.int64 and _SMALL.min <= array.min(initial=0) and array.max(initial=0) <= _SMALL.max
    return np.ascontiguousarray(array.astype(np.int32) if fits else array)
