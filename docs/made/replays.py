"""Replays of the studies that pictures show: each in a process of its own, with results in a temporary folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from docs.made.recorded import CONVERSATION, SPACE

_ROOT = Path(__file__).parents[2]
_LONGEST_S = 600
_START_S = 60.0


def tested(output: Path, *args: str) -> str:
    """Replay experiments with pytest, results in ``output``; return what it printed, with its colours, 80 columns wide.

    Raises:
        SystemExit: pytest failed; shows the end of what it printed.
    """
    places = [f"--rag-output={output}", f"--rag-logs={output.parent}", f"--rag-cache-dir={output.parent / 'cache'}"]
    return _ran("pytest", "-p", "no:cacheprovider", "--color=yes", "--rag-mode=replay", *places, *args)


def conversation(output: Path) -> None:
    """Replay the conversation that is drawn."""
    tested(output, "-m", "c1", "--rag-run=c1", "-k", CONVERSATION)


def raced(output: Path) -> None:
    """Replay the race of the retail study."""
    places = ["--output", str(output), "--cache-dir", str(output.parent / "cache")]
    _ran("rag_harness", "tune", SPACE, "--mode", "replay", *places, "-o", str(output.parent / "tuned.toml"))


def _ran(*command: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAG_", "OPEN", "PYTEST"))}
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=_ROOT,
        env={**kept, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    if result.returncode:
        said = (result.stdout + result.stderr)[-2000:]
        raise SystemExit(f"{' '.join(command)} ended with {result.returncode}:\n{said}")
    return result.stdout


@contextmanager
def served(work: Path) -> Iterator[str]:
    """Serve experiment ``r1`` over the retail study's pages on 127.0.0.1; yield the address.

    Raises:
        SystemExit: the service did not start; shows its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = f"serve --experiment r1 --kb data/kb --mode replay --port {port} --log-level warning".split()
    with (work / "log").open("wb") as log:
        command = [sys.executable, "-m", "rag_harness", *words, "--state", str(work / "state")]
        process = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/ready", process, work / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"The service did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
