"""What a retrieval gives to the parts that are made of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.protocols import Retriever
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.core.settings.table import Mode
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval import builder as module
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

    monkeypatch.setattr(module, "resolve", lambda group, name: make if group == "rerankers" else resolve(group, name))
    settings = Settings(rootdir=str(tmp_path), profile="mock", embed_model="mock/hash", rerank_model="mine:y")
    retrieval = RunParts(settings).retrieval()
    vars(retrieval)["chunks"] = chunks_of(["text"])
    assert retrieval.reranker(named) is retrieval.reranker(named)
    (parts,) = (each.parts for each in made)
    assert parts.settings.rerank_model == (named or "mine:y")
    for name in ("stores", "embedder", "token_embedder", "lexical", "content_digest"):
        assert getattr(parts, name) is getattr(retrieval, name)


def test_what_a_run_records_is_whole_though_an_earlier_run_has_left_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nA lamp.\n")

    def dense(mode: Mode) -> Retriever:
        settings = Settings(rootdir=str(tmp_path), kb_dir="kb", profile="mock", embed_model="mock/hash", mode=mode)
        parts = RunParts(settings)
        retrieval = parts.retrieval()
        retrieval.prepare(["lamp"])
        parts.flush()
        return retrieval.dense

    dense("auto")
    assert (tmp_path / ".rag_cache" / "indexes").is_dir()
    dense("record")
    shutil.rmtree(tmp_path / ".rag_cache")
    # As if it asked a model, so that a vector is recorded or is not there.
    monkeypatch.setattr(MockEmbedder, "needs_no_model", False)
    assert [hit.chunk.doc_id for hit in dense("replay").retrieve("lamp", 1)] == ["a.md"]
