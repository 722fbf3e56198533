"""Child processes: checks with a time limit, workers for long pure work, and the number of processors."""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import IO, Any, TypeVar

from rag_harness.core.concurrency import paused, time_left
from rag_harness.core.errors import RagHarnessError


def usable_processors() -> int:
    """Return how many processors this process may use: fewer than the machine has, as in a container."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


_PACKAGE = __name__.partition(".")[0]
# Isolated: Python searches neither the current folder nor a script's folder, where an ``html.py`` may lie. The package
# is the one of this process, wherever it lies. The paths of this process come last: others may be found only there.
_START = """
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

module, function, package, place, *places = sys.argv[1:]
sys.path.extend(places)
spec = PathFinder.find_spec(package, [place])
sys.modules[package] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[package])
getattr(__import__(module, fromlist=[function]), function)()
"""
_ENVIRONMENT = (
    *("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR"),
    *("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"),
)
_COMPUTING = ("OPENBLAS_", "NVPL_", "MKL_", "OMP_", "KMP_", "VECLIB_", "NPY_", "CUDA_", "TORCH_")
"""Environment variables of the child: those that Python needs, paths of tokenizers, and, by how they begin, those by
which libraries choose their arithmetic, or results differ in the last digit. There are no keys."""


def start_python(module: str, function: str, environment: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of a module, and return it with pipes for its input and output.

    Ctrl-C does not reach it. ``environment`` has its variables beside those that Python needs.
    """
    place = str(Path(sys.modules[_PACKAGE].__path__[0]).absolute().parent)
    places = [str(Path(each).absolute()) for each in sys.path if each]
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _START, module, function, _PACKAGE, place, *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**{name: said for name, said in os.environ.items() if _is_passed_on(name)}, **environment},
        start_new_session=True,
    )


def _is_passed_on(name: str) -> bool:
    return name in _ENVIRONMENT or name.startswith(_COMPUTING)


