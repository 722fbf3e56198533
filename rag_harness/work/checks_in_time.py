"""Checks of long answers, in a process that is ended when their time is over.

A check is pure code of this package: a function of an item and what is looked at. Python cannot end a thread, so a
check that takes too long would hold up a run. The process lives on from check to check. It starts when the first long
answer is looked at, and again after it was ended. What does not end in time is a value, ``Unchecked``, and is not tried
again on the same answer.
"""

from __future__ import annotations

import atexit
import os
import pickle
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from queue import Empty, SimpleQueue
from time import monotonic
from typing import IO, Any, TypeVar

from rag_harness.work.child_python import end_python, start_python

_Item = TypeVar("_Item")
_Of = TypeVar("_Of")
_Result = TypeVar("_Result")

LONG = 20_000
"""Characters of an answer from which on checks run in the process. For shorter ones they are fast by what they are."""
_SECONDS = 300.0
"""Seconds for checks outside of a run: the default of --rag-deadline."""
_STARTING = 60.0
"""Seconds that the process may take to start and to import what the check needs; they are not counted as checking."""
_SIZE = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What stands in place of a result: ``why`` there is none."""

    why: str


def is_long(text: str) -> bool:
    """Return whether checks of a text run where they can be ended."""
    return len(text) > LONG


def checked(
    check: Callable[[_Item, _Of], _Result], items: Sequence[_Item], of: _Of, text: str
) -> list[_Result | Unchecked]:
    """Return what ``check`` returns for each item. All of them together have the time of one answer.

    Args:
        check: a function of a module of this package.
        items: what is asked of the answer.
        of: the answer, with what belongs to it.
        text: the text of the answer, by which what was not checked in time is known again.

    Raises:
        Exception: what ``check`` raises.
    """
    return _processes[-1].checked(check, items, of, text)


@contextmanager
def checks_within(seconds: float) -> Iterator[None]:
    """Give the checks of each answer so many seconds while the block runs. The process ends with the block."""
    process = CheckProcess(seconds)
    _processes.append(process)
    try:
        yield
    finally:
        _processes.remove(process)
        process.close()


class CheckProcess:
    """The process for checks: one for a run. It does one piece of work after another, for any thread.

    Args:
        seconds: how long the checks of an answer may take together.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._child: _Child | None = None
        self._lock = threading.Lock()
        self._unchecked: dict[bytes, Unchecked] = {}
        self.started: int = 0

    def checked(
        self, check: Callable[[_Item, _Of], _Result], items: Sequence[_Item], of: _Of, text: str
    ) -> list[_Result | Unchecked]:
        """Return what ``check`` returns for each item, as the function of this name does."""
        try:
            keys = [_key(text, check, item) for item in items]
            pickle.dumps(of)
        except (pickle.PicklingError, TypeError, AttributeError):
            return [check(item, of) for item in items]  # a value of a user's own cannot travel
        with self._lock:
            asked = [place for place, key in enumerate(keys) if key not in self._unchecked]
            came, why = self._ask((check, [items[place] for place in asked], of)) if asked else ([], "")
            for place in asked[len(came) :]:
                self._unchecked[keys[place]] = Unchecked(why)
            results: list[Any] = [self._unchecked.get(key) for key in keys]
        for place, result in zip(asked, came, strict=False):
            results[place] = result
        return results

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, work: tuple[Any, ...]) -> tuple[list[Any], str]:
        """Return the results that came in time, and why there are no more."""
        child = self._running()
        try:
            child.send(work)
            found, why = self._answers(child)
        except BaseException:
            self._end()  # what it still says would be taken for the answer to the next question
            raise
        if isinstance(why, Exception):
            raise why
        if why:
            self._end()
        return found, why

    def _answers(self, child: _Child) -> tuple[list[Any], str | Exception]:
        found: list[Any] = []
        left: Callable[[], float] = lambda: _STARTING  # noqa: E731
        while True:
            try:
                said, value = child.answer(left())
            except Empty:
                return found, f"not checked within {self._seconds:g} s. Allow more: --rag-deadline"
            if said == "ready":
                until = monotonic() + self._seconds
                left = lambda until=until: max(until - monotonic(), 0.0)  # type: ignore[misc]  # noqa: E731
            elif said == "found":
                found.append(value)
            elif said == "raised":
                return found, value
            else:
                return found, "" if said == "done" else "the process that checked it has ended"

    def _running(self) -> _Child:
        if self._child is None or not self._child.lives:
            self._end()
            self._child = _Child()
            self.started += 1
            atexit.register(self.close)
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
            atexit.unregister(self.close)


_processes = [CheckProcess(_SECONDS)]


class _Child:
    """The process as its parent sees it."""

    def __init__(self) -> None:
        self._process = start_python(__name__, "check_for_parent")
        self._said: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        threading.Thread(target=self._listen, name="rag-checks", daemon=True).start()

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def send(self, work: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and says so
            _send(self._process.stdin, work)

    def answer(self, seconds: float) -> tuple[str, Any]:
        return self._said.get(timeout=seconds)

    def end(self) -> None:
        end_python(self._process)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            while (said := _received(self._process.stdout)) is not None:
                self._said.put(pickle.loads(said))
        self._said.put(("ended", None))


def _key(text: str, check: Callable[..., object], item: object) -> bytes:
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    key.update(pickle.dumps((check, item)))
    return key.digest()


def _send(pipe: IO[bytes], said: object) -> None:
    data = pickle.dumps(said)
    pipe.write(_SIZE.pack(len(data)) + data)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None where the other side has closed the pipe."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    size = _SIZE.unpack(head)[0]
    data = pipe.read(size)
    return data if len(data) == size else None


def check_for_parent() -> None:
    """Check until the input ends. This is the child's side."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    works: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, works), daemon=True).start()
    while True:
        for said in _work(works.get()):
            _send(answers, said)


def _receive(questions: IO[bytes], works: SimpleQueue[bytes]) -> None:
    """Take work. Where the parent is gone, end at once, whatever is being checked."""
    while (work := _received(questions)) is not None:
        works.put(work)
    os._exit(0)


def _work(packed: bytes) -> Iterator[tuple[str, Any]]:
    try:
        check, items, of = pickle.loads(packed)
        yield "ready", None
        for item in items:
            yield "found", check(item, of)
    except Exception as error:
        yield "raised", error if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")
    else:
        yield "done", None


def _travels(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False
