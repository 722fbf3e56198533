"""`pytest tests -m chaos`: it takes its time; short versions stand elsewhere. `--chaos-kills N` says how many kills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.ledger import ACCOUNTS, LINES, table
from tests.plugin.counting_server import CountingServer, counting_server

KILLS = 1000


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How many kills all tests make together; each takes its share."""
    return int(request.config.getoption("chaos_kills")) or KILLS


@pytest.fixture
def long_version(request: pytest.FixtureRequest) -> None:
    """Leave a test out unless these tests were asked for."""
    if request.config.option.markexpr != "chaos":
        pytest.skip("takes its time; run it with -m chaos")


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.03) as running:
        yield running


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if ACCOUNTS or LINES:
        terminalreporter.section("chaos")
        terminalreporter.line("\n".join([*(table() if ACCOUNTS else ()), *LINES]))
