"""Tests that take minutes, or a cluster, are run when they are asked for; no test fails because a machine was slow."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import pytest

# Workers share the processors: threads of torch and BLAS would wait for each other in loops, half of what models take.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

# A shell's background job is started with SIGINT ignored, and tests of interrupted runs send it to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WHEN_ASKED = {"long": "takes minutes", "ray": "starts a cluster"}

# A person's run looks at new examples each time, and finds what nobody thought of. A gate must not: the same code has
# the same verdict there. So .ci/run asks for examples that follow from the tests alone.
hypothesis.settings.register_profile("new", deadline=None)
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("RAG_TEST_EXAMPLES", "new"))


# What changes how pytest prints: a line of a summary is cut at the width of the screen, but on a CI server it is not.
PRINTED_DIFFERENTLY = ("CI", "BUILD_NUMBER", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS")


@pytest.fixture(autouse=True, scope="session")
def plain_terminal() -> Iterator[None]:
    """Print in suites of tests as on a person's screen, wherever the tests themselves run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PRINTED_DIFFERENTLY:
            patch.delenv(name, raising=False)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "how many processes tests/chaos kills in all; default: 1,000 with -m chaos, else a few"
    parser.addoption("--chaos-kills", type=int, default=0, help=about)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Look for no garbage among tests that stay: a third of collecting, and more at each look during the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark, why in WHEN_ASKED.items():
        for item in items if mark not in config.option.markexpr else ():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{why}; run it with -m {mark}"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Give `-n auto` a worker more than there are processors: one in five waits, for a server or for a process."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole files, unless another distribution was chosen: tests have no trials that would make batches."""
    from tests.by_file import ByFile

    return ByFile(config, log) if config.getoption("dist", "no") == "load" else None
