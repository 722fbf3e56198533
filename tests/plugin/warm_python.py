"""A Python that has started: each command is a process of its own, forked from one that has imported what is slow.

Most of a run of a small suite is imports. ``warm_python`` gives a program that takes ``-m`` and ``-c`` as Python does,
and a server behind it that forks (``warm_server.py``). The fork takes over the program's streams, folder and
environment, has imported what a run of ours imports and read what ships with it, and ends as any Python does; signals
and exit status pass through. It waits for no disk: ``os.fsync`` returns at once. What a fork cannot have is what is
settled when Python starts: ``-X``, ``sitecustomize``, a process group; nor does it show what is imported when. Tests
that look at these ask for ``cold_python``.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rag_harness

# What the program is: it asks, lets go of its streams, passes signals on and ends as the fork ended. A run starts up to
# three; what socket, signal and json import besides would be more than half of each.
_CLIENT = """
import _signal, _socket, marshal, os, sys

python, address, *command = sys.argv[1:]
if next((word[:2] for word in command if word not in ("-u", "-B")), "") not in ("-m", "-c"):
    os.execv(python, [python, *command])
server = _socket.socket(_socket.AF_UNIX)
server.connect(address)
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, frame: server.send(bytes([number])))
asked = marshal.dumps([command, os.getcwd(), dict(os.environ)])
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
server.sendmsg([len(asked).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(asked)
nothing = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(nothing, stream)
status = int(server.recv(16) or -_signal.SIGKILL)
if status < 0:
    if -status != _signal.SIGKILL:
        _signal.signal(-status, _signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@contextmanager
def warm_python() -> Iterator[str]:
    """Give the path of a program that is as Python is; where there is no such fork, it is Python itself."""
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
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    # numpy starts no threads then, and a process with threads cannot be forked safely.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    paths = Path(__file__).with_name("warm_server.py"), address, program, Path(rag_harness.__file__).parents[1]
    command = [sys.executable, *map(str, paths)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"warm\n", "the warm Python did not start; what it said stands above"
            yield
        finally:
            server.terminate()
