"""The process that ``warm_python`` forks from. It runs nothing itself: every fork begins from the same state."""

from __future__ import annotations

import atexit
import gc
import inspect
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

SLOW = [
    "asyncio", "dotenv", "execnet", "filelock", "jinja2", "jsonpath_rfc9535", "markdown_it", "numpy.ma", "openai",
    "pydantic", "requests", "rich.console", "rich.table", "safetensors.numpy", "statistics",
    "Stemmer", "syrupy", "tomllib", "unittest.mock", "vcr", "xdist.dsession", "xml.dom.minidom", "yaml",
]  # fmt: skip
# Of ours what most runs import: half of what they would take. None of it brings a model or opens a file.
PACKAGES = [
    "core", "data", "evaluation.expectations", "evaluation.measures", "frontends.pytest_plugin", "models.array_store",
    "models.dry_run", "models.endpoints", "models.prompts", "page.charts", "page.comment", "page.html", "page.payload",
    "page.report", "page.sections", "pipelines.configuration", "pipelines.endpoint", "pipelines.traced_app",
    "pipelines.user_pipelines", "records", "retrieval.builder", "retrieval.chunking.chunkers",
    "retrieval.indexes.qdrant", "retrieval.indexes.shard_files", "runs", "stats", "studies.retail", "tables",
]  # fmt: skip
IMPORT_PACKAGES = """
from importlib import import_module
from pkgutil import walk_packages
for package in {packages}:
    module = import_module("rag_harness." + package)
    for each in walk_packages(getattr(module, "__path__", []), module.__name__ + "."):
        if ".distributed" not in each.name:
            import_module(each.name)
"""


@dataclass(frozen=True)
class Command:
    """What a process was asked to be; ``streams`` are the descriptors of its standard streams."""

    args: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


@dataclass(frozen=True)
class Run:
    """A forked process; ``end`` is a descriptor that can be read once it has ended."""

    process: int
    end: int
    client: socket.socket


def warm(folder: str, root: str) -> None:
    """Import what is slow under pytest's own hook, as plugins must be: it warns of what it could not rewrite.

    The package is that in ``root``, which the tests import; another one may be installed.
    """
    import pytest

    remember_packages()
    path, test = list(sys.path), Path(folder, "test_warm.py")
    sys.path.insert(0, root)
    lines = [f"try: import {name}\nexcept ImportError: pass\n" for name in SLOW]
    lines.append(IMPORT_PACKAGES.format(packages=PACKAGES))
    test.write_text("".join(lines) + "def test_nothing(): pass\n", encoding="utf-8")
    left_out = [f"-pno:{name}" for name in ("rag_harness", "cacheprovider", "hypothesispytest", "syrupy")]
    with redirect_stdout(StringIO()) as said:
        status = pytest.main(["--rootdir", folder, "-c", os.devnull, *left_out, str(test)])
    if status:
        sys.exit(said.getvalue())
    del sys.modules["test_warm"]
    sys.path[:] = path
    # What ships is the same whoever asks: the table of settings, the package itself, its phrases that decline, and the
    # library of languages. To read it takes two thirds of a small run, which has an empty cache.
    from rag_harness.core.package import package_digest
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.core.text.language_detection import told
    from rag_harness.core.text.refusals import declines

    load_settings(rootdir=folder)
    package_digest()
    declines("I do not know.")
    told("Lampe")
    # Where each module lies: whoever shows a traceback asks all of them.
    inspect.getmodule(warm.__code__)


def remember_packages() -> None:
    """Keep what installed packages say of themselves, by file and time: each start reads all of it three times."""
    for name, file in {"metadata": "METADATA", "entry_points": "entry_points.txt", "files": "RECORD"}.items():
        setattr(PathDistribution, name, _remembered(name, file))


def _remembered(name: str, file: str) -> property:
    read = vars(Distribution)[name].fget
    kept: dict[tuple[Path, int], Any] = {}

    def get(self: Any) -> Any:
        path = self._path / file
        key = path, path.stat().st_mtime_ns if path.exists() else 0
        if key not in kept:
            kept[key] = read(self)
        return kept[key]

    return property(get)


def serve(listener: socket.socket) -> Command:
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
            if command is None:
                client.close()
                continue
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


def _receive(client: socket.socket) -> Command | None:
    """Return what a client asks for, or None where it was killed before it had said all of it."""
    length, streams, _, _ = socket.recv_fds(client, 4, 3)
    expected, text = int.from_bytes(length, "big"), b""
    while len(text) < expected and (part := client.recv(65536)):
        text += part
    if not text or len(text) < expected:
        for stream in streams:
            os.close(stream)
        return None
    args, folder, environment = marshal.loads(text)
    return Command(args, folder, environment, streams)


def become(command: Command, program: str) -> None:
    """Take over streams, folder, environment and path, as a Python has them that was started so."""
    os.environ.clear()
    os.environ.update(command.environment)
    os.chdir(command.folder)
    for number, stream in enumerate(command.streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    # xdist starts its workers with it.
    sys.executable = program
    # To wait for the disk is a tenth of a small run's time, and no power is cut that would show whether it was done.
    os.fsync = _check_open
    if "COVERAGE_PROCESS_START" in os.environ:  # benchmarks/mutation asks which test runs which line
        import coverage

        coverage.process_startup()
    sys.path[:0] = [command.folder, *filter(None, command.environment.get("PYTHONPATH", "").split(os.pathsep))]


def _check_open(fd: Any) -> None:
    """Raise what ``os.fsync`` raises where no file is open; wait for no disk."""
    os.fstat(fd if isinstance(fd, int) else fd.fileno())


def run(args: list[str]) -> None:
    """Do what Python does with ``-m module …`` and ``-c code …``."""
    while args[0] in ("-u", "-B"):
        args = args[1:]
    option, rest = args[0][:2], [args[0][2:], *args[1:]] if args[0][2:] else args[1:]
    if option == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))


def end(status: int) -> None:
    """End as multiprocessing ends its forks: wait for threads, do what was left for the end, and take nothing apart.

    To take apart what it shares with the server is a quarter of a small run's processor time.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # what cannot be written, Python's own end reports
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)
    sys.exit(status)


def main(address: str, program: str, root: str) -> None:
    """Serve, and be each of the processes that are asked for."""
    sys.path.pop(0)
    warm(str(Path(address).parent), root)
    # What is here already is nobody's garbage, and stays shared memory.
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("warm", flush=True)
    command = serve(listener)
    listener.close()
    become(command, program)
    status = 0
    try:
        run(command.args)
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        status = ended.code
    end(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
