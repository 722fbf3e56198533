"""A small git repository of a test's own, which reads nobody's configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class Repository:
    """A folder under git; what is in it is committed when that is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")

    def git(self, *asked: str) -> str:
        return subprocess.run(["git", *asked], cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def write(self, **files: str) -> None:
        """Write files by their names without the suffix, which is ``.md``."""
        for name, text in files.items():
            (self.folder / f"{name}.md").write_text(text, encoding="utf-8")

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "state")


def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    nobody = {f"GIT_{role}_{part}": "nobody" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for name, value in {**nobody, **alone, "GIT_CEILING_DIRECTORIES": str(folder.parent)}.items():
        monkeypatch.setenv(name, value)
    folder.mkdir(exist_ok=True)
    return Repository(folder)
