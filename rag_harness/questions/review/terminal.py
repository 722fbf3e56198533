"""A terminal: keys one at a time, lines where words are asked for, an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError, SettingsError
from rag_harness.questions.review.fields import changes_of, text_of
from rag_harness.questions.review.rows import Row

_KEPT = {"\x1b[C": "right", "\x1b[D": "left", "\x1b[A": "up", "\x1b[B": "down", "\x1b[6~": "pagedown"}
_MOST_BYTES = 32


def check_terminal() -> None:
    """Make sure that somebody sits there.

    Raises:
        SettingsError: input or output is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError(
            "A review takes keys, and this is no terminal. Run it in one, or review as a page: --page review.html"
        )


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Have keys come as they are pressed; without termios a line at a time."""
    try:
        import termios
        import tty
    except ImportError:
        yield
        return
    number = sys.stdin.fileno()
    usual = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, usual)


def read_key() -> str:
    """Return the next key by its letter or name; "q" where input has ended."""
    try:
        import termios  # noqa: F401
    except ImportError:
        return _key_of_line()
    with one_at_a_time():
        pressed = os.read(sys.stdin.fileno(), _MOST_BYTES).decode("utf-8", "replace")
    return _KEPT.get(pressed, pressed[:1]) if pressed not in ("", "\x04") else "q"


def _key_of_line() -> str:
    try:
        return input("key, then enter: ")[:1] or "n"
    except EOFError:
        return "q"


def ask(question: str) -> str:
    """Return a line that somebody writes; empty where they end input or interrupt it."""
    try:
        return input(question)
    except (EOFError, KeyboardInterrupt):
        return ""


def edit(row: Row) -> Mapping[str, Any] | None:
    """Let somebody change a question in ``$VISUAL`` or ``$EDITOR``, or field by field where there is none.

    Raises:
        DataError: the editor cannot be run, or what it left cannot be read.
    """
    program = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    changes = changes_of(_in_editor(program, text_of(row))) if program else _by_lines(row, ask)
    return changes or None


def _in_editor(program: str, text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="review-") as folder:
        file = Path(folder, "question.txt")
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        try:
            subprocess.run([*shlex.split(program), str(file)], check=True)
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise DataError(f"{program} could not edit it ({error}). Name another program in EDITOR.") from error


def _by_lines(row: Row, said: Callable[[str], str]) -> dict[str, Any]:
    """Ask for each field; an empty line leaves it as it is."""
    changes = changes_of(text_of(row))
    for name, about in (("query_type", "kind"), ("query", "question"), ("ground_truth", "answer")):
        changes[name] = said(f"{about}, now: {changes[name]}\n  enter leaves it: ").strip() or changes[name]
    for each in changes["evidence"]:
        each["quote"] = said(f"quote of {each['filename']}, now: {each['quote']}\n  enter leaves it: ") or each["quote"]
    return changes
