"""`pytest tests -m chaos`: the long version; without -m a short one. `--chaos-kills N` says how many kills in all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.ledger import ACCOUNTS, table
from tests.plugin.counting_server import CountingServer, counting_server

SHORT, LONG = 6, 1000


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How many kills all tests make together; each takes its share."""
    asked = int(request.config.getoption("chaos_kills"))
    return asked or (LONG if request.config.option.markexpr == "chaos" else SHORT)


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether the long version was asked for."""
    return bool(request.config.option.markexpr == "chaos")


@pytest.fixture
def long_version(is_long: bool) -> None:
    """Leave a test out of the short version."""
    if not is_long:
        pytest.skip("takes its time; run it with -m chaos")


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.03) as running:
        yield running


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if ACCOUNTS:
        terminalreporter.section("chaos")
        terminalreporter.line("\n".join(table()))
