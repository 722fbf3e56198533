"""``logs/e2_to_e4.log``: milestones, one line a query, errors with tracebacks. A file only: the console is pytest's."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.settings import Settings

LOG_NAME = "e2_to_e4.log"


def open_log(settings: Settings) -> None:
    """Send this package's log records to the run's file."""
    folder = settings.path(settings.logs)
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / LOG_NAME, encoding="utf-8", delay=True)
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    handler.setFormatter(logging.Formatter(f"%(asctime)s {process} %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("rag_harness")
    close_log()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    # Otherwise pytest would show every debug line of every trial below a failed test.
    logger.propagate = False


def close_log() -> None:
    """Close the file again."""
    logger = logging.getLogger("rag_harness")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True
