"""An index that takes minutes to make says how far it is: in the line below, or in lines of its own."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.screen import PlayedRun

SLOW_MODEL = """
import time
from rag_harness.models import array_store
from rag_harness.frontends.pytest_plugin import progress
from rag_harness.core.progress import LinesOfWork

LinesOfWork.first = LinesOfWork.longest = progress._REFRESH_SECONDS = 0.03
array_store._CHECKPOINT = 1
put, pauses = array_store.CachedEmbedder._put, [0.15] * 4
def slow(*args):
    time.sleep(pauses.pop() if pauses else 0)
    put(*args)
array_store.CachedEmbedder._put = slow
"""
SAID = r"rag: embedding (4 (chunks|queries): starting|[1-4]/4 (chunks|queries), [\d.]+/s, 0:0\d left)"


@pytest.fixture
def slow(suite: Suite) -> Suite:
    shutil.rmtree(suite.path / ".rag_cache")  # what is embedded is waited for
    suite.pytester.makeconftest(SLOW_MODEL)
    return suite


def test_the_line_says_what_the_first_trial_waits_for(slow: Suite) -> None:
    run = PlayedRun(slow.path, columns=120)
    assert run.status == 0
    said = [
        line for line in run.progress if re.match(r"rag \S+ +0/4, embedding (4 chunks: starting|[1-4]/4 chunks)", line)
    ]
    assert said
    assert any(re.search(r"chunks, [\d.]+/s, 0:0\d left", line) for line in said)
    assert "embedding" not in "\n".join(run.screen.lines)


def test_without_a_terminal_it_is_said_in_lines_and_dots_go_on(slow: Suite) -> None:
    result = slow.run("-n0")
    result.assert_outcomes(passed=4)
    said = [line for line in result.outlines if re.fullmatch(SAID, line)]
    assert len(said) >= 2
    assert sorted(set(said)) == sorted(said), "no line stands there twice"
    first = result.outlines.index(said[0])
    assert result.outlines[first : first + len(said)] == said
    assert not [line for line in result.outlines if "embedding" in line and line not in said]


@pytest.mark.parametrize("args", [("-q",), ("-p", "no:rag_harness.progress")], ids=" ".join)
def test_it_is_not_said_to_who_wants_quiet(slow: Suite, args: tuple[str, ...]) -> None:
    result = slow.run("-n0", *args)
    result.assert_outcomes(passed=4)
    assert "embedding" not in result.stdout.str()


def test_a_short_run_says_nothing(suite: Suite) -> None:
    assert "embedding" not in suite.run("-n0").stdout.str()


def test_a_recording_run_says_how_far_its_forecast_is(slow: Suite) -> None:
    conftest = slow.path / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}\nfrom rag_harness.runs import cost_estimate\ncost_estimate._TOGETHER = 1\n"
    )
    slow.set_table("profiles.mock.answer", model="embedded/extractive")
    result = slow.run("--rag-mode=record", "-n0")
    result.assert_outcomes(passed=4)
    end = next(place for place, line in enumerate(result.outlines) if line.startswith("rag: recording: 4 answers"))
    before = [line for line in result.outlines[:end] if re.fullmatch(SAID, line)]
    assert len(before) >= 2


def test_a_server_without_a_model_is_noted(suite: Suite) -> None:
    suite.set_table("profiles.mock.answer", model="embedded/extractive", base_url="http://127.0.0.1:9/v1")
    said = suite.run("-n0")
    said.stdout.fnmatch_lines(["rag: a server is named (http://127.0.0.1:9/v1) and none of its models: *"])
