"""What is said of a disk that takes no more."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rag_harness.core.cache import naming, unwritable


@pytest.mark.parametrize(
    ("number", "to_do"),
    [
        (errno.ENOSPC, "Make room"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "mount it for writing"),
        (errno.EIO, "system's log"),
        (errno.EACCES, "can be written"),
    ],
)
def test_one_line_names_file_remedy_and_what_is_safe(number: int, to_do: str) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as failed, naming(Path("output/e1.jsonl")):
        raise OSError(number, os.strerror(number))
    said = unwritable(failed.value, Path("output/journal"))
    assert said.startswith(f"output/e1.jsonl cannot be written: {os.strerror(number)}. ")
    assert to_do in said
    assert "kept in output/journal" in said
    assert "\n" not in said
