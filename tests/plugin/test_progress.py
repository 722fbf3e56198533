"""The line of progress, the line below what pytest writes, and how far an index is."""

from __future__ import annotations

import os
import re
import select
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.frontends.pytest_plugin.progress import Progress, StatusLine, _place, wants_progress
from tests.plugin.conftest import Suite
from tests.plugin.screen import PlayedRun, Screen, resize
from tests.unit.rows import make_row

# The line of progress, as somebody sees it who runs pytest in a terminal.

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


# An index that takes minutes to make says how far it is: in the line below, or in lines of its own.

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
def slow_index(suite: Suite) -> Suite:
    shutil.rmtree(suite.path / ".rag_cache")  # what is embedded is waited for
    suite.pytester.makeconftest(SLOW_MODEL)
    return suite


def test_the_line_says_what_the_first_trial_waits_for(slow_index: Suite) -> None:
    run = PlayedRun(slow_index.path, columns=120)
    assert run.status == 0
    said = [
        line for line in run.progress if re.match(r"rag \S+ +0/4, embedding (4 chunks: starting|[1-4]/4 chunks)", line)
    ]
    assert said
    assert any(re.search(r"chunks, [\d.]+/s, 0:0\d left", line) for line in said)
    assert "embedding" not in "\n".join(run.screen.lines)


def test_without_a_terminal_it_is_said_in_lines_and_dots_go_on(slow_index: Suite) -> None:
    result = slow_index.run("-n0")
    result.assert_outcomes(passed=4)
    said = [line for line in result.outlines if re.fullmatch(SAID, line)]
    assert len(said) >= 2
    assert sorted(set(said)) == sorted(said), "no line stands there twice"
    first = result.outlines.index(said[0])
    assert result.outlines[first : first + len(said)] == said
    assert not [line for line in result.outlines if "embedding" in line and line not in said]


@pytest.mark.parametrize("args", [("-q",), ("-p", "no:rag_harness.progress")], ids=" ".join)
def test_it_is_not_said_to_who_wants_quiet(slow_index: Suite, args: tuple[str, ...]) -> None:
    result = slow_index.run("-n0", *args)
    result.assert_outcomes(passed=4)
    assert "embedding" not in result.stdout.str()


def test_a_short_run_says_nothing(suite: Suite) -> None:
    assert "embedding" not in suite.run("-n0").stdout.str()


def test_a_recording_run_says_how_far_its_forecast_is(slow_index: Suite) -> None:
    conftest = slow_index.path / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}\nfrom rag_harness.runs import cost_estimate\ncost_estimate._TOGETHER = 1\n"
    )
    slow_index.set_table("profiles.mock.answer", model="embedded/extractive")
    result = slow_index.run("--rag-mode=record", "-n0")
    result.assert_outcomes(passed=4)
    end = next(place for place, line in enumerate(result.outlines) if line.startswith("rag: recording: 4 answers"))
    before = [line for line in result.outlines[:end] if re.fullmatch(SAID, line)]
    assert len(before) >= 2


def test_a_server_without_a_model_is_noted(suite: Suite) -> None:
    suite.set_table("profiles.mock.answer", model="embedded/extractive", base_url="http://127.0.0.1:9/v1")
    said = suite.run("-n0")
    said.stdout.fnmatch_lines(["rag: a server is named (http://127.0.0.1:9/v1) and none of its models: *"])


# The line below what pytest writes, against an emulated terminal.

LINE = "rag 1/9"


class Writer:
    """Writes to a screen, through the line where there is one."""

    def __init__(self, columns: int, rows: int, encoding: str = "utf-8") -> None:
        self.screen = Screen(columns, rows)
        self.ours, self.theirs = os.openpty()
        resize(self.theirs, columns, rows)
        self.file = os.fdopen(self.theirs, "w", encoding=encoding)

    def look(self) -> Screen:
        self.file.flush()
        while select.select([self.ours], [], [], 0)[0]:
            self.screen.feed(os.read(self.ours, 65536))
        return self.screen


@contextmanager
def terminal(columns: int = 20, rows: int = 5, encoding: str = "utf-8") -> Iterator[Writer]:
    writer = Writer(columns, rows, encoding)
    try:
        yield writer
    finally:
        writer.file.close()
        os.close(writer.ours)


