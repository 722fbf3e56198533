"""Tests that take minutes, or a cluster, are run when they are asked for; no test fails because a machine was slow."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

WHEN_ASKED = {"long": "takes minutes", "ray": "starts a cluster"}

hypothesis.settings.register_profile("rag_harness", deadline=None)
hypothesis.settings.load_profile("rag_harness")


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "how many processes tests/chaos kills in all; default: 1,000 with -m chaos, else a few"
    parser.addoption("--chaos-kills", type=int, default=0, help=about)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark, why in WHEN_ASKED.items():
        for item in items if mark not in config.option.markexpr else ():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{why}; run it with -m {mark}"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole files, unless another distribution was chosen: tests have no trials that would make batches."""
    from tests.by_file import ByFile

    return ByFile(config, log) if config.getoption("dist", "no") == "load" else None
