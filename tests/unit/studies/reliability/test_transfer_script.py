"""The script that tries the signals of retrieval on other data, on tasks that are made up here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_harness.evaluation.judges.calibration.confidence import Logistic
from rag_harness.studies.reliability_retrieval import Signals

ROOT = Path(__file__).parents[4]
MTRAGUN = ROOT.parent / "shared/data/mtragun/reference.jsonl"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("benchmarks are no part of an installed package")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("reliability_transfer")


def _row(kind: str, passages: int, *turns: str, collection: str = "shop") -> dict[str, Any]:
    said = [{"speaker": "user", "text": turn} for turn in turns]
    spoken = [each for turn in said for each in (turn, {"speaker": "agent", "text": "Yes."})][:-1]
    contexts = [{"document_id": f"page{number}", "text": f"\nword{number} tents"} for number in range(passages)]
    return {"answerability": [kind], "Collection": collection, "input": spoken, "contexts": contexts}


def _measured(script: ModuleType, kind: str, passages: int, relevance: float | None, collection: str = "shop") -> Any:
    task = script.task_of(_row(kind, passages, f"{kind} {relevance}", collection=collection))
    found = Signals(relevance=relevance, coverage=relevance)
    return script.Measured(task, found, found)


def test_a_task_has_the_turns_of_the_user_alone_and_its_passages(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "reference.jsonl"
    file.write_text(json.dumps(_row("PARTIAL", 2, "Do you sell tents?", "How much?")) + "\n", encoding="utf-8")
    [task] = script.read_tasks(file)
    assert (task.kind, task.collection, task.conversation) == ("PARTIAL", "shop", "Do you sell tents?")
    assert [each.text for each in task.passages] == ["word0 tents", "word1 tents"]
    forms = {name: made(task.turns) for name, made in script.FORMS.items()}
    assert forms == {"last turn": "How much?", "turns joined": "Do you sell tents?\nHow much?"}


def test_scores_stand_for_answerable_and_the_unmeasured_is_in_the_middle(script: ModuleType) -> None:
    each = [
        _measured(script, "ANSWERABLE", 2, 0.9),
        _measured(script, "ANSWERABLE", 1, None),
        _measured(script, "PARTIAL", 2, 0.1),
        _measured(script, "UNDERSPECIFIED", 0, None),
    ]
    scorer = script.scorers({})["relevance"]
    assert script.scores_of(each, scorer) == pytest.approx([0.9, 0.5, 0.1, -0.9])
    assert script.estimated(each, scorer).value == 1.0
    assert script.sizes({"all": each}) == "2 against 2"
    assert len(script.with_passages(each)) == 3
    assert [one.task.kind for one in script.only(each, "PARTIAL")] == ["ANSWERABLE", "ANSWERABLE", "PARTIAL"]


def test_a_model_is_asked_with_what_retrieval_tells(script: ModuleType) -> None:
    against = Logistic(
        n=9,
        positive=4,
        intercept=0.0,
        means={"relevance": 0.5},
        spreads={"relevance": 0.1},
        coefficients={"relevance": -1},
    )
    scored = script.scorers({"against": against})
    one, other = _measured(script, "ANSWERABLE", 2, 0.9), _measured(script, "PARTIAL", 1, 0.1)
    assert scored["against"](one) < 0.5 < scored["against"](other)
    assert scored["RQ"](one) > scored["RQ"](other)
    assert scored["no signal: fewer passages"](one) < scored["no signal: fewer passages"](other)


def test_within_collections_no_pair_of_two_of_them_counts(script: ModuleType) -> None:
    each = [
        _measured(script, "ANSWERABLE", 1, 0.9),
        _measured(script, "PARTIAL", 1, 0.8),
        _measured(script, "ANSWERABLE", 1, 0.3, collection="bank"),
        _measured(script, "PARTIAL", 1, 0.2, collection="bank"),
    ]
    scorer = script.scorers({})["relevance"]
    assert script.estimated(each, scorer).value == 0.75
    assert script.estimated(each, scorer, within=True).value == 1.0


def test_words_are_as_rare_as_the_passages_of_their_collection_have_them(script: ModuleType) -> None:
    tasks = [script.task_of(_row("PARTIAL", count, "Which?", collection=name)) for name, count in (("a", 3), ("b", 1))]
    rarities = script.rarity_by_collection([*tasks, tasks[0]])
    assert rarities["a"].of("word2") > rarities["a"].of("tent")
    assert rarities["b"].of("word2") > rarities["b"].of("word0")


def test_the_gate_is_that_of_the_thresholds(script: ModuleType) -> None:
    assert [script.way(found) for found in (0.56, 0.55, 0.35, 0.34)] == ["go on", "fallback", "fallback", "abstain"]


@pytest.mark.skipif(not MTRAGUN.exists(), reason=f"needs {MTRAGUN}")
def test_the_tasks_are_those_that_the_documentation_counts(script: ModuleType) -> None:
    tasks = script.read_tasks(MTRAGUN)
    kept = [task.kind for task in tasks if task.passages]
    assert [kept.count(kind) for kind in ("ANSWERABLE", "PARTIAL", "UNDERSPECIFIED", "UNANSWERABLE")] == [
        285,
        47,
        45,
        0,
    ]
    assert len(tasks) == 507
