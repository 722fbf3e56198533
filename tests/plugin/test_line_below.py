"""The line below what pytest writes, against an emulated terminal."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.frontends.pytest_plugin.progress import StatusLine, _place
from tests.plugin.screen import Screen, resize

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
