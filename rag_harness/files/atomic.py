"""Atomic writing of files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rag_harness.files.open_files import put_in_place


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
