"""The log of a run: a file and nothing else.

The logger is kept out of ``logging``'s tree on purpose: pytest attaches its handlers to every logger there, propagating
or not, and would print each trial's debug lines and tracebacks below a failed test.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

LOG_NAME = "e2_to_e4.log"

log = logging.Logger("rag_harness", logging.DEBUG)
log.addHandler(logging.NullHandler())

_files: list[logging.FileHandler] = []


def open_log(folder: Path) -> None:
    """Write to the log file in ``folder`` from now on. Every process of a run appends to the same file."""
    close_log()
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / LOG_NAME, encoding="utf-8", delay=True)
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    handler.setFormatter(logging.Formatter(f"%(asctime)s {process} %(levelname)s %(message)s"))
    log.addHandler(handler)
    _files.append(handler)


def close_log() -> None:
    """Close the file."""
    while _files:
        handler = _files.pop()
        log.removeHandler(handler)
        handler.close()