def line_of(writer: Writer, text: str = LINE) -> StatusLine:
    line = StatusLine(writer.file, 0, lambda columns: text[: columns - 1])
    line.begin()
    return line


def test_dots_go_on_above_the_line() -> None:
    with terminal() as writer:
        line = line_of(writer)
        for _ in range(3):
            line.write(".")
        assert writer.look().lines == ["...", LINE]
        assert writer.look().column == 3
        line.write("\n")
        assert writer.look().lines == ["...", "", LINE]
        line.end()
        assert writer.look().lines == ["..."]


def test_at_the_foot_of_the_screen_it_scrolls() -> None:
    with terminal(rows=3) as writer:
        line = line_of(writer)
        for n in range(5):
            line.write(f"line {n}\n")
        assert writer.look().lines == [*(f"line {n}" for n in range(5)), "", LINE]
        line.end()
        assert writer.look().lines == [f"line {n}" for n in range(5)]


def test_where_the_cursor_hangs_at_the_edge_the_line_waits() -> None:
    with terminal(columns=10) as writer:
        line = line_of(writer)
        line.write("=" * 10)
        line.refresh()
        assert writer.look().lines == ["=" * 10]
        line.write("=")
        assert writer.look().lines == ["=" * 10, "=", LINE]
        line.end()


def test_a_dot_costs_a_byte_and_a_line_that_says_the_same_nothing() -> None:
    with terminal() as writer:
        line = line_of(writer)
        before = len(writer.look().raw)
        line.write(".")
        line.refresh()
        assert len(writer.look().raw) == before + 1
        line.end()


def test_colours_and_titles_take_no_room() -> None:
    with terminal() as writer:
        line = line_of(writer)
        line.write("\x1b[32m.\x1b[0m\x1b]9;4;1;50\x1b\\.")
        line.write("\n\x1b[31mF\x1b[0m")
        assert (writer.look().lines, writer.screen.column) == (["..", "F", LINE], 1)
        line.end()


def test_a_terminal_that_knows_ascii_only_gets_that() -> None:
    with terminal(encoding="ascii") as writer:
        line = line_of(writer, "rag ━━ 1/9")
        line.write("a\n")
        assert writer.look().lines == ["a", "", "rag ?? 1/9"]
        with pytest.raises(UnicodeEncodeError):
            line.write("é\n")
        line.write("e\n")
        assert writer.look().lines == ["a", "e", "", "rag ?? 1/9"]
        line.end()


def test_a_line_that_cannot_be_made_is_given_up() -> None:
    with terminal() as writer:
        line = StatusLine(writer.file, 0, lambda columns: str(1 // 0))
        line.begin()
        line.write("a\n")
        assert writer.look().lines == ["a"]
        line.end()
        line.end()


def test_a_terminal_that_grew_narrow() -> None:
    with terminal() as writer:
        line = line_of(writer, "rag 123456789")
        resize(writer.theirs, 8, 5)
        line.refresh()
        assert "rag 123" in writer.look().lines
        line.end()


def test_wide_characters_take_two_cells_and_do_not_straddle_the_edge() -> None:
    with terminal(columns=11) as writer:
        line = line_of(writer)
        line.write("漢字")
        line.write("\u0301.\n漢字")
        assert (writer.look().lines[1:], writer.screen.column) == (["漢字", LINE], 4)
        line.end()
    assert _place("漢字漢字漢", 9) == (1, 2)


# No wide ones: at the edge the emulator does not wrap them as terminals do.
PIECES = st.sampled_from(
    [".", "F", "\n", "..\n", "a longer name of a test", "é", "\x1b[32m.\x1b[0m", "x" * 9, "\r\n", "x\ry"]
)


@settings(max_examples=150)
@given(
    pieces=st.lists(st.tuples(PIECES, st.booleans()), max_size=25), columns=st.integers(8, 24), rows=st.integers(2, 6)
)
def test_what_is_left_is_what_was_written(pieces: list[tuple[str, bool]], columns: int, rows: int) -> None:
    with terminal(columns, rows) as plain, terminal(columns, rows) as writer:
        line = line_of(writer)
        for text, refreshed in pieces:
            plain.file.write(text)
            line.write(text)
            if refreshed:
                line.refresh()
        line.end()
        assert writer.look().lines == plain.look().lines
        assert writer.screen.column == plain.screen.column
