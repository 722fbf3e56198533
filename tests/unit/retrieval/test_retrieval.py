"""What a retrieval gives to the parts that are made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.pipelines.parts import RunParts
from rag_harness.registry import resolve
from rag_harness.retrieval import retrieval as room
from rag_harness.settings import Settings
from tests.unit.hits import chunks_of


class Reranker:
    model, revision = "mine", "1"

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def rerank(self, query: str, hits: Any) -> Any:
        return hits


@pytest.mark.parametrize("named", ["", "mine:x"])
def test_a_reranker_gets_all_parts_whether_the_options_name_it_or_an_experiment_does(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Reranker] = []

    def make(parts: Any) -> Reranker:
        made.append(Reranker(parts))
        return made[-1]

    monkeypatch.setattr(room, "resolve", lambda group, name: make if group == "rerankers" else resolve(group, name))
    settings = Settings(rootdir=str(tmp_path), profile="mock", embed_model="mock/hash", rerank_model="mine:y")
    retrieval = RunParts(settings).retrieval()
    vars(retrieval)["chunks"] = chunks_of(["text"])
    assert retrieval.reranker(named) is retrieval.reranker(named)
    (parts,) = (each.parts for each in made)
    assert parts.settings.rerank_model == (named or "mine:y")
    for name in ("stores", "embedder", "token_embedder", "lexical", "content_digest"):
        assert getattr(parts, name) is getattr(retrieval, name)
