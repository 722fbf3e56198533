"""Rows that today's code would not produce are not resumed: a copy of the package is edited between two runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.plugin.study import ROOT, replay

pytestmark = pytest.mark.usefixtures("cold_python")
LIMIT = "--rag-limit=5"


@pytest.fixture(autouse=True)
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, which the runs of a test import."""
    folder = tmp_path / "rag_harness"
    shutil.copytree(ROOT / "rag_harness", folder, ignore=shutil.ignore_patterns("__pycache__"))
    # `python -m` would put the repository in front of it.
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def ran(folder: Path, experiment: str, *args: str) -> tuple[int, dict[str, float], list[str]]:
    """Run an experiment; return how many rows were resumed, its measures, and what was ranked first."""
    said = replay(folder, "-m", experiment, LIMIT, "--rag-mode=auto", "-o", "rag_attribute=false", *args)
    assert said.returncode == 0, said.stdout[-3000:]
    out = next((Path(arg.partition("=")[2]) for arg in args if arg.startswith("--rag-output")), folder / "out")
    suite = json.loads((out / "run.json").read_text())["suites"][experiment]
    resumed = 5 if suite["resumed"] == "all" else len(suite["resumed"])
    rows = [json.loads(line) for line in (out / suite["file"]).read_text().splitlines()]
    now = {row["query_id"]: row for row in rows if row["fingerprint"] in suite["fingerprints"]}
    summary = json.loads((out / "summary.json").read_text())[experiment]
    return resumed, summary, [now[name]["retrieved_chunks"][0]["chunk_id"] for name in sorted(now)]


def test_a_reranker_that_is_turned_round_answers_anew(tmp_path: Path, copy: Path) -> None:
    _, before, first = ran(tmp_path, "e3")
    edit(copy / "models/rerankers/late_interaction.py", "np.argsort(-scores", "np.argsort(scores")
    resumed, after, others = ran(tmp_path, "e3")
    _, afresh, anew = ran(tmp_path, "e3", f"--rag-output={tmp_path / 'fresh'}")
    assert (resumed, others) == (0, anew)
    assert after["recall@5"] == afresh["recall@5"] < before["recall@5"]
    assert first != others
    assert ran(tmp_path, "e3")[0] == 5


def test_bm25_with_other_constants_answers_anew(tmp_path: Path, copy: Path) -> None:
    ran(tmp_path, "t3")
    edit(copy / "retrieval/lexical.py", "K1, B = 0.9, 0.4", "K1, B = 0, 0")
    assert ran(tmp_path, "t3")[0] == 0


def test_the_code_of_another_experiment_and_a_comment_leave_rows_alone(tmp_path: Path, copy: Path) -> None:
    ran(tmp_path, "e3")
    with (copy / "studies/reliability/scales.py").open("a") as stream:
        stream.write("\nANOTHER = 1\n")
    assert ran(tmp_path, "e3")[0] == 5
    with (copy / "models/rerankers/late_interaction.py").open("a") as stream:
        stream.write("\n# a comment\n")
    assert ran(tmp_path, "e3")[0] == 5
