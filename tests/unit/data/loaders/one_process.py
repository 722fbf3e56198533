"""All readings of a module ask one process to parse: to start one for each is most of their time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rag_harness.data.loaders.child_process import Child
from rag_harness.data.loaders.reading import FileReading


@contextmanager
def one_process() -> Iterator[None]:
    """Give readings of the block the same process. It starts again where a reading has lost it."""
    shared, begin, end = Child(), FileReading.__init__, FileReading.end

    def begun(reading: FileReading, *args: Any, **named: Any) -> None:
        begin(reading, *args, **named)
        reading.child = shared

    def ended(reading: FileReading) -> None:
        reading.child = Child()
        end(reading)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FileReading, "__init__", begun)
        patched.setattr(FileReading, "end", ended)
        yield
    shared.close()
