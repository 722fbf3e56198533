"""No test here loses power: none waits for the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """Force nothing to the disk, which takes some milliseconds for each of thousands of files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
