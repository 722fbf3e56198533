"""``rag-harness report -o badge.json``: the verdict of a run as shields.io reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.page import format_of
from tests.unit.page.runs import gate, rows_of, summarise, write_study
from tests.unit.suite_tables import write_run

KNOWN = {"schemaVersion": int, "label": str, "message": str, "color": str}
"""Properties by the schema of endpoints; all that are required are among them."""


def badge(output: Path, file: str = "badge.json") -> dict[str, Any]:
    place = output.parent / file
    assert main(["report", str(output), "-o", str(place)]) == 0
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    assert {name: type(value) for name, value in found.items()} == KNOWN
    assert (found["schemaVersion"], found["label"]) == (1, "RAG gates")
    assert found["message"]  # may not be empty
    return found


@pytest.mark.parametrize(
    ("states", "message", "color"),
    [
        (["passed", "passed"], "2 of 2 gates passed, 0 failed", "brightgreen"),
        (["passed", "failed", "undecided"], "1 of 3 gates failed, 1 undecided, 1 passed", "red"),
        (["passed", "undecided"], "1 of 2 gates undecided, 0 failed, 1 passed", "yellow"),
        (["not judged"], "no verdict", "lightgrey"),
        ([], "no verdict", "lightgrey"),
    ],
)
def test_a_badge_counts_verdicts(tmp_path: Path, states: list[str], message: str, color: str) -> None:
    output = write_study(tmp_path / "output")
    summarise(output, *(gate(f"e3: recall@5 >= 0.{n}", each) for n, each in enumerate(states)))
    found = badge(output)
    assert (found["message"], found["color"]) == (message, color)


def test_a_simulated_model_is_called_so(tmp_path: Path) -> None:
    output = tmp_path / "output"
    write_run(output, rows_of("e3", 12, 9, model="simulated/gpt"))
    summarise(output, gate("e3: recall@5 >= 0.7"))
    assert badge(output)["message"] == "1 of 1 gate passed, 0 failed (SIMULATED)"


def test_a_badge_is_told_by_its_name_and_another_json_file_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert format_of(Path("out/main-badge.json")) == "badge"
    output = write_study(tmp_path / "output")
    assert main(["report", str(output), "-o", str(tmp_path / "report.json")]) == CANNOT_RUN
    assert ".parquet, badge.json" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(output), "--format=badge"]) == 0
    assert json.loads(Path("badge.json").read_text(encoding="utf-8"))["message"] == "no verdict"
