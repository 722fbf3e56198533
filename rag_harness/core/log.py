"""The log file of a run, and the format of its lines."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES
from pathlib import Path
from traceback import StackSummary, TracebackException

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import terminal_line

# Format of log lines. Logged text cannot forge a line.

_INDENT = "    "


def traceback(text: str) -> str:
    """Return an indented traceback, so that no line of an error's message looks like a line of the log."""
    return "\n".join(f"{_INDENT}{terminal_line(each)}" for each in text.split("\n"))


class OneLine(logging.Formatter):
    """Formats a record as one line, with its traceback below."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return terminal_line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        told = TracebackException(*ei)  # type: ignore[misc]
        for each in _with_causes(told):
            each.stack = _without_marks(each.stack)
        return traceback("".join(told.format()).removesuffix("\n"))


def _with_causes(told: TracebackException) -> Iterator[TracebackException]:
    waiting: list[TracebackException | None] = [told]
    while waiting:
        each = waiting.pop()
        if each is not None:
            yield each
            waiting += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]


def _without_marks(stack: StackSummary) -> StackSummary:
    """Leave out which part of each line failed.

    Python parses the line to mark the part. Trials log in a thread, and in Python 3.11 all threads share the parser's
    count of its depth. pytest may parse a failed test at that moment, and would stop the run with "SystemError: AST
    constructor recursion depth mismatch" (https://github.com/pytest-dev/pytest/issues/10763).
    """
    return StackSummary.from_list([(frame.filename, frame.lineno or 0, frame.name, frame.line) for frame in stack])


# The log file of a run.
#
# The logger is outside ``logging``'s tree on purpose. pytest attaches its handlers to every logger of the tree, even
# without propagation, and would print the debug lines and tracebacks of each trial below a failed test.

_STUDY, _STUDY_LOG = frozenset(("e1", "e2", "e3", "e4")), "e2_to_e4"
_MOST_NAMES = 3
_UNSAFE = re.compile(r"[^\w.-]+")
_WORKER, _MAIN = "PYTEST_XDIST_WORKER", "main"

log: logging.Logger = logging.Logger("rag_harness", logging.DEBUG)
log.addHandler(logging.NullHandler())

_handlers: list[logging.Handler] = []


class _LogFile(logging.FileHandler):
    """A log file that skips lines when the disk is full. The code that writes results reports the full disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in logging
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()

    def close(self) -> None:
        with suppress(OSError):
            super().close()


class _BufferHandler(logging.Handler):
    """Stores lines until the log has its name. The subject of a run is known when its tests are collected."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def open_log(folder: Path, name: str = "") -> None:
    """Open the log ``name`` in ``folder``; without a name, lines wait for ``name_log``.

    All processes of a run append to the same file.

    Raises:
        SettingsError: the folder or the file cannot be written.
    """
    close_log()
    with _told_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    _add(_BufferHandler(folder))
    if name:
        name_log(name)


def name_log(name: str) -> None:
    """Give the log its name, and write the lines that have waited for it. Nothing is done for one that has a name.

    Raises:
        SettingsError: the file cannot be written.
    """
    for waiting in [each for each in _handlers if isinstance(each, _BufferHandler)]:
        with _told_of(waiting.folder):
            # A lone surrogate in an error's message must not make logging print a traceback on the console.
            file = _LogFile(waiting.folder / f"{name}.log", encoding="utf-8", errors="backslashreplace")
        process = os.environ.get(_WORKER, _MAIN)
        file.setFormatter(OneLine(f"%(asctime)s {process} %(levelname)s %(message)s"))
        close_log()
        _add(file)
        for record in waiting.records:
            file.handle(record)


def log_name(suites: Collection[str]) -> str:
    """Return the name of the log of a run: the study's own, or the names of the experiments that it asks."""
    if not _STUDY.isdisjoint(suites):
        return _STUDY_LOG
    names = sorted(_UNSAFE.sub("_", suite) for suite in suites)
    more = [f"and_{len(names) - _MOST_NAMES}_more"] if len(names) > _MOST_NAMES else []
    return "_".join([*names[:_MOST_NAMES], *more])


@contextmanager
def _told_of(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError(
            f"No log can be written to {folder}: {error.strerror}. Name another folder: --rag-logs DIR or RAG_LOGS."
        ) from error


def _add(handler: logging.Handler) -> None:
    log.addHandler(handler)
    _handlers.append(handler)


def is_worker() -> bool:
    """Whether this process is one of several that read the same data, so that another one logs the findings."""
    return os.environ.get(_WORKER, _MAIN) != _MAIN


def close_log() -> None:
    """Close the file; lines that still wait for its name are dropped."""
    while _handlers:
        handler = _handlers.pop()
        log.removeHandler(handler)
        handler.close()
