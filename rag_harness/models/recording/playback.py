"""Rules of record and replay for a call, and a guard that makes internet sockets an error in a replay."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rag_harness.core.errors import RecordingMissError, RecordingWriteError
from rag_harness.core.json_text import read_json
from rag_harness.core.log import log
from rag_harness.models.calls import seed_shift
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.cassettes import RECORDED_AT, TOTAL, TTFT, Cassettes
from rag_harness.models.recording.scrubbing import CleanedRequest

# Python's audit events report every library. A hook cannot be removed, so it is added once and checks whether the guard
# is on.

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine for itself."""

_FAMILIES = {2, 10, 23, 30}
"""AF_INET and AF_INET6, as numbers of Linux, Windows and macOS. AF_UNIX is allowed, because asyncio needs it."""

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")


def internet_address(connection: Any, address: Any) -> tuple[str, int] | None:
    """Return the host and port of a socket's address; None where it is not an address of the internet."""
    if getattr(connection, "family", 0) not in _FAMILIES or not isinstance(address, tuple):
        return None
    return str(address[0]), int(address[1])


class _Guard:
    """The state of the guard: whether connections are refused, and the allowed hosts."""

    up = False
    installed = False
    allowed: Collection[str] = ()

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.up or event not in (*_LOOKUPS, *_SENDS):
            return
        host = self._host(event, args)
        if host is not None and host not in self.allowed:
            raise RecordingMissError(f"Replay opens no connection, but {_caller()} asked for {host}.")

    def _host(self, event: str, args: tuple[Any, ...]) -> str | None:
        if event in _LOOKUPS:
            # Without a host, the lookup is for this machine. A server does that before it listens.
            return (args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]) or None
        address = internet_address(args[0], args[1])
        return None if address is None else address[0]


_guard = _Guard()


def refuse_connections(allowed: Collection[str] = ()) -> None:
    """Refuse all internet connections and name lookups from now on, except for hosts in ``allowed``."""
    if not _guard.installed:
        sys.addaudithook(_guard.hook)
        _guard.installed = True
    _guard.up, _guard.allowed = True, allowed


def allow_connections() -> None:
    """Allow all connections again."""
    _guard.up = False


@contextmanager
def closed_network(server: str) -> Iterator[None]:
    """Refuse all connections in the block, except to this machine where ``server``, a URL, lies on it."""
    refuse_connections(LOOPBACK if urlsplit(server).hostname in LOOPBACK else ())
    try:
        yield
    finally:
        allow_connections()


def _caller() -> str:
    """Return the nearest frame outside this module and the standard library's networking, as text."""
    quiet = ("socket.py", "playback.py", "selectors.py", "base_events.py", "selector_events.py")
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.endswith(quiet)]
    return f"{frames[-1].filename}:{frames[-1].lineno} ({frames[-1].name})" if frames else "somebody"


def proxy_of(scheme: str, host: str) -> str | None:
    """Return the environment's proxy for a host. None for a direct connection, as to this machine."""
    return None if host in LOOPBACK or proxy_bypass(host) else getproxies().get(scheme)


_TEXT = re.compile(rb'"(content|text|delta|arguments|partial_json)"\s*:\s*"[^"]')
"""Matches the first piece of an answer in streams of OpenAI and Anthropic. Only the role comes before it."""
_END = re.compile(rb"data:\s*\[DONE\]")


@dataclass
class Playback:
    """The rules of a run.

    Args:
        cassettes: the recordings.
        may_call: whether the mode allows calls that are not recorded.
        keep: whether answers are stored.
        ask_again: whether to call once a run even with a recording.
        refuse: the remedy for a missing recording: the command that records it.
        tell: called with ``used`` or ``made`` and the file, or ``missed`` and the reason.
        version: the version of the model, a digest of its code, where it is known. An answer of another version is
            not used.

        Raises:
            DataError: answers are to be stored in a folder that cannot be written.
    """

    cassettes: Cassettes
    may_call: bool
    keep: bool
    ask_again: bool = False
    refuse: str = ""
    tell: Callable[[str, Any], None] | None = None
    version: str = ""
    _broken: RecordingWriteError | None = None

    def __post_init__(self) -> None:
        if self.keep:
            self.cassettes.check_writable()

    @property
    def broken(self) -> RecordingWriteError | None:
        """Why no more answers can be stored; empty while they can."""
        return self._broken

    def find(self, asked: CleanedRequest) -> Recorded | None:
        """Return the recording. None without one, or where it is to be made again."""
        if self.ask_again and self.cassettes.file(asked) not in self.cassettes.made:
            return None
        found = self.cassettes.load(asked)
        if found is not None and self.version and found.version != self.version:
            found = None
        if found is not None:
            self._say("used", self.cassettes.file(asked))
        return found

    def allow(self, asked: CleanedRequest) -> None:
        """Allow a call, or raise.

        Raises:
            RecordingMissError: this mode calls no model.
            RecordingWriteError: an earlier answer could not be stored. A retry would only cost more.
        """
        if self._broken:
            raise self._broken
        if not self.may_call:
            miss = f"No recording of {asked}. {self.cassettes.nearest(asked)} {self.refuse}"
            self._say("missed", miss)
            raise RecordingMissError(miss)

    def save(self, asked: CleanedRequest, answer: Recorded) -> None:
        """Store an answer.

        Raises:
            RecordingWriteError: the disk is full or broken.
        """
        self.begin(asked, answer)()

    def begin(self, asked: CleanedRequest, answer: Recorded) -> Callable[[], None]:
        """Store an answer so that no kill of the process loses it; return what makes it safe from power cuts, too.

        Both raise RecordingWriteError where the disk is full or broken.
        """
        recorded_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        with self._noting_breaks():
            finish = self.cassettes.begin(asked, replace(answer, recorded_at=recorded_at, version=self.version))

        def end() -> None:
            with self._noting_breaks():
                finish()
            self._say("made", self.cassettes.file(asked))

        return end

    @contextmanager
    def _noting_breaks(self) -> Iterator[None]:
        try:
            yield
        except RecordingWriteError as error:
            self._broken = error
            raise

    def _say(self, what: str, about: Any) -> None:
        if self.tell is not None:
            self.tell(what, about)


