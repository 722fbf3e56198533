"""A lock that says who holds it, and that no process leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_harness.core.process_lock import LockHeldError, process_lock

HOLDER = """
import sys
from pathlib import Path
from rag_harness.core.process_lock import process_lock
with process_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it_and_the_holder_leaves_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with (
            process_lock(lock),
            pytest.raises(LockHeldError, match=rf"^process {os.getpid()} on \S+$"),
            process_lock(lock),
        ):
            pytest.fail("held by two")
    assert not list(tmp_path.iterdir())


def test_what_is_raised_inside_lets_it_go(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), process_lock(tmp_path / "lock"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockHeldError, match=f"process {holder.pid} on"), process_lock(lock):
            pytest.fail("held by two")
        holder.kill()
        holder.wait(timeout=10)
        assert lock.exists()
        with process_lock(lock):
            pass
    assert not lock.exists()