def end_python(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started, wait for that, and close its pipes."""
    if process.poll() is None:
        kill_python(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def kill_python(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


# A check is pure code of this package: a function of an item and what is looked at. Python cannot end a thread, so a
# check that takes too long would hold up a run. The process lives on from check to check. It starts when the first long
# answer is looked at, and again after it was ended. What does not end in time is a value, ``Unchecked``, and is not
# tried again on the same answer.

_Item = TypeVar("_Item")
_Of = TypeVar("_Of")
_Result = TypeVar("_Result")

LONG = 20_000
"""Characters of an answer from which on checks run in the process. For shorter ones they are fast by what they are."""
LONG_SOURCES = 100_000
"""The same of all texts that an answer is compared with: of each an answer has a few."""
_SECONDS = 300.0
"""Seconds for checks outside of a run: the default of --rag-deadline."""
_STARTING = 60.0
"""Seconds that the process may take to start and to load what the check needs; they are not counted as checking."""
_SPARE, _LEAST_SPARE = 1.0, 0.1
"""Seconds, and share of its time, by which checks end before a deadline in force: what has been checked is kept."""
_STOPPING = 0.8
"""Seconds that a check has to stop. Where it does not, the process is ended, and what it had loaded is lost."""
_SIZE = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A missing result, with the reason in ``why``."""

    why: str


def is_long(text: str, sources: Iterable[str] = ()) -> bool:
    """Return whether checks of a text, and of what it is compared with, run where they can be ended."""
    return len(text) > LONG or sum(map(len, sources)) > LONG_SOURCES


def checked(
    check: Callable[[_Item, _Of], _Result], items: Sequence[_Item], of: _Of, text: str
) -> list[_Result | Unchecked]:
    """Return what ``check`` returns for each item. All of them together have the time of one answer.

    Where a deadline is in force, they end with it. Its clock does not run while the process starts.

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
        self._is_closed = False
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
            if self._is_closed or not self._left(inf):
                why = "the run has ended" if self._is_closed else self._late
                return [self._unchecked.get(key, Unchecked(why)) for key in keys]
            asked = [place for place, key in enumerate(keys) if key not in self._unchecked]
            came, why = self._ask((check, [items[place] for place in asked], of)) if asked else ([], "")
            for place in asked[len(came) :]:
                self._unchecked[keys[place]] = Unchecked(why)
            results: list[Any] = [self._unchecked.get(key) for key in keys]
        for place, result in zip(asked, came, strict=False):
            results[place] = result
        return results

    def close(self) -> None:
        """End the process, and with it the check that it is at: what waits for that has a reason."""
        self._is_closed = True
        child = self._child
        if child is not None:
            child.kill()
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
        return found, why

    def _answers(self, child: _Child) -> tuple[list[Any], str | Exception]:
        found: list[Any] = []
        until = inf
        try:
            with paused():
                said, value = child.answer(_STARTING)
            while said in ("ready", "found"):
                if said == "ready":
                    until = monotonic() + self._seconds
                else:
                    found.append(value)
                said, value = child.answer(self._left(until))
        except Empty:
            if until == inf or not child.stops():
                self._end()
            return found, self._late
        if said == "ended":
            self._end()
            return found, "the process that checked it has ended"
        return found, value if said == "raised" else ""

    @property
    def _late(self) -> str:
        return f"not checked within {self._seconds:g} s. Allow more: --rag-deadline"

    def _left(self, until: float) -> float:
        """Return the seconds until a time, or until shortly before the deadline in force."""
        spare = min(_SPARE, _LEAST_SPARE * self._seconds)
        return max(min(until - monotonic(), time_left() - spare), 0.0)

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

    def stops(self) -> bool:
        """Interrupt the check. Return whether that has ended it: then the process can do the next one."""
        if os.name == "nt":
            return False
        self._process.send_signal(signal.SIGINT)
        until, said = monotonic() + _STOPPING, "found"
        with suppress(Empty):
            while said == "found":
                said, _ = self.answer(max(until - monotonic(), 0.0))
        return said in ("stopped", "raised", "done")

    def kill(self) -> None:
        kill_python(self._process)

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is not an answer
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
            with _interruptible():
                found = check(item, of)
            yield "found", found
    except KeyboardInterrupt:
        yield "stopped", None
    except Exception as error:
        yield "raised", error if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")
    else:
        yield "done", None


@contextmanager
def _interruptible() -> Iterator[None]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _travels(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


# A process beside this one for work that is pure, long and small to send: another core does it, and this one goes on.
#
# A server starts it (``worker``); a test run has none, and does the same work in its thread. The work is a function of
# a module and its arguments: both are pickled. If the process dies, all work that it had fails, and the next work
# starts another, up to MOST_STARTS of them; then the work is done in a thread again.

_T = TypeVar("_T")
MOST_STARTS = 5
"""How often the process is started. What dies more often is not helped by another start."""


class WorkerProcess:
    """One process, started with the first work, and again after it died."""

    def __init__(self) -> None:
        self.started: int = 0
        self._pool: ProcessPoolExecutor | None = None

    @property
    def is_given_up(self) -> bool:
        """Whether it has died too often."""
        return self._pool is None and self.started >= MOST_STARTS

    async def run(self, work: Callable[..., _T], *args: object) -> tuple[_T, float]:
        """Return what ``work`` returns, and its milliseconds there. Call it from one event loop.

        Raises:
            RagHarnessError: the process died. Any other error is the work's own.
        """
        pool = self._pool or self._start()
        try:
            return await asyncio.wrap_future(pool.submit(_timed, work, args))
        except BrokenProcessPool as error:
            if self._pool is pool:
                self._pool = None
                pool.shutdown(wait=False)
            of = f"start {self.started} of {MOST_STARTS}"
            raise RagHarnessError(f"The worker process died while it worked on this ({of}). Ask again.") from error

    def close(self) -> None:
        """Drop the work that waits, and end the process after its current work."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _start(self) -> ProcessPoolExecutor:
        self.started += 1
        # Spawned: a fork of a process with threads may inherit a lock that nobody releases.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
        return self._pool


_workers: list[WorkerProcess] = []


def worker() -> WorkerProcess | None:
    """Return the process for work, if this one has one that lives."""
    return next((each for each in _workers if not each.is_given_up), None)


@contextmanager
def worker_beside() -> Iterator[None]:
    """Have a worker process while the block runs. With one core there is none: it would take from this process."""
    if usable_processors() > 1:
        _workers.append(WorkerProcess())
    try:
        yield
    finally:
        while _workers:
            _workers.pop().close()


def _timed(work: Callable[..., _T], args: tuple[object, ...]) -> tuple[_T, float]:
    started = perf_counter()
    result = work(*args)
    return result, (perf_counter() - started) * 1000


def _begin() -> None:
    """Prepare the process: Ctrl-C is for its parent alone, and it does not outlive that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(0)