class AnswerListener:
    """Listens to an answer while it arrives, measures its times, and returns it when it is complete."""

    def __init__(self, asked: CleanedRequest) -> None:
        self.asked = asked
        self._status, self._kind, self._streamed = 200, "", False
        self._started = perf_counter()
        self._first: float | None = None
        self._parts: list[bytes] = []
        self._kept = False

    def since(self, started: float) -> None:
        """Count time from ``started`` on, by ``perf_counter``. Waiting before it is not the model's time."""
        self._started = started

    def to(self, status: int, kind: str) -> AnswerListener:
        """Set the status and the content type of the answer that begins."""
        self._status, self._kind, self._streamed = status, kind, _streams(kind, self.asked.body)
        return self

    def hear(self, part: bytes) -> Recorded | None:
        """Add a part; return the answer if this part completes it. SDKs stop reading there, before the stream's end."""
        seen = (self._parts[-1][-64:] if self._parts else b"") + part
        if self._first is None and _TEXT.search(seen):
            self._first = perf_counter()
        self._parts.append(part)
        return self.end() if self._streamed and _END.search(seen) else None

    def end(self) -> Recorded | None:
        """Return the answer if it is complete and was not returned before."""
        content = b"".join(self._parts)
        if self._kept:
            return None
        if not is_whole(content, self._kind, self.asked.body):
            log.warning("Not kept, since it is an error or breaks off: the answer to %s", self.asked)
            return None
        self._kept = True
        total, first = perf_counter() - self._started, self._first
        ttft = (first - self._started) * 1000 if first is not None and self._streamed else None
        return Recorded(self._status, self._kind, content, total * 1000, ttft)


def is_whole(content: bytes, kind: str, asked: Any) -> bool:
    """Return whether an answer is complete and no error. Servers also send errors with status 200."""
    body = asked if isinstance(asked, Mapping) else {}
    if not _streams(kind, body):
        said = _parsed(content)
        wants_json = "json" in kind or "messages" in body
        return not (said.get("error") if isinstance(said, dict) else wants_json and content and said is None)
    events = list(_events(content))
    if not events or any(event.get("error") for event in events):
        return False
    choices = [choice for event in events for choice in event.get("choices") or ()]
    ended = {choice.get("index", 0) for choice in choices if choice.get("finish_reason")}
    finished = bool(ended) and {choice.get("index", 0) for choice in choices} <= ended
    chat = "messages" in body or any("choices" in event for event in events)
    # Other protocols end with the connection, and a cut connection raises an error.
    return not chat or finished or bool(_END.search(content)) or _ends_otherwise(events)


def _streams(kind: str, body: Any) -> bool:
    return "event-stream" in kind or (isinstance(body, Mapping) and body.get("stream") is True)


def _ends_otherwise(events: list[dict[str, Any]]) -> bool:
    """Return whether ``events`` has the last event of Anthropic's or the Responses API."""
    ends = {"message_stop", "response.completed", "response.incomplete"}
    return any(event.get("type") in ends for event in events)


def _events(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        event = _parsed(line[5:]) if line.startswith(b"data:") else None
        if isinstance(event, dict):
            yield event


def _parsed(content: bytes) -> Any:
    try:
        return read_json(content)
    except ValueError:
        return None


def headers_of(found: Recorded) -> dict[str, str]:
    """Return the headers of a replayed response, with times and date of the recorded call."""
    times = {TOTAL: str(found.total_ms), **({} if found.ttft_ms is None else {TTFT: str(found.ttft_ms)})}
    times |= {RECORDED_AT: found.recorded_at} if found.recorded_at else {}
    return {**({"content-type": found.content_type} if found.content_type else {}), **times}


# Record and replay of the HTTP calls that an app under test makes while it is set up and while it answers a trial.
#
# Other calls of the process are left alone. A trial is known by its context, as its spans are; threads that an app
# starts are given it.

_of_trial: ContextVar[AppCalls | None] = ContextVar("app_calls", default=None)


class AppCalls:
    """The HTTP calls of one trial.

    Attributes:
        refused: why a call was refused, or its answer not stored; None where neither happened. SDKs hide such errors
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
    """Return whether no app answers a trial here."""
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
    """The rules of a run for calls of apps. It notes the result of each."""

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
