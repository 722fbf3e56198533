from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rag_harness.core.log import log
from rag_harness.service import monitoring
from rag_harness.service.monitoring import NOT_LOGGED, Format, LogLines, log_context, logging_to, without_secrets

KEY = "rh_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"


@contextmanager
def logged(level: str = "info", shape: Format = "json") -> Iterator[list[Any]]:
    """Lines that the block logs, read after it."""
    stream, lines = io.StringIO(), list[Any]()
    with logging_to(stream, level, shape):
        yield lines
    text = stream.getvalue().splitlines()
    lines += [json.loads(line) for line in text] if shape == "json" else text


def test_the_harness_and_the_libraries_log_one_way() -> None:
    with logged() as lines:
        log.info("Ready on port %d", 8000)
        logging.getLogger("some.library").warning("oh: %s", "well")
        logging.getLogger("some.library").debug("not asked for")
    assert [(line["event"], line["level"], line["logger"]) for line in lines] == [
        ("Ready on port 8000", "info", "rag_harness"),
        ("oh: well", "warning", "some.library"),
    ]
    assert all(line["timestamp"].endswith("Z") for line in lines)


def test_every_line_of_a_question_has_its_trace_id_and_no_other_questions() -> None:
    async def asking(trace_id: str) -> None:
        with log_context(trace_id=trace_id):
            await asyncio.sleep(0)
            log.info("in %s", trace_id)

    async def both() -> None:
        await asyncio.gather(asking("a"), asking("b"))
        log.info("outside")

    with logged() as lines:
        asyncio.run(both())
    assert {line["event"]: line.get("trace_id") for line in lines} == {"in a": "a", "in b": "b", "outside": None}


def test_uvicorns_access_log_becomes_fields_without_what_stands_behind_the_path() -> None:
    access = logging.getLogger("uvicorn.access")
    access.propagate = False
    with logged() as lines, log_context(trace_id="t"):
        access.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:55", "GET", f"/documents?key={KEY}", "1.1", 200)
        logging.getLogger("uvicorn.error").info("Started")
    access.propagate = True
    first, second = lines
    assert {name: first[name] for name in ("event", "client", "method", "path", "status", "trace_id")} == {
        "event": "request",
        "client": "127.0.0.1",
        "method": "GET",
        "path": "/documents",
        "status": 200,
        "trace_id": "t",
    }
    assert "positional_args" not in first
    assert (second["event"], second["logger"]) == ("Started", "uvicorn.error")


def test_warnings_of_python_are_logged() -> None:
    with logged() as lines, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old ways", UserWarning, stacklevel=1)
    assert "old ways" in lines[0]["event"]
    assert lines[0]["logger"] == "py.warnings"


def test_a_traceback_is_one_line_without_the_values_of_variables() -> None:
    with logged() as lines:
        hidden = f"what the user asked {len(lines)}"
        try:
            raise ValueError("no" if hidden else "yes")
        except ValueError:
            log.exception("It broke")
    assert len(lines) == 1
    assert "ValueError: no" in lines[0]["exception"]
    assert hidden not in lines[0]["exception"]


@pytest.mark.parametrize("shape", ["json", "text"])
def test_no_key_is_logged_wherever_it_stands(shape: Format) -> None:
    with logged(shape=shape) as lines, log_context(authorization=f"Bearer {KEY}", note=f"key {KEY}"):
        log.info("Found %s", KEY)
        log.info("Authorization: Bearer abcdef123456")
        log.info("http://somebody:hunter2@example.org/")
        try:
            raise ValueError(KEY)
        except ValueError:
            log.exception("failed")
    text = str(lines)
    assert [word for word in (KEY, "abcdef123456", "hunter2") if word in text] == []
    assert NOT_LOGGED in text


def test_a_line_of_text_cannot_be_made_to_look_like_two() -> None:
    with logged(shape="text") as lines:
        log.warning("one\nERROR two\x1b[2J\u2028three")
    assert len(lines) == 1
    assert "one\\nERROR two\\x1b[2J\\u2028three" in lines[0]
    assert "warning" in lines[0]


def test_a_line_of_json_cannot_either_and_half_a_character_is_no_trouble() -> None:
    with logged() as lines:
        log.warning("one\ntwo \ud83d")
    assert lines[0]["event"] == "one\ntwo \ud83d"


def test_the_level_is_that_of_the_option() -> None:
    with logged("warning") as lines:
        log.info("quiet")
        log.warning("loud")
    assert [line["event"] for line in lines] == ["loud"]


def test_what_was_set_up_before_is_set_up_again() -> None:
    def state() -> list[object]:
        watched = [logging.getLogger(), log, logging.getLogger("uvicorn.access"), logging.getLogger("httpx2")]
        return [(list(one.handlers), one.level, one.propagate) for one in watched]

    before = state()
    with logged():
        assert state() != before
    assert state() == before
    assert "rag-log" not in {thread.name for thread in threading.enumerate()}


class _Stuck(io.StringIO):
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait()
        return super().write(text)


def test_who_logs_never_waits_for_who_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "_MOST_WAITING", 100)
    stream = _Stuck()
    with logging_to(stream):
        for number in range(200):
            log.info("line %d", number)
        handler = log.handlers[0]
        assert isinstance(handler, LogLines)
        # One line is held by who writes; the queue has the next hundred.
        assert handler.dropped in {99, 100}
        stream.free.set()
    assert stream.getvalue().count("\n") == 200 - handler.dropped


def test_a_stream_that_was_closed_ends_nothing() -> None:
    stream = io.StringIO()
    with logging_to(stream):
        stream.close()
        log.info("nobody reads this")


def test_what_stands_under_the_name_of_a_secret_is_gone_at_any_depth() -> None:
    found = without_secrets({"headers": {"X-API-Key": "abc", "accept": "*/*"}, "list": [KEY], "n": 3, "none": None})
    assert found == {"headers": {"X-API-Key": NOT_LOGGED, "accept": "*/*"}, "list": [NOT_LOGGED], "n": 3, "none": None}
