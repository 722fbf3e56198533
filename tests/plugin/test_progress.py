"""The line of progress, as somebody sees it who runs pytest in a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.frontends.pytest_plugin.progress import Progress, wants_progress
from tests.plugin.conftest import Suite
from tests.plugin.screen import PlayedRun
from tests.unit.rows import make_row

SLOW_TEST = """
import os, time
import pytest

@pytest.mark.e3
def test_answers(rag_result):
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
    print("captured")
    os.write(1, b"captured too")
    right = rag_result.query_id != os.environ.get("WRONG")
    assert right
"""
# Blocks the plugin object of this name, and nothing else.
WITHOUT = ("-p", "no:rag_harness.progress", "--rag-overwrite")


@pytest.fixture
def slow(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    (suite.path / "test_slow.py").write_text(SLOW_TEST)
    return suite


def without_times(lines: list[str]) -> list[str]:
    """Return what two runs of the same suite have in common."""
    text = re.sub(r"0x[0-9a-f]+|in \d+\.\d+s|\d{4}-\d\d-\d\dT\S+", "X", "\n".join(lines))
    text = re.sub(r"(?m)^e3 .*$|^\d+ trials? in .*$|^p50/.*$|^=+ (.*) =+$", r"X \1", text)
    # xdist's workers finish in any order.
    return re.sub(r"\[gw\d\]|[.F]{4} ", "X", text).split("\n")


@pytest.mark.parametrize(
    "args",
    [(), pytest.param(("-v",), marks=pytest.mark.long), pytest.param(("-n", "2"), marks=pytest.mark.long)],
    ids=" ".join,
)
def test_it_is_there_while_trials_run_and_leaves_nothing(slow: Suite, args: tuple[str, ...]) -> None:
    wrong = {"WRONG": "q_direct_002"}
    shown = PlayedRun(slow.path, "--tb=short", *args, "--rag-overwrite", env=wrong)
    plain = PlayedRun(slow.path, "--tb=short", *args, *WITHOUT, env=wrong)
    assert re.match(r"rag \S+ +[0-4]/4", shown.progress[0])
    assert plain.progress == []
    assert (shown.status, plain.status) == (1, 1)
    assert without_times(shown.screen.lines) == without_times(plain.screen.lines)


# Long enough for Ctrl-C to come between two tests.
PAUSES = {False: "0.05", True: "0.5"}


@pytest.mark.parametrize(("stop", "status"), [(False, 1), (True, 2)], ids=["-x", "Ctrl-C"])
def test_it_goes_however_the_run_ends(slow: Suite, stop: bool, status: int) -> None:
    run = PlayedRun(slow.path, "-x", env={"WRONG": "q_direct_003", "PAUSE": PAUSES[stop]}, stop=stop)
    assert run.status == status
    assert run.progress
    assert [line for line in run.screen.lines if re.match(r"rag .*\d/4", line)] == []
    assert run.screen.lines[-1].endswith("=")
    assert run.screen.column == 0
    assert run.screen.cursor_is_shown


@pytest.mark.long
def test_in_a_narrow_terminal_without_colours_it_says_the_most_important(slow: Suite) -> None:
    run = PlayedRun(slow.path, env={"NO_COLOR": "1"}, columns=30)
    assert run.progress[0] == "rag 0/4"
    assert b"\x1b[3" not in run.screen.raw


@pytest.mark.parametrize(("args", "env"), [(["-q"], {}), ([], {"CI": "1"})], ids=["-q", "CI"])
def test_it_is_off(slow: Suite, args: list[str], env: dict[str, str]) -> None:
    run = PlayedRun(slow.path, *args, env=env)
    assert run.status == 0
    assert run.progress == []
    assert b"\x1b[A" not in run.screen.raw


@pytest.mark.long
def test_what_is_no_terminal_gets_the_same_bytes(slow: Suite) -> None:
    with_it, without = slow.run("--rag-overwrite"), slow.run(*WITHOUT)
    assert without_times(with_it.outlines) == without_times(without.outlines)
    assert with_it.errlines == without.errlines == []


class Terminal:
    """A pytest configuration with just what ``wanted`` asks."""

    def __init__(self, **options: Any) -> None:
        self.option = SimpleNamespace(capture="fd", verbose=0, usepdb=False, trace=False, collectonly=False)
        vars(self.option).update(options)
        self.reporter: Any = object.__new__(pytest.TerminalReporter)
        vars(self.reporter)["_tw"] = SimpleNamespace(_file=SimpleNamespace(isatty=lambda: True))
        self.pluginmanager = SimpleNamespace(get_plugin=lambda name: self.reporter)


@pytest.fixture
def _at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("_at_a_terminal")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"verbose": 2}, True),
        ({"verbose": -1}, False),
        ({"capture": "no"}, False),
        ({"capture": "tee-sys"}, False),
        ({"usepdb": True}, False),
        ({"trace": True}, False),
        ({"collectonly": True}, False),
    ],
)
def test_when_it_is_wanted(options: dict[str, Any], expected: bool) -> None:
    assert wants_progress(Terminal(**options)) is expected  # type: ignore[arg-type]


@pytest.mark.usefixtures("_at_a_terminal")
@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("BUILD_NUMBER", "7"), ("TERM", "dumb"), ("TERM", "")])
def test_the_environment_can_say_that_nobody_looks(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert not wants_progress(Terminal())  # type: ignore[arg-type]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, "" if name != "TERM" else "xterm")
    assert wants_progress(Terminal())  # type: ignore[arg-type]


@pytest.mark.usefixtures("_at_a_terminal")
def test_it_is_not_wanted_in_a_worker_beside_another_reporter_or_without_any() -> None:
    worker, other, none = Terminal(), Terminal(), Terminal()
    worker.workerinput = {}  # type: ignore[attr-defined]
    other.reporter = type("SugarReporter", (pytest.TerminalReporter,), {})
    none.reporter = None
    assert [wants_progress(each) for each in (worker, other, none)] == [False, False, False]  # type: ignore[arg-type]


def progress(in_flight: Callable[[], int]) -> Progress:
    config = Terminal(capture="no")
    config.get_terminal_writer = lambda: SimpleNamespace(hasmarkup=False)  # type: ignore[attr-defined]
    made = Progress(config, in_flight)  # type: ignore[arg-type]
    made.start(4)
    return made


def test_parts_that_do_not_fit_are_left_out() -> None:
    line = progress(lambda: 16)
    line.row(make_row(status="error", error={"stage": "generate", "type": "E", "message": ""}, retries=2), False)
    assert " ".join(line._text(110).split()) == "rag ━━━━━━ 1/4, 1 error, 16 in flight, 2 retries, 110 tokens"
    assert " ".join(line._text(60).split()) == "rag ━━╸ 1/4, 1 error, 16 in flight, 2 retries"
    assert line._text(59).rstrip() == "rag 1/4, 1 error, 16 in flight, 2 retries, 110 tokens"
    assert line._text(20).rstrip() == "rag 1/4, 1 error"
    assert line._text(6).rstrip() == "rag …"
    assert os.linesep not in line._text(3)
