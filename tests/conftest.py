"""Tests that take minutes are run when they are asked for; no test fails because a machine was slow."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

hypothesis.settings.register_profile("rag_harness", deadline=None)
hypothesis.settings.load_profile("rag_harness")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "long" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; run it with -m long"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole files, unless another distribution was chosen: tests have no trials that would make batches."""
    from tests.by_file import ByFile

    return ByFile(config, log) if config.getoption("dist", "no") == "load" else None
