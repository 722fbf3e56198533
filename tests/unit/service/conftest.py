"""The service needs Python 3.11, as FastAPI does."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

collect_ignore_glob = ["*"] if sys.version_info < (3, 11) else []


@pytest.fixture(scope="module", autouse=True)
def documents_come_in_beside_busy_processors() -> Iterator[None]:
    """Take documents in at the priority of the tests: at the lowest, on a busy machine, it takes tens of seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rag_harness.service.corpus.intake._NICE", 0)
        yield
