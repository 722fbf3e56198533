"""The log of a service: one JSON object a line, with the id of its trace; or lines for people.

All logs come out in one form: the harness's own, uvicorn's, every library's, and Python's warnings.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Literal, TextIO

import structlog

from rag_harness.files.log import log as harness_log
from rag_harness.service.observing.log_lines import LogLines
from rag_harness.service.observing.secrets_out import without_secrets
from rag_harness.shown.logs import traceback
from rag_harness.shown.terminal import line

Format = Literal["json", "text"]
LogEvent = MutableMapping[str, Any]
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access")
_ACCESS = "uvicorn.access"
_TALKATIVE = ("httpx", "httpx2", "httpcore", "openai", "urllib3")
"""Libraries that log each of their requests at level info; the trace already has these."""


@contextmanager
def logging_to(stream: TextIO | None = None, level: str = "info", shape: Format = "json") -> Iterator[None]:
    """Log to ``stream`` until the end of the block; then restore the earlier set-up.

    Args:
        stream: None is standard error.
        level: the lowest level that is logged.
        shape: ``json``, or ``text`` for people.
    """
    lines = LogLines(stream)
    lines.setFormatter(_formatter(shape, stream or sys.stderr))
    lines.setLevel(level.upper())
    undo = [_take_over(logging.getLogger(), lines, level), _take_over(harness_log, lines, level)]
    undo += [_quiet(name) for name in _TALKATIVE] + [_through_the_root(name) for name in _UVICORN]
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for step in reversed(undo):
            step()
        lines.close()


@contextmanager
def log_context(**known: str) -> Iterator[None]:
    """Add fields, such as the trace id, to every line that is logged in the block and in what it awaits."""
    with structlog.contextvars.bound_contextvars(**known):
        yield


def _formatter(shape: Format, stream: TextIO) -> logging.Formatter:
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _request,
    ]
    after: list[Any] = [structlog.processors.format_exc_info, _no_secrets]
    if shape == "text":
        colors, plain = stream.isatty(), structlog.dev.plain_traceback
        after += [_one_line, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    else:
        after.append(structlog.processors.JSONRenderer())
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        pass_foreign_args=True,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
    )


def _request(_: Any, __: str, event: LogEvent) -> LogEvent:
    """Turn a line of uvicorn's access log into fields. The query string after the path is left out."""
    said = event.pop("positional_args", ())
    event.pop("color_message", None)
    if event.get("logger") == _ACCESS and isinstance(said, tuple) and len(said) == 5:
        client, method, path, _version, status = said
        asked = {"client": str(client).rpartition(":")[0], "method": method, "path": str(path).partition("?")[0]}
        event.update(asked, event="request", status=status)
    return event


def _no_secrets(_: Any, __: str, event: LogEvent) -> Mapping[str, Any]:
    found: Mapping[str, Any] = without_secrets(dict(event))
    return found


def _one_line(_: Any, __: str, event: LogEvent) -> LogEvent:
    """Escape characters that would move the cursor or begin a new line. JSON does this anyway."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = traceback(value) if name == "exception" else line(value)
    return event


def _take_over(logger: logging.Logger, lines: LogLines, level: str) -> Callable[[], None]:
    handlers, before = list(logger.handlers), logger.level
    logger.handlers = [lines]
    logger.setLevel(level.upper())

    def undo() -> None:
        logger.handlers = handlers
        logger.setLevel(before)

    return undo


def _quiet(name: str) -> Callable[[], None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.WARNING)
    return lambda: logger.setLevel(before)


def _through_the_root(name: str) -> Callable[[], None]:
    logger = logging.getLogger(name)
    handlers, propagate, before = list(logger.handlers), logger.propagate, logger.level
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)

    def undo() -> None:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(before)

    return undo
