"""What ships replays: the study's recordings, without torch, weights, tokenizers, keys or a network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rag_harness
from docs.made.recorded import RECORDED, race_of
from rag_harness.__main__ import main
from rag_harness.core.settings.configurations import read_configuration
from tests.plugin.study import BLOCKED, BLOCKER, ROOT, WORKERS, replay

pytestmark = pytest.mark.usefixtures("cold_python")


def test_the_study_replays(study: Path) -> None:
    assert "800 passed" in (study / "said.txt").read_text()
    rows = [json.loads(line) for line in (study / "out" / "e4_reasoning_rag.jsonl").read_text().splitlines()]
    assert {(row["dry_run"], row["timings_recorded"], row["profile"]) for row in rows} == {(True, True, "embedded")}


TIMES = {"retrieval_time_ms", "rerank_time_ms", "llm_time_ms", "ttft_ms", "total_time_ms", "waited_ms", "finished_at"}


def _without_times(line: str) -> str:
    row = json.loads(line)
    for stage in row["stages"]:
        del stage["ms"]
    return json.dumps({name: value for name, value in row.items() if name not in TIMES})


def test_rows_of_a_replay_are_the_same_with_any_number_of_workers(
    study: Path, study_cache: Path, started_python: str, tmp_path: Path
) -> None:
    """Threads, batches and the order of trials must move no digit of a score."""
    # Rows are looked at, not causes. These processes have one thread each, that of the study has many.
    options = ("--rag-limit=40", *WORKERS, "-o", "rag_attribute=false", f"--rag-cache-dir={study_cache}")
    result = replay(tmp_path, "-m", "e2 or e3", *options, python=started_python)
    assert result.returncode == 0, result.stdout[-2000:]
    for name in ("e2_standard_rag", "e3_filtered_rag"):
        alone, shared = (
            {_without_times(line) for line in (folder / "out" / f"{name}.jsonl").read_text().splitlines()}
            for folder in (study, tmp_path)
        )
        assert len(shared) == 40
        assert shared <= alone


def _planned(folder: Path) -> tuple[int, int]:
    """Return how many questions were planned, and how many of them became several."""
    rows = [json.loads(line) for line in (folder / "out" / "e4__plan.jsonl").read_text().splitlines()]
    planned = [decision["value"] for row in rows for decision in row["decisions"] if decision["name"] == "plan"]
    return len(planned), sum(value > 1 for value in planned)


@pytest.mark.long
def test_a_part_of_what_is_asked_beside_the_four_replays(
    study_cache: Path, started_python: str, tmp_path: Path
) -> None:
    """Questions of all kinds, of three experiments, each once; the next tests replay all."""
    part = ("-k", "multi_hop or 00", "--k=10", "-o", "rag_attribute=false", f"--rag-cache-dir={study_cache}")
    result = replay(tmp_path, "-m", "plain or plan or tuned", *part, python=started_python)
    assert result.returncode == 0, result.stdout[-2000:]
    assert "177 passed" in result.stdout
    assert "RecordingMissError" not in result.stdout
    assert _planned(tmp_path) == (59, 24)


@pytest.mark.long
def test_the_two_questions_of_the_study_replay(tmp_path: Path) -> None:
    """All of them, with what is run again of those that failed."""
    result = replay(tmp_path, "-m", "plain or plan")
    assert result.returncode == 0, result.stdout[-2000:]
    assert "400 passed" in result.stdout
    assert "RecordingMissError" not in result.stdout
    assert _planned(tmp_path) == (200, 51)


@pytest.mark.long
def test_the_search_of_e3_tuned_replays_and_chooses_what_ships(tmp_path: Path) -> None:
    study = Path(rag_harness.__file__).parent / "studies"
    places = ["--output", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "none"), "--kb", str(ROOT / "data/kb")]
    chosen = tmp_path / "chosen.toml"
    command = ["tune", str(study / "tuning.toml"), "--mode", "replay", *places, "-o", str(chosen)]
    assert main([*command, "--project", str(ROOT)]) == 0
    assert read_configuration(chosen).by_name == read_configuration(study / "tuned.toml").by_name
    # The drawing of the race shows these figures.
    assert race_of(tmp_path / "out") == RECORDED["race"], "record it again: python -m docs.made.screenshots"


@pytest.mark.long
def test_e3_tuned_replays_beside_e3(study_cache: Path, tmp_path: Path) -> None:
    # The study has judged what e3 answers, and looked into its causes.
    result = replay(tmp_path, "-m", "e3 or tuned", f"--rag-cache-dir={study_cache}")
    assert result.returncode == 0, result.stdout[-2000:]
    assert "400 passed" in result.stdout
    assert "undecided   e3-tuned: evidence_recall >= e3 @95% paired" in result.stdout
    assert "13 gates passed, 1 gate undecided" in result.stdout


@pytest.mark.long
def test_the_golden_suite_replays_and_its_gates_hold(tmp_path: Path) -> None:
    result = replay(tmp_path, "test_retrieval_golden", "--k=10")
    assert result.returncode == 0, result.stdout[-2000:]
    assert "passed      golden: recall@10 >= " in result.stdout


def test_recordings_are_small(tmp_path: Path) -> None:
    weight = sum(file.stat().st_size for file in (ROOT / "cassettes").rglob("*") if file.is_file())
    assert weight < 36_000_000


@pytest.mark.parametrize("name", BLOCKED)
def test_the_blocker_blocks(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    command = [sys.executable, "-c", f"import {name}"]
    result = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert f"{name} is not there" in result.stderr
