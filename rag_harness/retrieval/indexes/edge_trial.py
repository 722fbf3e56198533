"""Trial opening of a shard in a child process, because the engine may crash on a damaged one."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

# The child runs this file as a script. It imports only the engine, so that the start takes milliseconds.

SECONDS = 120.0
_AROUND = 2 << 30
"""Bytes of address space besides the files: for the engine's threads and caches. It maps files several times."""
_OF_FILES = 4
_SAMPLE = 64


def shard_fault(folder: Path, seconds: float = SECONDS) -> str:
    """Return why the shard in ``folder`` cannot be opened, read and searched within limits; empty where it can."""
    most = _AROUND + _OF_FILES * sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    places = [str(Path(place).absolute()) for place in sys.path if place]
    # Isolated: no module of the current folder is imported. Few heaps: each takes 128 MB of address space.
    command = [sys.executable, "-I", "-B", __file__, str(most), str(folder), *places]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
            env={**os.environ, "MALLOC_ARENA_MAX": "2", "RUST_BACKTRACE": "0"},
        )
    except subprocess.TimeoutExpired:
        return f"it was not open after {seconds:g} s"
    if ended.returncode == 0:
        return ""
    said = [
        line for line in ended.stderr.decode(errors="replace").splitlines() if line and not line.startswith("note:")
    ]
    return f"the engine ended with status {ended.returncode}" + (f": {said[-1][:200]}" if said else "")


def _try(most: int, folder: str) -> None:
    """Open the shard as a server does at its start: read all numbers and some vectors, and search."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no limits, macOS none for memory
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    import qdrant_edge as edge

    shard = edge.EdgeShard.load(folder)
    shard.info()
    after: Any = None
    some: list[Any] = []
    while True:
        asked = edge.ScrollRequest(offset=after, limit=10_000, with_payload=False, with_vector=False)
        found, after = shard.scroll(asked)
        some += [point.id for point in found[:: len(found) // _SAMPLE + 1]]
        if after is None:
            break
    vectors = [point.vector for point in shard.retrieve(some[:: len(some) // _SAMPLE + 1], False, True)]
    if vectors and isinstance(vectors[0], list):
        shard.search(edge.SearchRequest(edge.Query.Nearest(vectors[0]), 10))


if __name__ == "__main__":
    sys.path.extend(sys.argv[3:])
    _try(int(sys.argv[1]), sys.argv[2])
    # The trial writes nothing; the next opening does.
    os._exit(0)
