"""Signals of retrieval: absolute scores, a margin that a copy does not hide, coverage by rarity, dispersion."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import pstdev
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Hit
from rag_harness.evaluation.judges.calibration.confidence import Logistic
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.reliability_retrieval import (
    COSINE,
    LOGIT,
    SCALES,
    Scale,
    Signals,
    coverage,
    original_quality,
    quality,
    raw_quality,
    scale_of,
    signals,
)
from tests.unit.studies.reliability.hits import hit

# Signals of retrieval: absolute scores, a margin that a copy does not hide, coverage by rarity, dispersion.

SCALE = Scale("max_sim", middle=0.5, spread=0.1, margin=0.2, dispersion=0.1)
WINDOW = "Lamps can be returned within 45 days of delivery with the receipt."
COPY = "Lamps can be returned within 30 days of delivery with the receipt."
OTHER = "Express parcels leave the warehouse before noon on working days."
FOUND = [
    hit(WINDOW, number=0, max_sim=0.7),
    hit(COPY, "returns-2024.md", 1, max_sim=0.69),
    hit(OTHER, "express.md", 2, max_sim=0.4),
]
RARITY = Rarity(one.chunk for one in FOUND)


def test_each_signal_by_hand() -> None:
    found = signals("return a lamp", FOUND, FOUND[:1], RARITY, SCALE)
    assert found.relevance == pytest.approx(1 / (1 + math.exp(-2)))
    assert found.margin == 1.0  # 0.3 to the other page, not 0.01 to the copy
    assert found.coverage == 1.0
    assert found.dispersion == pytest.approx(min(1, pstdev([0.7, 0.69, 0.4]) / 0.1))


def test_the_margin_passes_over_a_near_duplicate() -> None:
    assert raw_quality(FOUND, "max_sim").gap == pytest.approx(0.3)  # type: ignore[union-attr]
    assert raw_quality([FOUND[0], FOUND[2], FOUND[1]], "max_sim") == raw_quality(FOUND, "max_sim")


def test_where_all_say_the_same_there_is_no_margin() -> None:
    assert signals("return a lamp", FOUND[:2], FOUND[:1], RARITY, SCALE).margin is None


def test_coverage_weighs_rare_words() -> None:
    only_frequent = coverage("lamps warranty", [hit("Lamps and more lamps.")], RARITY)
    only_rare = coverage("lamps warranty", [hit("The warranty.")], RARITY)
    assert only_frequent is not None
    assert only_rare is not None
    assert 0 < only_frequent < 0.5 < only_rare < 1
    assert coverage("warranty", [], RARITY) == 0


def test_a_question_without_content_words_says_nothing_of_its_sources() -> None:
    assert coverage("What is it?", FOUND, RARITY) is None
    nothing = signals("What is it?", [], [], RARITY, SCALE)
    assert (nothing.coverage, quality(nothing)) == (None, 0)
    assert {one.name: one.reason for one in nothing.decisions()}["signal: coverage"] == (
        "the question has no content words"
    )
    found = signals("What is it?", FOUND, FOUND, RARITY, SCALE)
    assert dict(found.reasons) == {"coverage": "the question has no content words"}


def test_one_hit_has_no_dispersion() -> None:
    found = signals("return a lamp", FOUND[:1], FOUND[:1], RARITY, SCALE)
    assert found.dispersion is None
    assert dict(found.reasons)["dispersion"] == "one hit only"
    assert quality(found) == quality(replace(found, dispersion=None, margin=None))


def test_a_scale_that_was_fitted_to_nothing_says_so_beside_the_signal() -> None:
    reasons = {one.name: one.reason for one in signals("lamp", [hit(WINDOW, logit=2.0)], [], RARITY, LOGIT).decisions()}
    assert reasons["signal: relevance"] == "scale not fitted"
    reasons = {one.name: one.reason for one in signals("lamp", FOUND, [], RARITY, SCALE).decisions()}
    assert reasons["signal: relevance"] == ""


def test_what_has_no_absolute_score_is_not_measured() -> None:
    found = signals("return a lamp", [hit(WINDOW, bm25=3.0)], [hit(WINDOW)], RARITY, SCALE)
    assert (found.relevance, found.margin, found.dispersion) == (None, None, None)
    assert found.coverage == 1.0
    decisions = {one.name: one for one in found.decisions()}
    assert decisions["signal: relevance"].outcome == "not measured"
    assert "max_sim" in decisions["signal: relevance"].reason


def test_quality_is_the_weighted_mean_of_what_was_measured() -> None:
    whole = Signals(1.0, 0.5, 0.25, 0.0)
    assert quality(whole) == pytest.approx(0.4 * 1 + 0.2 * 0.5 + 0.2 * 0.25)
    assert quality(replace(whole, margin=None, dispersion=None)) == pytest.approx((0.4 + 0.05) / 0.6)
    assert quality(Signals()) == 0


def test_the_first_design_calls_any_sum_of_z_scores_relevant() -> None:
    reranked = [hit(text, f"{n}.md", n, rerank=score) for n, (text, score) in enumerate([(OTHER, 3.1), (COPY, 2.9)])]
    found = original_quality(reranked)
    assert found.relevance == pytest.approx(1 / (1 + math.exp(-3.1)))
    assert found.margin == pytest.approx(0.2)
    assert found.coverage == 2 / 5
    assert found.dispersion == pytest.approx(0.9)
    assert original_quality([hit(OTHER)]).relevance is None


def test_scale_of_a_reranker() -> None:
    assert scale_of("embedded/late-interaction", True) is SCALES["embedded/late-interaction"]
    assert scale_of("cross-encoder/some", True) is LOGIT
    assert scale_of("mock/word-overlap", False) is COSINE


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8))
def test_signals_lie_between_0_and_1(scores: list[float]) -> None:
    hits: list[Hit] = [hit(f"page {n} word{n}", f"{n}.md", n, max_sim=score) for n, score in enumerate(scores)]
    found = signals("lamp", hits, hits, RARITY, SCALE).items()
    assert [name for name, value in found.items() if value is None] == ["margin", "dispersion"] * (len(scores) == 1)
    assert all(0 <= value <= 1 for value in found.values() if value is not None)


# The script that tries the signals of retrieval on other data, on tasks that are made up here.

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
