"""A Python process beside this one that serves one function, with nothing of this process but its paths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

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
"""Environment variables of the child: those that Python needs and the paths of tokenizers, but no keys."""


def start_python(module: str, function: str, environment: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of a module, and return it with pipes for its input and output.

    Ctrl-C does not reach it. ``environment`` is what it gets beside the variables that Python needs.
    """
    place = str(Path(sys.modules[_PACKAGE].__path__[0]).absolute().parent)
    places = [str(Path(each).absolute()) for each in sys.path if each]
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _START, module, function, _PACKAGE, place, *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | dict(environment),
        start_new_session=True,
    )


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
