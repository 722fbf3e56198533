"""This repository's own fixtures and options."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    # Not in the plugin: there it would crash every suite that has a --k of its own.
    parser.addoption("--k", dest="rag_k", default=None, help="short for --rag-k: cutoff of the golden suite")
