"""A database of a service's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.service.state.database import Database
from tests.unit.service.access.small_app import opened


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with opened(tmp_path) as made:
        yield made
