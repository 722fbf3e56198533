"""Record and replay of the HTTP calls that an app under test makes while it is set up and while it answers a trial.

Other calls of the process are left alone. A trial is known by its context, as its spans are; threads that an app starts
are given it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

from rag_harness.errors import RecordingMissError, RecordingWriteError
from rag_harness.models.anew import seed_shift
from rag_harness.models.recording.cassettes import Cassettes, CleanedRequest, Recorded
from rag_harness.models.recording.playback import Playback

_of_trial: ContextVar[AppCalls | None] = ContextVar("app_calls", default=None)


class AppCalls:
    """The HTTP calls of one trial.

    Attributes:
        refused: why a call was refused, or its answer not kept; None where neither happened. SDKs hide such errors
            behind "Connection error", and apps go on without an answer.
    """

    def __init__(self) -> None:
        self.refused: RecordingMissError | RecordingWriteError | None = None
        self._replayed: list[tuple[CleanedRequest, Recorded]] = []
        self._calls_made = 0

    @property
    def recorded_at(self) -> str | None:
        """When the oldest was recorded, empty where one has no date; None unless all were replayed."""
        if self._calls_made or not self._replayed:
            return None
        return min(found.recorded_at for _, found in self._replayed)

    @property
    def oldest(self) -> str:
        """When the oldest of those that were replayed was recorded; empty where none was, or none has a date."""
        return min(filter(None, (found.recorded_at for _, found in self._replayed)), default="")

    @property
    def has_called(self) -> bool:
        """Whether a call was made and not replayed."""
        return bool(self._calls_made)

    @property
    def chat_ms(self) -> list[float]:
        """The recorded times of chat completions that were replayed, in their order, in milliseconds."""
        return [found.total_ms for asked, found in self._replayed if _is_chat(asked.body)]

    @property
    def chat_elapsed_ms(self) -> float:
        """What they took together, in milliseconds: of those that were recorded at the same time, the time counts once.

        A recording is dated when it ends. Older ones have whole seconds, and some no date: it is then unknown what ran
        beside what, and the times are added, as far as the dates leave room for it.
        """
        chats = [(found.total_ms, found.recorded_at) for asked, found in self._replayed if _is_chat(asked.body)]
        total = sum(self.chat_ms)
        if not all(date for _, date in chats):
            return total
        room, until = 0.0, 0.0
        vague = 0 if all("." in date for _, date in chats) else 1000
        ends = [(datetime.fromisoformat(date).timestamp() * 1000, ms) for ms, date in chats]
        for begin, end in sorted((end - ms, end + vague) for end, ms in ends):
            room += max(end - max(begin, until), 0.0)
            until = max(until, end)
        return min(total, room)

    def replay(self, asked: CleanedRequest, found: Recorded) -> None:
        """Note an answer that was replayed."""
        self._replayed.append((asked, found))

    def call(self) -> None:
        """Note a call that was not replayed."""
        self._calls_made += 1


def _is_chat(body: Any) -> bool:
    return isinstance(body, Mapping) and "messages" in body


@contextmanager
def answering_app() -> Iterator[AppCalls]:
    """Note the HTTP calls of the block: it, its tasks and the threads that have its context are an app that answers."""
    calls = AppCalls()
    token = _of_trial.set(calls)
    try:
        yield calls
    finally:
        _of_trial.reset(token)


def no_app_answers() -> bool:
    """Return whether what runs here is no app that answers a trial."""
    return _of_trial.get() is None


@contextmanager
def threads_of_apps() -> Iterator[None]:
    """Give threads that an app starts, and work that it hands to a pool, the context of the trial, in the block."""
    start, submit = Thread.start, ThreadPoolExecutor.submit

    def started(self: Thread) -> None:
        if not no_app_answers():
            self.run = partial(copy_context().run, self.run)  # type: ignore[method-assign]
        start(self)

    def submitted(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, fn if no_app_answers() else partial(copy_context().run, fn), *args, **kwargs)

    with patch.object(Thread, "start", started), patch.object(ThreadPoolExecutor, "submit", submitted):
        yield


class AppCassettes(Cassettes):
    """The recordings of apps. Each repeat of a trial has its own, for an app sends the same each time."""

    def file(self, asked: CleanedRequest) -> Path:
        """Return the file of a request's recording, which need not exist."""
        file, shift = super().file(asked), seed_shift.get()
        return file.with_stem(f"{file.stem}+{shift}") if shift else file


class AppPlayback(Playback):
    """The rules of a run for calls of apps. It notes what becomes of them."""

    def find(self, asked: CleanedRequest) -> Recorded | None:
        found, calls = super().find(asked), _of_trial.get()
        if found is not None and calls is not None:
            calls.replay(asked, found)
        return found

    def allow(self, asked: CleanedRequest) -> None:
        with _noting():
            super().allow(asked)

    def begin(self, asked: CleanedRequest, answer: Recorded) -> Callable[[], None]:
        with _noting():
            finish = super().begin(asked, answer)

        def end() -> None:
            with _noting_refusals(_of_trial.get() or AppCalls()):
                finish()

        return end


@contextmanager
def _noting() -> Iterator[None]:
    calls = _of_trial.get() or AppCalls()
    calls.call()
    with _noting_refusals(calls):
        yield


@contextmanager
def _noting_refusals(calls: AppCalls) -> Iterator[None]:
    try:
        yield
    except (RecordingMissError, RecordingWriteError) as error:
        calls.refused = calls.refused or error
        raise
