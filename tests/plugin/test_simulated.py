"""The recording by the simulated model: it replays, it is said to be simulated, and its page has its figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from rag_harness.models.simulated.fault_rates import FAULTS
from tests.plugin.study import ROOT, replay

pytestmark = pytest.mark.usefixtures("cold_python")
PAGE = ROOT / "docs/results/simulated.md"
RATES = ROOT / "docs/reference/simulated.md"
NAME = "simulated/known-faults"


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Replay the study once for all workers, without torch, as the page says."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "simulated"
    with FileLock(f"{folder}.lock"):
        if not (folder / "said.txt").exists():
            folder.mkdir(exist_ok=True)
            report = f"--rag-report={folder / 'report.html'}"
            result = replay(folder, "-c", str(ROOT / "simulated.ini"), "-m", "e1 or e2 or e3 or e4", report)
            assert result.returncode == 0, result.stdout[-2000:]
            (folder / "said.txt").write_text(result.stdout)
    return folder


def test_the_study_of_the_simulated_model_replays_and_its_gates_hold(simulated: Path) -> None:
    said = (simulated / "said.txt").read_text()
    assert "800 passed" in said
    assert "RecordingMissError" not in said
    assert re.search(r"passed +e4: factuality > e1 @95%", said)
    causes = [json.loads(line) for line in (simulated / "out/causes.jsonl").read_text().splitlines()]
    again = {cause["limits"] for cause in causes if cause["experiment"] != "e1"}
    assert again == {""}, "failed trials are run again without a recording"


def test_it_is_said_to_be_simulated_wherever_its_figures_stand(simulated: Path) -> None:
    said, out = (simulated / "said.txt").read_text(), simulated / "out"
    assert said.startswith(f"rag: 800 trials, profile simulated, mode replay, answers by {NAME} (SIMULATED, ")
    assert f"by {NAME}, SIMULATED answers" in " ".join(said.split())
    assert json.loads((out / "summary.json").read_text())["profile"] == "simulated"
    assert json.loads((out / "run.json").read_text())["settings"]["chat_model"] == NAME
    rows = [json.loads(line) for line in (out / "e4_reasoning_rag.jsonl").read_text().splitlines()]
    assert {(row["model"], row["profile"], row["recorded_at"]) for row in rows} == {(NAME, "simulated", "")}
    for text in ((simulated / "report.html").read_text(), _report(simulated)):
        assert "The answers of e1, e2, e3, e4 are SIMULATED: " in text
        assert f"{NAME} (SIMULATED, with planted faults" in text.replace("\\", "")


def _report(simulated: Path) -> str:
    file = simulated / "report.md"
    subprocess.run([sys.executable, "-m", "rag_harness", "report", str(simulated / "out"), "-o", str(file)], check=True)
    return file.read_text(encoding="utf-8")


def test_the_page_has_the_recount_of_this_code(simulated: Path) -> None:
    """``benchmarks/simulated_faults.py`` prints tables; each line of them stands on the page."""
    script = ROOT / "benchmarks/simulated_faults.py"
    command = [sys.executable, str(script), str(simulated / "out")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    page = PAGE.read_text(encoding="utf-8").splitlines()
    lines = [line for line in said.splitlines() if line.startswith("|")]
    assert len(lines) > 40
    assert not [line for line in lines if line not in page]


def test_the_page_has_the_rates_of_the_model() -> None:
    page = RATES.read_text(encoding="utf-8")
    for name, fault in FAULTS.items():
        assert f"| {name} | {fault.possible} | {fault.made} | {fault.rate:.0%} | {fault.reasoned:.0%} |" in page


def test_vectors_and_judgements_are_those_of_profile_embedded() -> None:
    """They are shared, and answers are computed: there is nothing to keep under the profile's own name."""
    assert not (ROOT / "cassettes/simulated").exists()
