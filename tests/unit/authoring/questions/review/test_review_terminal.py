"""Keys and edits where there is no terminal to try them on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.authoring.questions.review.fields import changes_of, text_of
from rag_harness.authoring.questions.review.review_terminal import Keyboard
from rag_harness.errors import DataError
from tests.unit.authoring.questions.review.drafts import HELD, ROWS


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that somebody writes; then they end input."""
    lines: list[str] = []

    def answer(_: str) -> str:
        if not lines:
            raise EOFError
        return lines.pop(0)

    monkeypatch.setattr("builtins.input", answer)
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    return lines


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyboard]:
    """A keyboard on a system that has no termios."""
    monkeypatch.setitem(sys.modules, "termios", None)
    with Keyboard() as keyboard:
        yield keyboard


def editor(at: Path, code: str) -> str:
    """An editor that runs code on the text ``t`` of its file."""
    program = at / "editor.py"
    program.write_text(
        f"import sys, pathlib\np = pathlib.Path(sys.argv[1])\nt = p.read_text()\n{code}\np.write_text(t)\n"
    )
    return f"{sys.executable} {program}"


def test_without_termios_a_key_is_the_first_letter_of_a_line(says: list[str], keyboard: Keyboard) -> None:
    says += ["accept", ""]
    assert [keyboard.read() for _ in range(3)] == ["a", "n", "q"]


def test_without_an_editor_each_field_is_asked_for(says: list[str], keyboard: Keyboard) -> None:
    says += ["", "For how long?", "", "Island parcels"]
    assert keyboard.edit(ROWS[0]) == {
        **changes_of(text_of(ROWS[0])),
        "query": "For how long?",
        "evidence": [{"filename": "delivery.md", "quote": "Island parcels"}],
    }
    says += ["", "For how long?"]
    assert keyboard.edit(ROWS[0]) is None, "who ends input changes nothing, not even what was typed before"


def test_keys_that_are_no_text_are_no_part_of_a_line(says: list[str], keyboard: Keyboard) -> None:
    """A system without readline hands them over as they come."""
    says += ["", "For\x1b[D\x1b[1;5C how\x1bOP long?\x07", "", ""]
    changes = keyboard.edit(ROWS[0])
    assert changes is not None
    assert changes["query"] == "For how long?"
    says += ["", "For how long?", "\x1b"]
    assert keyboard.edit(ROWS[0]) is None
    says += ["odd\x1b"]
    assert keyboard.ask("why? ") == ""


def test_an_editor(keyboard: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "VISUAL", editor(tmp_path, "t = t.replace('for 9', 'for').replace('9 days.', 'Neun Tage – ja.')")
    )
    changes = keyboard.edit(ROWS[0])
    assert changes is not None
    assert (changes["ground_truth"], changes["evidence"][0]["quote"]) == (
        "Neun Tage – ja.",
        HELD.replace("for 9", "for"),
    )
    monkeypatch.setenv("VISUAL", editor(tmp_path, "t = ''"))
    assert keyboard.edit(ROWS[0]) is None


def test_what_was_written_is_not_lost_by_a_slip(
    keyboard: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, "t = t.replace('=== answer', '== answer').replace('9 days', 'Ten')"))
    with pytest.raises(DataError, match=r"Missing: answer.*e goes on with what you wrote"):
        keyboard.edit(ROWS[0])
    monkeypatch.setenv("VISUAL", editor(tmp_path, "t = t.replace('== answer', '=== answer')"))
    changes = keyboard.edit(ROWS[0])
    assert changes is not None
    assert changes["ground_truth"] == "Ten."


@pytest.mark.parametrize("program", ["no-such-editor", "'unbalanced", f"{sys.executable} -c 'raise SystemExit(3)'"])
def test_an_editor_that_fails_is_named(keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("VISUAL", program)
    with pytest.raises(DataError, match=r"could not edit it .* Name another program in EDITOR"):
        keyboard.edit(ROWS[0])
