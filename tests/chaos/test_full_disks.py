"""Runs whose disk gets full: one line says so, and when there is room again nothing that was kept is asked again.

``tests/plugin/test_full_disk.py`` has a short version.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.chaos.ledger import account
from tests.chaos.runs import Suite
from tests.plugin.counting_server import CountingServer, counting_server

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs"),
    pytest.mark.usefixtures("long_version"),
]
QUERIES, AT_ONCE = 60, 4
QUOTA = '''
"""A disk that takes so many bytes below one folder and no more, for whoever may mount none."""
import errno, io, os

FOLDER, ERROR = os.environ["CHAOS_FOLDER"], int(os.environ["CHAOS_ERROR"])
left, real, opened = [int(os.environ["CHAOS_BYTES"])], os.write, io.open


def taken(descriptor, size):
    if os.readlink(f"/proc/self/fd/{descriptor}").startswith(FOLDER):
        left[0] -= size
        if left[0] < 0:
            raise OSError(ERROR, os.strerror(ERROR))


def write(descriptor, content):
    taken(descriptor, len(content))
    return real(descriptor, content)


class Counted(io.FileIO):
    def write(self, content):
        taken(self.fileno(), len(content))
        return super().write(content)


def open_(file, mode="r", buffering=-1, *args, **kwargs):
    where = os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else os.path.abspath(file)
    if where.startswith(FOLDER) and "b" in mode and any(each in mode for each in "wax+") and "opener" not in kwargs:
        raw = Counted(file, mode.replace("b", ""), kwargs.get("closefd", True))
        return raw if buffering == 0 else io.BufferedWriter(raw)
    return opened(file, mode, buffering, *args, **kwargs)


def full(*_):
    raise OSError(ERROR, os.strerror(ERROR))


os.write, io.open, os.posix_fallocate = write, open_, full
__builtins__["open"] = open_
'''


@contextmanager
def disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small disk at ``folder``; skips where that may not be done."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    with suppress(OSError):
        if subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0:
            try:
                yield
            finally:
                subprocess.run(["umount", "-l", str(folder)], timeout=20, check=False)
            return
    pytest.skip("a disk may not be mounted here; the quota in the writer is tested")


def grow(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=60m", str(folder)], timeout=20, check=True)


def long_answer(body: object) -> str:
    return json.dumps({"answer": "word " * 300})


def check(suite: Suite, server: CountingServer, output: str, status: int, said: str) -> tuple[int, set[str], int]:
    """Hold a run that met a full disk to its promises; return how many calls it made, and what is kept."""
    assert status != 0
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said, said[-3000:]
    (line, *_) = [each for each in said.splitlines() if "cannot be" in each and "room" in each.lower()] or [""]
    assert line, said[-3000:]
    return server.calls.total(), suite.kept(output), len(said)


def settle(suite: Suite, server: CountingServer, args: list[str], before: tuple[int, set[str], int], what: str) -> None:
    """Run again with room, and see that nothing was lost and no more asked again than was in flight."""
    _, kept, _ = before
    counted = dict(server.calls)
    status, said = suite.run(*args)
    assert status == 0, said[-3000:]
    rows = suite.rows(args[0].partition("=")[2])
    twice = sum(server.calls[each] - counted[each] for each in kept)
    again = server.calls.total() - QUERIES
    account(what).note(lost=QUERIES - len(set(rows)), twice=twice, again=again)
    assert sorted(rows) == sorted(f"q{n}" for n in range(QUERIES))
    # Where nothing could be put aside, what had just come back is lost beside what was under way.
    assert (twice, again <= (AT_ONCE if "tmpfs" in what else 2 * AT_ONCE)) == (0, True)


@pytest.mark.parametrize(("kilobytes", "more"), [(120, ""), (300, ""), (300, "-n 2")])
def test_a_disk_that_gets_full(tmp_path: Path, kilobytes: int, more: str) -> None:
    with counting_server(0.02, long_answer) as server, disk(tmp_path / "disk", kilobytes):
        suite = Suite(tmp_path / "suite", server.url, QUERIES)
        output = str(tmp_path / "disk" / "out")
        args = [f"--rag-output={output}", "--rag-mode=live", f"--rag-concurrency={AT_ONCE}", *more.split()]
        before = check(suite, server, output, *suite.run(*args))
        grow(tmp_path / "disk")
        settle(suite, server, args, before, f"disk full, tmpfs{' and workers' if more else ''}")


@pytest.mark.parametrize(
    ("error", "size"), [("ENOSPC", 40_000), ("ENOSPC", 3_000), ("EDQUOT", 60_000), ("EROFS", 20_000), ("EIO", 9_000)]
)
def test_a_disk_that_takes_no_more(tmp_path: Path, server: CountingServer, error: str, size: int) -> None:
    suite = Suite(tmp_path, server.url, QUERIES)
    (tmp_path / "quota.py").write_text(QUOTA)
    output = str(tmp_path / "out")
    args = [f"--rag-output={output}", "--rag-mode=live", f"--rag-concurrency={AT_ONCE}"]
    told = {"CHAOS_FOLDER": output, "CHAOS_BYTES": str(size), "CHAOS_ERROR": str(getattr(errno, error))}
    status, said = suite.run("-p", "quota", *args, environment={**told, "PYTHONPATH": _path(tmp_path)})
    assert status != 0
    assert "INTERNALERROR" not in said
    assert "Traceback" not in said, said[-3000:]
    assert os.strerror(getattr(errno, error)) in said
    settle(suite, server, args, (0, suite.kept(output), 0), f"disk takes no more ({error})")


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
