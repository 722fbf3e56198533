"""The tutorials, followed word by word in an empty folder: files are saved as the page says, and commands print what it
shows. ``…`` on a page stands for anything."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.unit.pipelines.endpoint.tracing_service import free_port

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
_FENCE = re.compile(r"^```(\w*)\n", re.MULTILINE)
_NAMED = re.compile(r"`([\w.]+\.(?:py|toml|ini|jsonl))`")
_DELETED = re.compile(r"[Dd]elete `([\w.]+)`")
_NOT_RUN = ("python -m venv", "python -m pip")
_CANNOT_RUN = 2
"""The least exit status of a command that could not do its work: 1 says that something was found, or has failed."""
_COMMANDS = {
    "python": "",
    "pytest": "import sys; del sys.path[0]; from pytest import console_main; sys.exit(console_main())",
    "rag-harness": "import sys; del sys.path[0]; from rag_harness.__main__ import main; sys.exit(main())",
}
"""Those of an environment: what each runs. The folder that ``python -c`` looks into is not on the path of a command."""


def commands(folder: Path, python: str) -> str:
    """Make the commands that an environment has, which begin from ``python``; return a PATH with them in front."""
    folder.mkdir()
    for name, code in _COMMANDS.items():
        words = [python, *(["-c", code] if code else [])]
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o700)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


class Reader:
    """Somebody who does what a tutorial says, in one folder."""

    def __init__(self, folder: Path, port: int, stack: ExitStack, path: str) -> None:
        self.folder, self.port, self.stack = folder, port, stack
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("RAG_", "PYTEST_"))}
        self.env["COLUMNS"] = "100"
        self.env["PATH"] = path

    def does(self, before: str, language: str, block: str) -> None:
        """Do what one block of a page says, with the words that stand above it."""
        block = block.replace("8000", str(self.port))
        for name in _DELETED.findall(before):
            (self.folder / name).unlink()
        if language == "console":
            for command, *shown in (each.splitlines() for each in block.split("$ ")[1:]):
                self.runs(command, shown)
        elif "Replace the function" in before:
            self.replaces(_NAMED.findall(before)[0], block)
        else:
            file = self.folder / _NAMED.findall(before)[-1]
            added = "line to" in before
            file.write_text((file.read_text(encoding="utf-8") if added else "") + block, encoding="utf-8")

    def replaces(self, name: str, block: str) -> None:
        """Put functions in the place of the first of them, and the import that the page names."""
        file = self.folder / name
        text = re.sub(
            r"^def score.*?(?=^\S)", lambda _: f"{block}\n\n", file.read_text(), flags=re.MULTILINE | re.DOTALL
        )
        file.write_text(text.replace("import re\n", "import math\nimport re\n"), encoding="utf-8")

    def runs(self, command: str, shown: list[str]) -> None:
        """Run a command and compare what it prints. A service goes on until the page says that it is stopped."""
        if command.startswith(_NOT_RUN):
            return
        if command == "python service.py":
            self.stack.enter_context(service(self.folder, self.port, self.env))
            return
        ended = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120, check=False
        )
        printed = ended.stdout + ended.stderr
        assert ended.returncode < _CANNOT_RUN, f"$ {command}\n{printed}"
        pattern = "\n".join(".*" if line == "…" else re.escape(line).replace("…", ".*") for line in shown)
        assert re.search(pattern.replace("\n.*\n", "\n(?:.*\n)*?"), printed), f"$ {command}\n{printed}"


@contextmanager
def service(folder: Path, port: int, env: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen([sys.executable, "service.py"], cwd=folder, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
                except urllib.error.HTTPError:
                    break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, started_python: str
) -> None:
    words, *parts = _FENCE.split(page.read_text(encoding="utf-8"))
    befores = [words, *parts[3::4]]
    blocks = list(zip(befores, parts[0::4], parts[1::4], strict=False))
    assert len(blocks) > 4
    with ExitStack() as stack:
        path = commands(tmp_path_factory.mktemp("environment") / "bin", started_python)
        reader = Reader(tmp_path, free_port(), stack, path)
        for before, language, block in blocks:
            if "my_docs" in before and not (tmp_path / "my_docs").exists():
                (tmp_path / "project").mkdir()
                (tmp_path / "docs").rename(tmp_path / "project" / "my_docs")
                reader.folder = tmp_path / "project"
            if "Stop the service" in before:
                stack.close()
            reader.does(before, language, block)
