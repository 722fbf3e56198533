"""The terminal of a review: reads keys and lines, and starts an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_harness.authoring.questions.review.fields import changes_of, text_of
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.authoring.questions.review.typed_lines import SEQUENCE, typed_line
from rag_harness.errors import DataError, SettingsError
from rag_harness.shown.terminal import ask

_NAMED = {"A": "up", "B": "down", "C": "right", "D": "left", "5~": "pageup", "6~": "pagedown"}
_MOST_BYTES = 1_024
_ASKED_FOR = {"query_type": "kind", "query": "question", "standalone": "question alone", "ground_truth": "answer"}
_OTHER_WORDS = "  other words, enter to leave it, Esc to change nothing at all: "
_ENDED = ("", "\x03", "\x04")


def check_terminal() -> None:
    """Check that a person uses the terminal.

    Raises:
        SettingsError: input or output is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError(
            "A review takes keys, and this is no terminal. Run it in one, or review as a page: --page review.html"
        )


class Keyboard:
    """Reads single keys inside its ``with``. On a system without termios it reads the first letter of a line."""

    def __init__(self) -> None:
        self._usual: list[Any] | None = None
        self._not_read: dict[str, str] = {}

    def __enter__(self) -> Keyboard:
        try:
            import termios
            import tty
        except ImportError:
            return self
        self._usual = termios.tcgetattr(sys.stdin.fileno())
        tty.setcbreak(sys.stdin.fileno())
        return self

    def __exit__(self, *_: object) -> None:
        self._set()

    def _set(self) -> None:
        if self._usual is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._usual)

    @property
    def _has_keys(self) -> bool:
        """Whether each key comes at once."""
        return self._usual is not None

    def read(self) -> str:
        """Return the next key, its letter or its name; "q" where input has ended.

        If several keys come at once, as when text is pasted by mistake, only the first counts.
        """
        if not self._has_keys:
            return _key_of_line()
        try:
            pressed = os.read(sys.stdin.fileno(), _MOST_BYTES).decode("utf-8", "replace")
        except (KeyboardInterrupt, OSError):  # the terminal was closed
            return "q"
        if pressed in _ENDED:
            return "q"
        sequence = SEQUENCE.match(pressed)
        return _NAMED.get(sequence[0][2:], sequence[0]) if sequence else pressed[0]

    def ask(self, question: str) -> str:
        """Return a line from the person; empty if they give it up."""
        return typed_line(question, self._has_keys) or ""

    def edit(self, row: QueryRow) -> Mapping[str, Any] | None:
        """Let the person change a question in ``$VISUAL`` or ``$EDITOR``; without an editor, field by field.

        Raises:
            DataError: the editor cannot be run, or what it left cannot be read.
        """
        program = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not program:
            return self._by_lines(row)
        name = row["query_id"]
        self._set()
        try:
            text = _in_editor(program, self._not_read.pop(name, "") or text_of(row))
        finally:
            self.__enter__()
        try:
            return changes_of(text) or None
        except DataError as error:
            # The person gets their text again. So a mistake in a separating line loses nothing.
            self._not_read[name] = text
            raise DataError(f"{error} e goes on with what you wrote.") from error

    def _by_lines(self, row: QueryRow) -> dict[str, Any] | None:
        changes = changes_of(text_of(row))
        lines = [
            *((changes, name, about) for name, about in _ASKED_FOR.items() if name in changes),
            *((each, "quote", f"quote of {each['filename']}") for each in changes["evidence"]),
        ]
        for fields, name, about in lines:
            now = fields[name]
            typed = typed_line(f"{about}: {now}\n{_OTHER_WORDS}", self._has_keys)
            if typed is None:
                return None
            fields[name] = typed.strip() or now
        return changes


def _key_of_line() -> str:
    try:
        return ask("a key, then enter: ")[:1] or "n"
    except (EOFError, KeyboardInterrupt):
        return "q"


def _in_editor(program: str, text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="review-") as folder:
        file = Path(folder, "question.txt")
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        try:
            subprocess.run([*shlex.split(program), str(file)], check=True)
            return file.read_bytes().decode("utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise DataError(f"{program} could not edit it ({error}). Name another program in EDITOR.") from error
