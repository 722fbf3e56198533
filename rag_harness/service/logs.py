"""The log of a service, without keys, written by a thread of its own."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from queue import Full, Queue
from threading import Thread
from typing import Any, Literal, TextIO

import structlog

from rag_harness.core.escaping import terminal_line
from rag_harness.core.log import log as harness_log
from rag_harness.core.log import traceback
from rag_harness.core.settings.secrets import KEY

# Writes log lines to a stream in a thread of its own, so that logging never waits for a slow reader.

_MOST_WAITING = 10_000
_PATIENCE = 2.0


class LogLines(logging.Handler):
    """Formats in the calling thread, where the trace id is known, and writes in its own. Drops lines when full."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self.dropped: int = 0
        self._stream = stream
        self._queue: Queue[str | None] = Queue(_MOST_WAITING)
        self._thread = Thread(target=self._write_all, name="rag-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._queue.put_nowait(self.format(record))
        except Full:
            self.dropped += 1
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write the waiting lines, within a short time at most."""
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_PATIENCE)
            self._thread.join(_PATIENCE)
        super().close()

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            stream = self._stream or sys.stderr
            # An error here cannot be reported anywhere.
            with suppress(OSError, ValueError):
                stream.write(f"{line}\n")
                if self._queue.empty():
                    stream.flush()


NOT_LOGGED = "[not logged]"
_NAMES = {"authorization", "proxy_authorization", "x_api_key", "api_key", "cookie", "set_cookie", "password", "secret"}
_KEYS = re.compile(
    KEY.pattern + r"|(?i:\b(?:rh_|sk-)[\w-]{16,}"  # a log hides more than a setting refuses: also what has no digit
    r"|\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_DEEPEST = 4


def without_secrets(value: Any, depth: int = 0) -> Any:
    """Return ``value`` without texts that look like keys, and without values under names of keys."""
    if isinstance(value, str):
        return _KEYS.sub(NOT_LOGGED, value)
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {name: _under(name, inner, depth) for name, inner in value.items()}
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [without_secrets(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float)) else _KEYS.sub(NOT_LOGGED, str(value))


def _under(name: Any, inner: Any, depth: int) -> Any:
    is_secret = str(name).lower().replace("-", "_") in _NAMES
    return NOT_LOGGED if is_secret else without_secrets(inner, depth + 1)


# The log of a service: one JSON object a line, with the id of its trace; or lines for people.
#
# All logs come out in one form: the harness's own, uvicorn's, every library's, and Python's warnings.

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
            event[name] = traceback(value) if name == "exception" else terminal_line(value)
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
