"""Format of log lines. Logged text cannot forge a line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from traceback import StackSummary, TracebackException

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
