"""The training script, on a tiny RAGTruth that is made up here, with vectors that are made up too."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_harness.evaluation.judges.embedded.features import SENTENCE_NAMES
from tests.unit.evaluation.judges.embedded.made_up import WordEmbedder

ROOT = Path(__file__).parents[5]
GOODS = ("tents", "stoves", "ropes", "boots", "lamps", "axes", "maps", "coats", "mugs", "beds", "skis", "kites")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("sklearn")
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("benchmarks are no part of an installed package")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("faithfulness_training")


@pytest.fixture
def ragtruth(tmp_path: Path) -> Path:
    """For each of three tasks twelve sources, each with one response that is right and one with a marked lie."""
    folder = tmp_path / "ragtruth"
    folder.mkdir()
    for task in ("qa", "summary", "data2txt"):
        rows = [_row(task, number, goods) for number, goods in enumerate(GOODS)]
        (folder / f"{task}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return folder


def _row(task: str, number: int, goods: str) -> dict[str, object]:
    text = f"The shop sells {goods} for {number + 20} euros. They are made in Norway."
    sources = {
        "qa": {
            "question": f"What do {goods} cost?",
            "passages": f"passage 1:{text}\n\npassage 2:It opens at noon.\n\n",
        },
        "summary": text,
        "data2txt": {"name": f"Shop of {goods}", "attributes": {"OutdoorSeating": False}, "sells": text},
    }
    lie = "Its owner was born on Mars in 1512."
    wrong = f"The shop sells {goods}. {lie}"
    marked = {"start": wrong.index(lie), "end": len(wrong), "text": lie, "implicit_true": False}
    implied = {"start": 0, "end": 8, "text": "The shop", "implicit_true": True}
    return {
        "source_id": f"{task}{number}",
        "source": sources[task],
        "responses": [
            {"response": f"The shop sells {goods} for {number + 20} euros.", "labels": [implied]},
            {"response": wrong, "labels": [marked]},
        ],
    }


def test_it_learns_what_is_marked_and_writes_coefficients(
    script: ModuleType,
    ragtruth: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = tmp_path / "coefficients.json"
    monkeypatch.setattr(script, "SentenceTransformersEmbedder", WordEmbedder)
    monkeypatch.setattr(script, "COEFFICIENTS_FILE", made)
    monkeypatch.setattr(sys, "argv", ["train", str(ragtruth), "--cache", str(tmp_path / "cache"), "--write"])
    script.main()
    printed = capsys.readouterr().out
    assert "72 responses, 36 hallucinated; 5 folds by source" in printed
    judged = next(line for line in printed.splitlines() if line.startswith("sentence model"))
    assert "100.0" in judged
    said = json.loads(made.read_text(encoding="utf-8"))
    assert list(said["sentence"]["features"]) == list(SENTENCE_NAMES)
    assert set(said["data"]) == {"qa.jsonl", "summary.jsonl", "data2txt.jsonl"}
    # A second run reads what the first has kept, and writes the same bytes.
    before = made.read_bytes()
    monkeypatch.setattr(WordEmbedder, "pieces", None)
    script.main()
    assert made.read_bytes() == before


def test_what_is_true_although_the_source_does_not_say_it_is_not_marked(script: ModuleType, ragtruth: Path) -> None:
    found = list(script.responses(ragtruth))
    assert [bool(response.marked) for response in found] == [False, True] * 36
    assert found[0].passages == ("The shop sells tents for 20 euros. They are made in Norway.", "It opens at noon.")


def test_folds_never_share_a_source(script: ModuleType) -> None:
    groups = np.repeat(np.arange(20), 3)
    for training, test in script.folds(groups, np.tile([0, 1, 0], 20)):
        assert not set(groups[training]) & set(groups[test])
        assert (training ^ test).all()


def test_a_sentence_is_wrong_that_a_marked_span_touches(script: ModuleType) -> None:
    assert [script.overlaps(span, [(5, 10)]) for span in ((0, 5), (0, 6), (9, 20), (10, 20))] == [0, 1, 1, 0]


def test_the_threshold_is_that_of_the_best_f1_smoothed(script: ModuleType) -> None:
    p = np.array([0.1] * 50 + [0.9] * 50)
    assert 0.1 < script.smoothed_threshold(p, np.array([0] * 50 + [1] * 50)) < 0.9
