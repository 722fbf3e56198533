"""The terminal of a review: reads keys and lines, and starts an editor."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_harness.authoring.questions.review.fields import changes_of, text_of
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.errors import DataError, SettingsError
from rag_harness.shown.terminal import ask

_SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]")
_NAMED = {"A": "up", "B": "down", "C": "right", "D": "left", "5~": "pageup", "6~": "pagedown"}
_MOST_BYTES = 1_024
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

    def read(self) -> str:
        """Return the next key, its letter or its name; "q" where input has ended.

        If several keys come at once, as when text is pasted by mistake, only the first counts.
        """
        if self._usual is None:
            return _key_of_line()
        try:
            pressed = os.read(sys.stdin.fileno(), _MOST_BYTES).decode("utf-8", "replace")
        except (KeyboardInterrupt, OSError):  # the terminal was closed
            return "q"
        if pressed in _ENDED:
            return "q"
        sequence = _SEQUENCE.match(pressed)
        return _NAMED.get(sequence[0][2:], sequence[0]) if sequence else pressed[0]

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Read whole lines, which can be corrected, inside this ``with``."""
        self._set()
        try:
            yield
        finally:
            self.__enter__()

    def ask(self, question: str) -> str:
        """Return a line from the person; empty if they interrupt it."""
        with self.lines():
            try:
                return ask(question)
            except (EOFError, KeyboardInterrupt):
                return ""

    def edit(self, row: QueryRow) -> Mapping[str, Any] | None:
        """Let the person change a question in ``$VISUAL`` or ``$EDITOR``; without an editor, field by field.

        Raises:
            DataError: the editor cannot be run, or what it left cannot be read.
        """
        program = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not program:
            return self._by_lines(row)
        name = row["query_id"]
        with self.lines():
            text = _in_editor(program, self._not_read.pop(name, "") or text_of(row))
        try:
            return changes_of(text) or None
        except DataError as error:
            # The person gets their text again. So a mistake in a separating line loses nothing.
            self._not_read[name] = text
            raise DataError(f"{error} e goes on with what you wrote.") from error

    def _by_lines(self, row: QueryRow) -> dict[str, Any]:
        changes = changes_of(text_of(row))
        for name, about in (("query_type", "kind"), ("query", "question"), ("ground_truth", "answer")):
            changes[name] = self._asked(about, changes[name])
        for each in changes["evidence"]:
            each["quote"] = self._asked(f"quote of {each['filename']}", each["quote"])
        return changes

    def _asked(self, about: str, now: str) -> str:
        return self.ask(f"{about}: {now}\n  other words, or enter to leave it: ").strip() or now


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
