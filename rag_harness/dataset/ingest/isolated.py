"""Parsing of files in a child process. A file that hangs, crashes or takes too much memory gives one clear error."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from threading import Thread
from typing import IO
from weakref import WeakSet

from rag_harness.dataset.ingest.parsed import PassingError
from rag_harness.dataset.ingest.process_limits import MEMORY_BYTES, OUTPUT_BYTES, PROCESSOR_SECONDS, WALL_SECONDS
from rag_harness.work.child_python import end_python, kill_python, start_python

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
"""Each thread of a library takes address space; 64 threads take all that the child may have."""
_running: WeakSet[Child] = WeakSet()


def end_all() -> None:
    """Kill all child processes of this process. The files that they are reading get no answer."""
    for child in list(_running):
        child.kill()


class Child:
    """One child process for many files. It starts on first use, and again after it died."""

    def __init__(self, seconds: float = WALL_SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self.started: int = 0

    def answer(self, kind: str, data: bytes) -> bytes:
        """Return the packed result of parsing the bytes of a file, or the packed reason why they cannot be read.

        Raises:
            PassingError: the process died, or took too long.
        """
        process = self._running()
        exchange = _Exchange(process, kind, data)
        exchange.start()
        exchange.join(self._seconds)
        if exchange.is_alive():
            self.close()
            raise PassingError(f"took more than {self._seconds:g} s to read. Split it, or remove it")
        if exchange.answer is None:
            raise PassingError(self._death())
        if exchange.last:
            self.close()
        return exchange.answer

    def close(self) -> None:
        """End the process, and all processes that it has started."""
        if self._process is not None:
            end_python(self._process)
            self._process = None

    def kill(self) -> None:
        """Kill the process while another thread waits for its answer. That thread gets none."""
        process = self._process
        if process is not None and process.poll() is None:
            kill_python(process)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = start_python("rag_harness.dataset.ingest.child", "serve", _ONE_THREAD)
            _running.add(self)
            self.started += 1
        return self._process

    def _death(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)  # its output closes a moment before it ends, and it has a status only after its end
        end_python(process)
        if hasattr(signal, "SIGXCPU") and process.returncode == -signal.SIGXCPU:
            return f"took more than {PROCESSOR_SECONDS} s of the processor to read. Split it, or remove it"
        if hasattr(signal, "SIGABRT") and process.returncode == -signal.SIGABRT:  # as C and Rust abort without memory
            return f"takes more than {MEMORY_BYTES >> 20} MB of memory to read and cut, it seems. Split it"
        return f"ended the process that read it (status {process.returncode}). Remove it, or save it anew"


class _Exchange(Thread):
    """A question and its answer, None without one. It is a thread, so that the caller can stop waiting."""

    def __init__(self, process: subprocess.Popen[bytes], kind: str, data: bytes) -> None:
        super().__init__(daemon=True, name="rag-ingest")
        self._process, self._question = process, b"%s %d\n" % (kind.encode(), len(data))
        self._data = data
        self.answer: bytes | None = None
        self.last = False

    def run(self) -> None:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        with suppress(OSError, ValueError):
            to.write(self._question)
            to.write(self._data)
            to.flush()
        with suppress(OSError, ValueError):
            self.answer = self._read(back)

    def _read(self, back: IO[bytes]) -> bytes | None:
        size, follows = back.readline(30).split()
        self.last = follows == b"last"
        answer = back.read(min(int(size), OUTPUT_BYTES))
        return answer if len(answer) == int(size) else None
