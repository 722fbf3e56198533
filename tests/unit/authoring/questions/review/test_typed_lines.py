"""Lines that are typed key by key, in a terminal of the test."""

from __future__ import annotations

import os
import pty
import tty
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from rag_harness.authoring.questions.review.typed_lines import typed_line


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where the test presses keys."""
    pressed, terminal = pty.openpty()
    tty.setcbreak(terminal)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: terminal))
    yield pressed
    for each in (pressed, terminal):
        os.close(each)


@pytest.mark.parametrize(
    ("pressed", "line"),
    [
        ("For how long?\n", "For how long?"),
        ("Wie lange? Ünï 漢字 🚀\n", "Wie lange? Ünï 漢字 🚀"),
        ("bd\x1b[Dc\x1b[D\x1b[Da\x1b[C\x1b[C\x1b[Ce\n", "abcde"),
        ("lon?\x1b[Dg\x1bOHso \x1b[F!\n", "so long?!"),
        ("two words \x17\x7f!\n", "two!"),
        ("gone\x15kept\n", "kept"),
        ("axb\x1b[D\x1b[D\x1b[3~\n", "ab"),
        ("a\x1b[A\x1b[1;5D\x1bOP\x1bf\x07\x00b\n", "ab"),
        ("one\ntwo, both pasted\n", "one two, both pasted"),
        ("\n", ""),
        ("a\x1b[D\x1b", None),
        ("\x1b", None),
        ("\x04", None),
        ("a\x04\n", "a"),
    ],
)
def test_keys(keys: int, pressed: str, line: str | None) -> None:
    os.write(keys, pressed.encode())
    assert typed_line("question\n  new: ", has_keys=True) == line


def test_a_letter_that_comes_in_two_parts(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.authoring.questions.review.typed_lines._MOST_BYTES", 1)
    os.write(keys, "ü漢\x1b[D\x1b[D\x1b[Da\n".encode())
    assert typed_line("", has_keys=True) == "aü漢"


def test_what_is_shown_begins_again_above_where_the_line_has_rows(
    keys: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setattr("rag_harness.authoring.questions.review.typed_lines._MOST_BYTES", 1)
    os.write(keys, b"seven and\x1b[D\x1b[D\n")
    assert typed_line("about\n> ", has_keys=True) == "seven and"
    first, *shown = capsys.readouterr().out.split("\x1b[J")
    assert first == "about\n\r"
    assert shown[0] == "> \r\x1b[2C\r"
    assert shown[8] == "> seven an \r\r\x1b[1A\r", "it fills a row: the cursor has begun the next"
    assert shown[9] == "> seven and\r\x1b[1C\x1b[1A\r"
    assert shown[-2:] == ["> seven and\x1b[1A\r\x1b[9C\r", "> seven and\r\x1b[1C\n"]
