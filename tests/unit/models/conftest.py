from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture(autouse=True, scope="package")
def _certificates_read_once() -> Iterator[None]:
    """Give all clients one context: each would read the certificates of this machine, 25 ms, and none needs them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield
