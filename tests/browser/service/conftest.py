"""The page of a service, opened in a browser that asks nobody but that service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import WAIT_MS
from tests.browser.service.near import Near
from tests.browser.service.stub import Stub

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


Visit = Callable[..., "Page"]
"""Options of the context -> the page of the stub, opened."""


@pytest.fixture(scope="session")
def stub_server() -> Iterator[tuple[Stub, str]]:
    """A stub, and its address."""
    for package in ("fastapi", "uvicorn", "python_multipart"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install '.[service]'")
    from tests.browser.service.serving import served

    stub = Stub()
    with served(stub.app()) as url:
        yield stub, url


@pytest.fixture
def stub(stub_server: tuple[Stub, str]) -> Stub:
    """What the stub says, as usual."""
    stub_server[0].reset()
    return stub_server[0]


@pytest.fixture
def near(stub_server: tuple[Stub, str]) -> Near:
    """What happened that must not."""
    return Near(address=stub_server[1])


@pytest.fixture
def visit(chromium: Browser, stub: Stub, near: Near) -> Iterator[Visit]:
    """Opens the page in a context of its own; what it did that it must not fails the test."""
    yield from visiting(chromium, near)


def visiting(chromium: Browser, near: Near) -> Iterator[Visit]:
    """Yield what opens the page at an address."""
    contexts = []

    def open_page(before: str = "", **options: Any) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        if before:
            context.add_init_script(before)
        near.context(context)
        page = context.new_page()
        page.goto(f"{near.address}/")
        if options.get("java_script_enabled", True):
            page.locator("html[data-ready]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not near.found
