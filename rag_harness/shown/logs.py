"""Format of log lines. Logged text cannot forge a line."""

from __future__ import annotations

import logging

from rag_harness.shown.terminal import line

_INDENT = "    "


def traceback(text: str) -> str:
    """Return an indented traceback, so that no line of an error's message looks like a line of the log."""
    return "\n".join(f"{_INDENT}{line(each)}" for each in text.split("\n"))


class OneLine(logging.Formatter):
    """Formats a record as one line, with its traceback below."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return traceback(super().formatException(ei))  # type: ignore[arg-type]
