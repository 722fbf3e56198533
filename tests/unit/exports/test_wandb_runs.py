"""Runs in Weights & Biases: names that it takes, the same run the second time.

A stub with its rules stands in for it; ``-m long`` exports with the real client, without a network.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
import venv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.exports.wandb_runs import summary_name
from tests.unit.exports.conftest import Exporting

ROOT = Path(__file__).parents[3]


class RefusedError(Exception):
    pass


class Client(types.ModuleType):
    """What the client is asked for, with what its server refuses."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.runs: dict[str, dict[str, Any]] = {}
        self.errors = SimpleNamespace(Error=RefusedError)
        self.has_key = True
        self.settings: dict[str, Any] = {}

    def Settings(self, **settings: Any) -> dict[str, Any]:  # noqa: N802
        return settings

    def init(self, *, id: str, resume: str, settings: dict[str, Any], **more: Any) -> Any:
        if not self.has_key:
            raise RefusedError("no API key")
        assert re.fullmatch(r"[\w\-]{1,64}", id, re.ASCII)
        assert resume == "allow"
        self.settings = settings
        summary = self.runs.setdefault(id, {})
        return SimpleNamespace(summary=summary, finish=lambda: None)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()
    monkeypatch.setitem(sys.modules, "wandb", made)
    return made


def test_an_experiment_is_a_run(exporting: Exporting, client: Client) -> None:
    status, _ = exporting("wandb", "--url", "http://127.0.0.1:8080")
    assert (status, client.settings["base_url"], len(client.runs)) == (0, "http://127.0.0.1:8080", 2)
    found = next(summary for name, summary in client.runs.items() if name.endswith("-e3"))
    assert found["recall_5_low"] <= found["recall_5"] <= found["recall_5_high"]
    assert found["recall_5_direct"] == found["recall_5"]
    assert found["gate_02"] == "FAILED: e3[topic=t1]: token_f1 >= 0.9"
    assert found["gates"] == "FAILED, passed"
    assert all(re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", key) for summary in client.runs.values() for key in summary)


def test_a_second_export_changes_nothing(exporting: Exporting, client: Client) -> None:
    exporting("wandb")
    before = repr(client.runs)
    assert exporting("wandb")[0] == 0
    assert repr(client.runs) == before


def test_without_a_key_or_the_client(exporting: Exporting, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.has_key = False
    assert "Weights & Biases did not take the scores: no API key" in exporting("wandb")[1]
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "[wandb]" in exporting("wandb")[1]


@pytest.mark.parametrize(("said", "name"), [("recall@5", "recall_5"), ("a b=c", "a_b_c"), ("5xx", "_5xx")])
def test_names_are_those_that_it_takes(said: str, name: str) -> None:
    assert summary_name(said) == name


@pytest.mark.long
def test_the_real_client_without_a_network(output: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT, "wandb"], check=True)
    check_real(python, output, tmp_path)


def check_real(python: Path, output: Path, folder: Path) -> None:
    """Export into a file, as the client does it where it is told to be offline."""
    command: list[str | Path] = [python, "-m", "rag_harness", "results", "export", str(output), "--to", "wandb"]
    off = os.environ | {"WANDB_MODE": "offline", "WANDB_DIR": str(folder), "WANDB_ERROR_REPORTING": "false"}
    said = subprocess.run(command, check=True, cwd=folder, env=off, capture_output=True, text=True).stdout
    written = sorted((folder / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(written) == said.count(": run ") == 2
    assert all(b"recall_5_low" in each.read_bytes() for each in written)
