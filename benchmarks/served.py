"""A server of ``rag-harness serve`` on a free port, for as long as a benchmark needs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STARTS_WITHIN = 120.0
"""Seconds."""


@dataclass(frozen=True)
class Served:
    """A running server: its address and its process."""

    url: str
    pid: int

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu(self) -> float:
        """Seconds of processor time."""
        said = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(*flags: str, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Iterator[Served]:
    """Serve with ``flags`` and a state folder of its own, until the block ends.

    Raises:
        RuntimeError: it did not get ready; holds the end of its log.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as state:
        log = Path(state) / "log"
        command = [
            sys.executable,
            "-m",
            "rag_harness",
            "serve",
            "--port",
            str(port),
            "--state",
            f"{state}/state",
            *flags,
        ]
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with log.open("wb") as written:
            process = subprocess.Popen(command, cwd=folder, env={**kept, **(environment or {})}, stderr=written)
        served = Served(f"http://127.0.0.1:{port}", process.pid)
        try:
            _wait_until_ready(served.url, process, log)
            yield served
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=2) as answered:
                if answered.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The server did not get ready:\n{log.read_text(encoding='utf-8')[-3000:]}")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of ``values`` does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
