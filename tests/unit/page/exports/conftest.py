"""A small run with verdicts, and the command that exports it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.records.manifest import read_manifest
from tests.unit.tables.trial_run import write_output

GATES: list[dict[str, Any]] = [
    {
        "gate": "e3: recall@5 >= 0.4",
        "state": "passed",
        "value": 0.5,
        "threshold": 0.4,
        "interval": [0.2, None],
        "n": 10,
    },
    {
        "gate": "e3[topic=t1]: token_f1 >= 0.9",
        "state": "FAILED",
        "value": 0.1,
        "threshold": 0.9,
        "interval": None,
        "n": 5,
    },
    {"gate": "golden: recall@5 >= 0.9", "state": "passed", "value": 1.0, "threshold": 0.9, "interval": None, "n": 1},
]
Exporting = Callable[..., tuple[int, str]]


def write_summary(output: Path, gates: list[dict[str, Any]], run: str = "") -> None:
    content = {"run": run or read_manifest(output).date, "gates": gates}
    (output / "summary.json").write_text(json.dumps(content))


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """Force nothing to the disk, which takes some milliseconds for each file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = write_output(tmp_path / "output")
    write_summary(folder, GATES)
    return folder


@pytest.fixture
def exporting(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Exporting:
    """Export the run, and return the status and what was said."""
    monkeypatch.chdir(tmp_path)

    def run(target: str, *arguments: str) -> tuple[int, str]:
        status = main(["results", "export", str(output), "--to", target, *arguments])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run
