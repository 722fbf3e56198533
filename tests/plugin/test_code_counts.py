"""Rows that today's code would not produce are not resumed: a copy of the package is edited between two runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.conftest import TEST, Suite
from tests.plugin.study import ROOT, replay

pytestmark = pytest.mark.usefixtures("cold_python")
LIMIT = "--rag-limit=5"
Ran = tuple[int, dict[str, float], list[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a copy of the package, which all runs here import."""
    folder = tmp_path_factory.mktemp("edited")
    # Byte code goes along, which is a second of the first run; not the files that others are just writing.
    shutil.copytree(ROOT / "rag_harness", folder / "rag_harness", ignore=shutil.ignore_patterns("*.pyc.*"))
    with pytest.MonkeyPatch.context() as patched:
        # `python -m` would put the repository in front of it.
        patched.setenv("PYTHONSAFEPATH", "1")
        yield folder


@pytest.fixture
def copy(place: Path) -> Iterator[Path]:
    """The copy of the package, as it was again after a test."""
    folder = place / "rag_harness"
    before = {file: file.read_bytes() for file in folder.rglob("*.py")}
    yield folder
    for file, content in before.items():
        if file.read_bytes() != content:
            file.write_bytes(content)


@pytest.fixture(scope="module")
def e3(place: Path) -> Ran:
    """What the unedited code answers."""
    return ran(place, "e3", place / "out")


@pytest.fixture
def out(place: Path, e3: Ran, tmp_path: Path) -> Path:
    """The rows of that run, which a test goes on from."""
    return shutil.copytree(place / "out", tmp_path / "out")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def ran(place: Path, experiment: str, out: Path) -> Ran:
    """Run an experiment; return how many rows were resumed, its measures, and what was ranked first."""
    options = (f"--rag-output={out}", "--rag-mode=auto", "-o", "rag_attribute=false")
    said = replay(place, "-m", experiment, LIMIT, *options)
    assert said.returncode == 0, said.stdout[-3000:]
    suite = json.loads((out / "run.json").read_text())["suites"][experiment]
    resumed = 5 if suite["resumed"] == "all" else len(suite["resumed"])
    rows = [json.loads(line) for line in (out / suite["file"]).read_text().splitlines()]
    now = {row["query_id"]: row for row in rows if row["fingerprint"] in suite["fingerprints"]}
    summary = json.loads((out / "summary.json").read_text())[experiment]
    return resumed, summary, [now[name]["retrieved_chunks"][0]["chunk_id"] for name in sorted(now)]


def asked(suite: Suite) -> int:
    """Run T3 on four questions; return how many of them were asked."""
    suite.run("-m", "t3").assert_outcomes(passed=4)
    resumed = json.loads((suite.path / "output" / "run.json").read_text())["suites"]["t3"]["resumed"]
    return 0 if resumed == "all" else 4 - len(resumed)


@pytest.mark.long
def test_bm25_with_other_constants_answers_anew(
    place: Path, copy: Path, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(place))
    suite.pytester.makepyfile(TEST.replace("e3", "t3"))
    assert asked(suite) == 4
    edit(copy / "retrieval/bm25.py", "K1, B = 0.9, 0.4", "K1, B = 0, 0")
    assert asked(suite) == 4


@pytest.mark.long
def test_a_reranker_that_is_turned_round_answers_anew(
    place: Path, copy: Path, e3: Ran, out: Path, tmp_path: Path
) -> None:
    _, before, first = e3
    edit(copy / "models/rerankers.py", "np.argsort(-scores", "np.argsort(scores")
    resumed, after, others = ran(place, "e3", out)
    _, afresh, anew = ran(place, "e3", tmp_path / "fresh")
    assert (resumed, others) == (0, anew)
    assert after["recall@5"] == afresh["recall@5"] < before["recall@5"]
    assert first != others
    assert ran(place, "e3", out)[0] == 5
