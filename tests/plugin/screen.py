"""A terminal to run pytest in: a pseudo-terminal, and an emulator that says what a person would see."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen

import pyte

SET_BY_PYTESTER = ("PY_COLORS", "PYTEST_ADDOPTS")


class Screen:
    """A screen of ``columns`` and ``rows`` that remembers what scrolled out of it."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._columns = columns
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""

    def feed(self, data: bytes) -> None:
        self.raw += data
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """All lines from the first on, without blanks and empty lines at the end."""
        above = ["".join(line[x].data for x in range(self._columns)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display]).rstrip("\n").split("\n")

    @property
    def column(self) -> int:
        return int(self._screen.cursor.x)

    @property
    def cursor_is_shown(self) -> bool:
        return not self._screen.cursor.hidden


def resize(terminal: int, columns: int, rows: int) -> None:
    """Set the size of a pseudo-terminal."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class PlayedRun:
    """pytest run in a terminal; ``progress`` has every line of progress that was seen, in its order."""

    def __init__(self, folder: Path, *args: str, env: Mapping[str, str] = {}, stop: bool = False, columns: int = 80):
        """Run it to its end; with ``stop``, press Ctrl-C when one trial is done."""
        self.screen, self.progress = Screen(columns), list[str]()
        ours, theirs = os.openpty()
        resize(theirs, columns, 24)
        whole = {name: value for name, value in os.environ.items() if name not in SET_BY_PYTESTER}
        command = [sys.executable, "-m", "pytest", *args]
        with Popen(
            command,
            cwd=folder,
            env={**whole, "TERM": "xterm-256color", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            while data := _read(ours, process):
                self.screen.feed(data)
                seen = [line for line in self.screen.lines[-2:] if re.match(r"rag .*\d+/\d+", line)]
                self.progress += seen
                if stop and "1/" in "".join(seen):
                    process.send_signal(signal.SIGINT)
                    stop = False
        os.close(ours)
        self.status = process.returncode


def _read(terminal: int, process: Popen[bytes]) -> bytes:
    if not select.select([terminal], [], [], 120)[0]:
        process.kill()
        raise TimeoutError("pytest said nothing for two minutes")
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody holds the other end any more
        return b""
