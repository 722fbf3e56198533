"""Lines of a log: none can be forged by what is logged."""

from __future__ import annotations

import logging

from rag_harness.shown.terminal import line

_INDENT = "    "


def traceback(text: str) -> str:
    """Return a traceback, indented: a line of an error's message must not look like a line of the log."""
    return "\n".join(f"{_INDENT}{line(each)}" for each in text.split("\n"))


class OneLine(logging.Formatter):
    """Writes a record as a line, and its traceback below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return traceback(super().formatException(ei))  # type: ignore[arg-type]
