"""The log file of a run.

The logger is outside ``logging``'s tree on purpose. pytest attaches its handlers to every logger of the tree, even
without propagation, and would print the debug lines and tracebacks of each trial below a failed test.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path

from rag_harness.errors import SettingsError
from rag_harness.shown.logs import OneLine

LOG_NAME = "e2_to_e4.log"
_WORKER, _MAIN = "PYTEST_XDIST_WORKER", "main"

log: logging.Logger = logging.Logger("rag_harness", logging.DEBUG)
log.addHandler(logging.NullHandler())

_files: list[logging.FileHandler] = []


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


def open_log(folder: Path) -> None:
    """Open the log file in ``folder``. All processes of a run append to the same file.

    Raises:
        SettingsError: the folder or the file cannot be written.
    """
    close_log()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A lone surrogate in an error's message must not make logging print a traceback on the console.
        handler = _LogFile(folder / LOG_NAME, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SettingsError(
            f"No log can be written to {folder}: {error.strerror}. Name another folder: --rag-logs DIR or RAG_LOGS."
        ) from error
    process = os.environ.get(_WORKER, _MAIN)
    handler.setFormatter(OneLine(f"%(asctime)s {process} %(levelname)s %(message)s"))
    log.addHandler(handler)
    _files.append(handler)


def is_worker() -> bool:
    """Whether this process is one of several that read the same data, so that another one logs what was found."""
    return os.environ.get(_WORKER, _MAIN) != _MAIN


def close_log() -> None:
    """Close the file."""
    while _files:
        handler = _files.pop()
        log.removeHandler(handler)
        handler.close()
