"""``e3-plain``, ``e3-tuned`` and ``e4-plan``: each differs from its experiment in the one thing that it asks about."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.errors import RegistryError
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings.configurations import read_configuration
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines import experiments
from rag_harness.pipelines.experiments import experiment
from rag_harness.studies.retail import TUNED
from tests.unit.pipelines.mock_parts import parts_of, write_kb

PAGES = {
    "returns.md": "# Returns\n\nYou can return a **lamp** within [45 days](x.md).\n\n## Refunds\n\n- within *5* days\n",
    "shipping.md": "# Shipping\n\n| Zone | Express |\n|---|---|\n| 1 | €9.90 |\n",
    "warranty.md": "# Warranty\n\nThe warranty lasts 2 years.\n",
}
TWO = "How long may I return a lamp and what does express delivery cost?"
ONE = "How long may I return a lamp?"


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


def answered(built: Experiment, text: str = ONE) -> PipelineOutput:
    return asyncio.run(built.pipeline.answer(Query("q", text)))  # type: ignore[no-any-return]


def test_plain_is_e3_over_the_same_cuts_without_marks(kb: Path) -> None:
    parts = parts_of(kb)
    e3, plain = (experiment(name, parts) for name in ("e3", "e3-plain"))
    assert e3.chunks is not None
    assert plain.chunks is not None
    marked = {chunk.chunk_id: chunk for chunk in e3.chunks()}
    for chunk in plain.chunks():
        assert (chunk.start, chunk.end) == (marked[chunk.chunk_id].start, marked[chunk.chunk_id].end)
        assert not set("#*|[]") & set(chunk.text)
    differing = {key for key in e3.ingredients if e3.ingredients[key] != plain.ingredients[key]}
    assert differing == {"chunker", "cut_by"}
    assert cast("Any", plain.pipeline).generator == cast("Any", e3.pipeline).generator
    output = answered(plain)
    assert {hit.chunk.metadata["markup"] for hit in output.context} == {"taken off"}


def test_tuned_is_what_the_race_wrote_with_the_models_of_the_run(kb: Path) -> None:
    e3, tuned = (experiment(name, parts_of(kb)) for name in ("e3", "e3-tuned"))
    chosen = read_configuration(TUNED).by_name
    ours = tuned.ingredients["configuration"]
    assert {name: chosen[name] for name in ours} == ours
    assert chosen.keys() - ours.keys() == {"chat_model", "embed_model", "rerank_model", "index"}
    assert tuned.ingredients["answer_by"] == e3.ingredients["answer_by"]
    assert len(answered(tuned).context) == 4  # all chunks: top_k is the race's 5, and not the 2 of these options


def test_a_plan_of_one_search_is_e4(kb: Path) -> None:
    parts = parts_of(kb)
    e4, plan = (answered(experiment(name, parts)) for name in ("e4", "e4-plan"))
    assert plan.retrieved == e4.retrieved
    assert plan.context == e4.context
    assert plan.calls[0].messages == e4.calls[0].messages
    assert [decision.outcome for decision in plan.decisions] == ["by rules"]


def test_searches_are_fused_and_reranked_against_the_question(kb: Path) -> None:
    built = experiment("e4-plan", parts_of(kb))
    asked: list[str] = []
    inner = cast("Any", built.pipeline).unplanned.reranker.inner
    rerank = inner.rerank

    def noted(query: str, hits: Any) -> Any:
        asked.append(query)
        return rerank(query, hits)

    inner.rerank = noted
    output = answered(built, TWO)
    assert asked == [TWO]
    assert (len(output.retrieved), len(output.context)) == (3, 2)
    assert {hit.source for hit in output.retrieved} == {"planned"}
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]
    assert all({"rrf", "dense", "planned"} <= set(hit.scores) for hit in output.retrieved)
    searches = {stage.name: stage.detail for stage in output.stages}["plan"]["searches"]
    assert searches == [TWO, "How long may I return a lamp", "what does express delivery cost?"]
    assert output.answer.reasoning_steps


def test_every_search_of_the_rules_is_embedded_before_the_first_trial(kb: Path) -> None:
    parts = parts_of(kb)
    embedded: list[str] = []
    embedder = parts.embedder()
    embed = embedder.embed_queries
    embedder.embed_queries = lambda texts: embedded.extend(texts) or embed(texts)  # type: ignore[method-assign,func-returns-value]
    built = experiment("e4-plan", parts)
    assert built.prepare is not None
    built.prepare([Query("q1", TWO), Query("q2", ONE)])
    assert set(embedded) == {TWO, ONE, "How long may I return a lamp", "what does express delivery cost?"}


def test_a_rewriter_is_an_ingredient(kb: Path) -> None:
    bare, named = (
        experiment("e4-plan", parts_of(kb, **changes)).ingredients
        for changes in ({}, {"rewrite_model": "mock/placeholder", "rewrite_base_url": "http://127.0.0.1:9/v1"})
    )
    assert "rewrite_by" not in bare
    assert named["rewrite_by"][:2] == ["mock/placeholder", "http://127.0.0.1:9/v1"]


def test_the_retrieve_step_alone_plans_by_rules(kb: Path) -> None:
    built = experiment("e4-plan", parts_of(kb))
    assert built.retriever is not None
    both, one = (built.retriever.retrieve(text, 3) for text in (TWO, ONE))
    assert {hit.source for hit in both} == {"planned"}
    assert {hit.source for hit in one} == {"dense"}


# Experiments are found by the table of the studies.


def test_the_textbook_is_found() -> None:
    found = experiments.built_in()
    assert {"e1", "t1", "t1-boost0", "t1-boost12", "t1-boost15", "t2", "t3", "t3-rrf", "t4", "t5"} <= found.keys()
    assert experiments.result_name("t1") == "t1_headings"
    assert experiments.result_name("t1-boost0") == "t1__boost0"
    assert experiments.builder("t1-boost0").__module__ == "rag_harness.studies.textbook"
    assert experiments.builder("t3-rrf").__module__ == "rag_harness.studies.textbook"
    with pytest.raises(RegistryError, match=r"t1-boost1\b.*Did you mean 't1-boost1[25]'"):
        experiments.builder("t1-boost1")
