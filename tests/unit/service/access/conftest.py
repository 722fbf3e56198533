"""A database of a service's own, and an application for tests that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.service.app_state import Options
from rag_harness.service.database import Database
from tests.unit.service.access.small_app import Asking, create_app, opened


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with opened(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """Give whoever asks an application without keys and rates. No test makes a key for it."""
    with opened(tmp_path_factory.mktemp("keyless")) as db:
        yield Asking(create_app(db, Options("e1", rate="")))
