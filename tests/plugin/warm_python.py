"""A Python that has started: each command is a process of its own, forked from one that has imported what is slow.

Most of a run of a small suite is imports of other people's packages. ``warm_python`` gives a program that takes ``-m`` and
``-c`` as Python does, and a server behind it that forks. The fork takes over the program's streams, folder and
environment, imports rag_harness itself, and ends as any Python does; signals and exit status pass through. What a
fork cannot have is what is settled when Python starts: ``-X``, ``sitecustomize``, a process group.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

# None of them ours: each run imports and rewrites rag_harness itself, as it stands in that run's path.
SLOW = [
    "asyncio", "bm25s", "dotenv", "execnet", "filelock", "markdown_it", "numpy", "openai", "pydantic",
    "pydantic_settings", "qdrant_client", "rich.console", "rich.table", "safetensors.numpy", "Stemmer", "unittest.mock",
    "vcr", "xml.dom.minidom", "yaml",
]  # fmt: skip
_CLIENT = """
import json, os, signal, socket, sys

python, address, *command = sys.argv[1:]
if next((word[:2] for word in command if word not in ("-u", "-B")), "") not in ("-m", "-c"):
    os.execv(python, [python, *command])
server = socket.socket(socket.AF_UNIX)
server.connect(address)
asked = json.dumps([command, os.getcwd(), dict(os.environ)]).encode()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: server.send(bytes([number])))
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
nothing = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(nothing, stream)
status = int(server.recv(16) or "-9")
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@dataclass(frozen=True)
class Command:
    """What one process was asked to be; ``streams`` are file descriptors of its standard streams."""

    args: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


@contextmanager
def warm_python() -> Iterator[str]:
    """Give the path of a program that is as Python is; without forks, it is Python itself."""
    if sys.platform != "linux":
        yield sys.executable
        return
    with tempfile.TemporaryDirectory() as folder:
        address, program = Path(folder, "socket"), Path(folder, "python")
        client = shlex.join([sys.executable, "-IS", "-c", _CLIENT, sys.executable, str(address)])
        program.write_text(f'#!/bin/sh\nexec {client} "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        with _server(address, program):
            yield str(program)


@contextmanager
def _server(address: Path, program: Path) -> Iterator[None]:
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    # With one thread for matrix products there is none when it forks.
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, __file__, str(address), str(program)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"warm\n", "the warm Python did not start; what it said is above"
            yield
        finally:
            server.terminate()


def _warm(folder: str) -> None:
    """Import what is slow under pytest's own hook, as plugins must be: it warns of what it could not rewrite."""
    import pytest

    path, test = list(sys.path), Path(folder, "test_warm.py")
    lines = [f"try: import {name}\nexcept ImportError: pass\n" for name in SLOW]
    test.write_text("".join(lines) + "def test_nothing(): pass\n", encoding="utf-8")
    left_out = [f"-pno:{name}" for name in ("rag_harness", "cacheprovider", "hypothesispytest", "syrupy")]
    with redirect_stdout(StringIO()) as said:
        status = pytest.main(["--rootdir", folder, "-c", os.devnull, *left_out, str(test)])
    if status:
        sys.exit(said.getvalue())
    del sys.modules["test_warm"]
    sys.path[:] = path


@dataclass(frozen=True)
class Run:
    """A forked process; ``end`` is a descriptor that can be read once it has ended."""

    process: int
    end: int
    client: socket.socket


def _serve(listener: socket.socket) -> Command:
    """Fork at each request; return in the process that was asked for, with what it is to do."""
    runs: list[Run] = []
    while True:
        ends_and_clients = [source for run in runs for source in (run.end, run.client)]
        ready = select.select([listener, sys.stdin, *ends_and_clients], [], [])[0]
        if sys.stdin in ready:  # whoever started this has gone
            os._exit(0)
        runs = [run for run in runs if _goes_on(run, ready)]
        if listener in ready:
            client, _ = listener.accept()
            command = _receive(client)
            process = os.fork()
            if not process:
                return command
            runs.append(Run(process, os.pidfd_open(process), client))
            for stream in command.streams:
                os.close(stream)


def _goes_on(run: Run, ready: list[Any]) -> bool:
    """Pass signals in, and the status out when the process has ended; a client that is gone takes it along."""
    if run.end in ready:
        status = os.waitstatus_to_exitcode(os.waitpid(run.process, 0)[1])
        with suppress(OSError):
            run.client.sendall(str(status).encode())
        os.close(run.end)
        run.client.close()
        return False
    if run.client in ready:
        number = run.client.recv(1)
        os.kill(run.process, number[0] if number else signal.SIGKILL)
    return True


def _receive(client: socket.socket) -> Command:
    length, streams, _, _ = socket.recv_fds(client, 4, 3)
    text = b""
    while len(text) < int.from_bytes(length, "big"):
        text += client.recv(65536)
    return Command(*json.loads(text), streams=streams)


def _become(command: Command, program: str) -> None:
    """Take over streams, folder, environment and path, as a Python has them that was started so."""
    os.environ.clear()
    os.environ.update(command.environment)
    os.chdir(command.folder)
    encodings = [(each.encoding, each.errors) for each in (sys.stdin, sys.stdout, sys.stderr)]
    for number, stream in enumerate(command.streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    made: list[Any] = []
    for number, (encoding, errors) in enumerate(encodings):
        made.append(open(number, "r" if not number else "w", encoding=encoding, errors=errors, closefd=False))
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = made
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    sys.stderr.reconfigure(line_buffering=True)
    sys.executable = program
    sys.path[:0] = [command.folder, *filter(None, command.environment.get("PYTHONPATH", "").split(os.pathsep))]


def _run(args: list[str]) -> None:
    """Do what Python does with ``-m module …`` and ``-c code …``."""
    while args[0] in ("-u", "-B"):
        args = args[1:]
    how, what = args[0][:2], [args[0][2:], *args[1:]] if args[0][2:] else args[1:]
    sys.argv = what if how == "-m" else ["-c", *what[1:]]
    if how == "-m":
        runpy.run_module(what[0], run_name="__main__", alter_sys=True)
    else:
        exec(compile(what[0], "<string>", "exec"), vars(sys.modules["__main__"]))


def main(address: str, program: str) -> None:
    """Serve, and be each of the processes that are asked for."""
    sys.path.pop(0)
    _warm(str(Path(address).parent))
    # What is here already is nobody's garbage, and stays shared memory.
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("warm", flush=True)
    command = _serve(listener)
    listener.close()
    _become(command, program)
    _run(command.args)


if __name__ == "__main__":
    main(*sys.argv[1:])
