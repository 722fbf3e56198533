"""A forked Python behaves like a new one. Tests of a run's end rely on that."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rag_harness
from tests.plugin.conftest import Suite

COLD = sys.executable
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")


@pytest.fixture(autouse=True)
def _warm(started_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", started_python)


def run(code: str, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(5)", 5),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_it_ends_as_the_code_ends(code: str, status: int) -> None:
    assert run(code).returncode == status


def test_streams_arguments_folder_environment_and_path(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "lamp.py").write_text("colour = 'blue'\n")
    code = "import lamp, os, sys; print(input(), sys.argv, os.getcwd(), os.environ['OAK'], lamp.colour); 1 / 0"
    environment = {**os.environ, "OAK": "old", "PYTHONPATH": str(tmp_path / "beside")}
    ran = run(code, "one", "two", input="said\n", cwd=tmp_path, env=environment)
    assert ran.stdout == f"said ['-c', 'one', 'two'] {tmp_path} old blue\n"
    assert ran.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_what_is_imported_of_ours_has_done_nothing_yet_nothing_is_open_and_no_thread_runs() -> None:
    code = """
import os, sys, threading
heavy = [name for name in sys.modules if name.partition(".")[0] in ("tests", "torch", "qdrant_edge")]
ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == "rag_harness"]
caches = [thing for module in ours for thing in vars(module).values() if hasattr(thing, "cache_info")]
caches = [cache for cache in caches if cache.__module__.startswith("rag_harness.")]
filled = {cache.__module__.removeprefix("rag_harness.") for cache in caches if cache.cache_info().currsize}
elsewhere = {module for module in filled if not module.startswith(("core.settings.", "core.text."))}
read = {"core.settings.loading", "core.text.language_detection", "core.text.refusals"}
print(heavy, len(caches) > 5, filled >= read, elsewhere)
print(threading.active_count(), sorted(os.listdir("/proc/self/fd"))[:-1], "numpy" in sys.modules)
"""
    # What ships is read already: the package, its settings and its words.
    assert run(code).stdout == "[] True True {'core.package'}\n1 ['0', '1', '2'] True\n"


def test_the_package_is_the_one_that_the_tests_import_and_the_path_that_of_any_python(tmp_path: Path) -> None:
    assert run("import rag_harness; print(rag_harness.__file__)").stdout.strip() == rag_harness.__file__
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    asked = ["-c", "import sys; print(sys.path[1:])"]
    cold = subprocess.run([COLD, *asked], env=environment, capture_output=True, text=True, check=True)
    assert run(asked[1], env=environment).stdout == cold.stdout


def test_what_one_run_does_the_next_does_not_see(tmp_path: Path) -> None:
    run("import json, os, sys; json.lamp = 1; os.environ['LAMP'] = '1'; sys.path.append('lamp')")
    code = "import json, os, sys; print(hasattr(json, 'lamp'), 'LAMP' in os.environ, 'lamp' in sys.path)"
    assert run(code).stdout == "False False False\n"


def test_what_was_left_for_the_end_is_done() -> None:
    ran = run("import atexit; atexit.register(print, 'bye')")
    assert ran.stdout == "bye\n"


def test_nothing_waits_for_the_disk_but_what_is_not_open_is_refused(tmp_path: Path) -> None:
    code = (
        f"import os; file = open({str(tmp_path / 'a')!r}, 'w'); os.fsync(file); os.fsync(file.fileno()); os.fsync(99)"
    )
    assert run(code).stderr.endswith("OSError: [Errno 9] Bad file descriptor\n")


def test_the_end_waits_for_threads_and_what_they_say_is_written() -> None:
    code = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
    for ends, status in (("", 0), ("; raise SystemExit(3)", 3), ("; raise SystemExit('no')", 1)):
        ran = run(code + ends)
        assert (ran.stdout, ran.returncode) == ("late\n", status)


def test_what_packages_say_is_remembered_until_their_files_change(tmp_path: Path) -> None:
    code = """
import os, sys
from importlib.metadata import Distribution, PathDistribution, distribution, version
from pathlib import Path

for name in ("pytest", "numpy", "pytest-xdist"):
    package = distribution(name)
    for told in ("entry_points", "files"):
        assert list(getattr(package, told)) == list(vars(Distribution)[told].fget(package))
    assert package.metadata.items() == vars(Distribution)["metadata"].fget(package).items()
    assert package.metadata is distribution(name).metadata
sys.path.insert(0, os.getcwd())
file = Path("lamp-1.dist-info/METADATA")
for number, said in enumerate(("1", "2"), 1):
    file.write_text(f"Name: lamp\\nVersion: {said}\\n")
    os.utime(file, ns=(number, number))
    print(version("lamp"))
"""
    (tmp_path / "lamp-1.dist-info").mkdir()
    ran = run(code, cwd=tmp_path)
    assert ran.stdout == "1\n2\n", ran.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 7), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals_arrive(number: int, status: int) -> None:
    code = """
import sys, time
try:
    print("waits", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(7)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"waits\n"
        waiting.send_signal(number)
        assert waiting.wait(timeout=30) == status


def test_a_program_that_is_killed_takes_its_fork_along() -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        process = Path("/proc", waiting.stdout.readline().decode().strip())
        assert process.exists()
        waiting.kill()
        until = time.monotonic() + 30
        while process.exists() and time.monotonic() < until:
            time.sleep(0.02)
    assert not process.exists()


def test_a_file_is_run_by_python_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys; print('numpy' in sys.modules)")
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == "False\n"


def test_runs_of_suites_go_without_the_plugins_of_our_own_tests(suite: Suite) -> None:
    plugins = next(line for line in suite.run("--collect-only").outlines if line.startswith("plugins: "))
    assert "rag-harness" in plugins
    assert not [name for name in ("hypothesis", "syrupy") if name in plugins]


@pytest.mark.parametrize("said", [b"", b"\x64\x00\x00\x00", b"\x64\x00\x00\x00half of it"])
def test_one_that_dies_while_it_asks_takes_nobody_with_it(said: bytes) -> None:
    *_, address = shlex.split(Path(sys.executable).read_text(encoding="utf-8").removesuffix(' "$@"\n'))
    with socket.socket(socket.AF_UNIX) as dying:
        dying.connect(address)
        dying.sendall(said)
    assert run("print('as ever')").stdout == "as ever\n"
