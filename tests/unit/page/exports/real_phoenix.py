"""Phoenix itself, in an environment of its own, for ``-m long``."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def installed_phoenix(folder: Path) -> Path:
    """Install it below a folder, and return the program."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", "arize-phoenix"], check=True)
    return programs / "phoenix"


@contextmanager
def serving_phoenix(program: Path, folder: Path) -> Iterator[str]:
    """Serve on a port of this machine, and return its address."""
    ports = [_free_port(), _free_port()]
    own = {"PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false"}
    own |= {"PHOENIX_PORT": str(ports[0]), "PHOENIX_GRPC_PORT": str(ports[1])}
    url = f"http://127.0.0.1:{ports[0]}"
    with (folder / "phoenix.log").open("wb") as log:
        running = subprocess.Popen([program, "serve"], env=os.environ | own, stdout=log, stderr=log)
    try:
        _wait(url)
        yield url
    finally:
        running.terminate()
        running.wait(30)


def phoenix_has(url: str) -> list[Any]:
    """Return what Phoenix answers to a GET."""
    with urllib.request.urlopen(url, timeout=30) as reply:
        found: list[Any] = json.load(reply)["data"]
        return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(url: str) -> None:
    until = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < until
            time.sleep(1)
