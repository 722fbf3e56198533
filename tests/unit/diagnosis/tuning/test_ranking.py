"""A ranking that is cut to ``top_k`` has what the configuration itself finds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ConfigurationSpec
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.diagnosis.tuning.trials import Contender, field_of, ranking_of
from rag_harness.pipelines.experiments import experiment_of
from tests.unit.diagnosis.tuning.shop import write_shop
from tests.unit.pipelines.mock_parts import parts_of

SHAPES: list[dict[str, Any]] = [
    {"retriever": "dense", "rerank": False},
    {"retriever": "bm25", "rerank": False},
    {"retriever": "hybrid", "dense_weight": 0.3, "rerank": False},
    {"retriever": "dense", "rerank": True, "candidates": 10},
    {"retriever": "bm25", "rerank": True, "candidates": 10},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['retriever']}-{shape['rerank']}")
def test_what_is_cut_is_what_the_configuration_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    parts = parts_of(write_shop(tmp_path, monkeypatch), cache_dir=str(tmp_path / "cache"))

    def built(top_k: int) -> Any:
        return experiment_of(ConfigurationSpec("x", tuple({**shape, "top_k": top_k}.items())), parts)

    deepest = ranking_of(built(8), "ranking", 8)
    for case in parts.data().cases[:6]:
        if deepest.prepare:
            deepest.prepare([case.query])
        ranked = asyncio.run(deepest.pipeline.answer(case.query))
        assert len(ranked.context) == 8
        for top_k in (1, 3, 8):
            own = asyncio.run(built(top_k).pipeline.answer(case.query))
            assert [hit.chunk.chunk_id for hit in own.context] == [hit.chunk.chunk_id for hit in ranked.context[:top_k]]


def test_contenders_that_differ_after_the_ranking_share_it() -> None:
    def ranking(**values: Any) -> str:
        return Contender(ConfigurationSpec("x"), {"retriever": "dense", "top_k": 1, **values}, "t").ranking

    assert ranking(top_k=5, temperature=1.0, prompt="e2", chat_model="m", max_output_tokens=9) == ranking()
    assert ranking(retriever="bm25") != ranking() != ranking(chunk_size=5)


@pytest.mark.parametrize(
    ("space", "by_words"),
    [('retriever = "bm25"\nrerank = false', True), ('retriever = ["bm25", "dense"]\nrerank = false', False),
     ('retriever = "bm25"', False)],
)  # fmt: skip
def test_a_race_by_words_alone_has_a_today_without_vectors(tmp_path: Path, space: str, by_words: bool) -> None:
    file = tmp_path / "space.toml"
    file.write_text(f'objective = "recall@5"\n[parameters]\n{space}\nchunk_size = [256, 384]\n', encoding="utf-8")
    today = field_of(read_space(file), Settings()).today
    assert (today.values["retriever"] == "bm25" and not today.values["rerank"]) is by_words
