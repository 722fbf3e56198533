"""Content of the cache that is trusted: a file is its own digest, then compressed JSON.

A file that is cut short, damaged or of somebody else is as good as none: what it would have held is worked out anew.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.files.atomic import write_atomically
from rag_harness.files.regular import regular_bytes

SUFFIX = ".kept"
_DIGEST_BYTES = 16
_LARGEST = 256 << 20
"""Most bytes that a file may hold: one of some kB can be made that holds gigabytes."""
_FAST = 1
"""The level of zlib. Rows repeat their sources, so that already this level leaves a tenth of them."""


def read_kept(file: Path) -> Any:
    """Return the JSON value of a file, and note that it was used; None where the file is not there or not whole."""
    try:
        content = regular_bytes(file)
        digest, packed = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if _digest(packed) != digest:
            return None
        found = json.loads(_unpacked(packed))
    except (OSError, ValueError, RecursionError, zlib.error):
        return None
    with suppress(OSError):
        os.utime(file)
    return found


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed, _LARGEST)
    if unpacking.unconsumed_tail:
        raise ValueError(f"larger than {_LARGEST} bytes")
    return content


def write_kept(file: Path, value: Any) -> None:
    """Write a JSON value. Where the cache may not be written, nothing happens: it only saves time."""
    packed = zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), _FAST)
    with suppress(OSError):
        write_atomically(file, _digest(packed) + packed)


def leave_newest(folder: Path, most: int) -> None:
    """Remove all but the ``most`` last used files of a folder."""
    with suppress(OSError):
        files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[most:]:
            file.unlink(missing_ok=True)


def _digest(packed: bytes) -> bytes:
    return blake2b(packed, digest_size=_DIGEST_BYTES).digest()
