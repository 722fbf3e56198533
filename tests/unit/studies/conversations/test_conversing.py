"""The three experiments on the mock profile: they differ in what is searched for, and in nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import Message, PipelineOutput, Query
from rag_harness.pipelines.experiments import experiment
from rag_harness.studies.conversations import Conversing, JoinedTurns
from tests.unit.pipelines.mock_parts import parts_of, write_kb

PAGES = {
    "tents.md": "# Tents\n\nThe Ridge 2 weighs 3 kg. Renting it costs €14 for a day.\n",
    "shipping.md": "# Shipping\n\nExpress delivery takes one day and costs €9.90.\n",
    "warranty.md": "# Warranty\n\nThe warranty of a mower lasts 3 years.\n",
}
NAMES = ("c1", "c1-lastturn", "c1-full")
HISTORY = [
    {"role": "user", "content": "do you rent tents?"},
    {"role": "assistant", "content": "Yes, the Ridge 2 [Source 1: fake.md]."},
]
FOLLOW_UP = Query("c#2", "how much is that", {"conversation": "c", "turn": 2, "history": HISTORY})
SEARCHED = {
    "c1": "how much is that? This is about: Ridge 2 rent tents.",
    "c1-lastturn": "how much is that",
    "c1-full": "do you rent tents? Yes, the Ridge 2 [Source 1: fake.md]. how much is that",
}


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


def answered(built: Experiment, query: Query = FOLLOW_UP) -> PipelineOutput:
    return asyncio.run(built.pipeline.answer(query))  # type: ignore[no-any-return]


def stage(output: PipelineOutput) -> Any:
    return {each.name: each.detail for each in output.stages}["rewrite"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_searched_for_is_in_the_row_and_in_the_prompt(kb: Path, name: str) -> None:
    output = answered(experiment(name, parts_of(kb)))
    assert [each.name for each in output.stages] == ["rewrite", "retrieve", "rerank", "prompt", "generate", "parse"]
    assert stage(output)["searched"] == SEARCHED[name]
    assert stage(output)["asked"] == FOLLOW_UP.text
    system, asked, replied, last = output.calls[0].messages
    assert (system.role, asked) == ("system", Message("user", "do you rent tents?"))
    assert last.content.endswith(f"\n\nQuestion: {SEARCHED[name]}")
    # A mark in an earlier reply names a source of another prompt.
    assert replied == Message("assistant", "Yes, the Ridge 2 (Source 1: fake.md).")
    assert all(hit.rerank_score is not None for hit in output.context)


def test_rewriting_finds_the_page_that_the_words_alone_do_not_name(kb: Path) -> None:
    parts = parts_of(kb, chat_model="embedded/extractive")
    c1, last = (answered(experiment(name, parts)) for name in NAMES[:2])
    assert c1.context[0].chunk.doc_id == "tents.md"
    assert "€14" in c1.answer.text
    assert "€14" not in last.answer.text


def test_a_first_turn_is_asked_as_e3_asks_it(kb: Path) -> None:
    parts, first = parts_of(kb), Query("c#1", "express delivery costs", {"conversation": "c", "turn": 1})
    outputs = [answered(experiment(name, parts), first) for name in (*NAMES, "e3")]
    *others, e3 = outputs
    for output in others:
        assert (output.retrieved, output.context) == (e3.retrieved, e3.context)
        assert output.calls[0].messages[1:] == e3.calls[0].messages[1:]
    assert [stage(output)["by"] for output in others] == ["as it is", "the turn alone", "all turns"]


@pytest.mark.parametrize("name", NAMES)
def test_given_hits_are_answered_with_the_same_question(kb: Path, name: str) -> None:
    built = experiment(name, parts_of(kb))
    found = answered(built)
    assert built.answer_from is not None
    again: PipelineOutput = asyncio.run(built.answer_from(FOLLOW_UP, found.context))  # type: ignore[arg-type]
    assert again.context == found.context
    assert again.calls[0].messages == found.calls[0].messages


def test_they_share_index_reranker_and_prompts_and_have_fingerprints_of_their_own(kb: Path) -> None:
    parts = parts_of(kb)
    c1, last, full = (experiment(name, parts) for name in NAMES)
    pipelines = [cast("Conversing", each.pipeline).filtered for each in (c1, last, full)]
    assert pipelines[0] == pipelines[1] == pipelines[2]
    for other in (last, full):
        assert {key for key in c1.ingredients if c1.ingredients[key] != other.ingredients[key]} == {"searches"}
    assert {each.data for each in (c1, last, full)} == {""}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_searched_for_is_embedded_before_the_first_trial(kb: Path, name: str) -> None:
    parts = parts_of(kb)
    embedded: list[str] = []
    embedder = parts.embedder()
    embed = embedder.embed_queries
    embedder.embed_queries = lambda texts: embedded.extend(texts) or embed(texts)  # type: ignore[method-assign,func-returns-value]
    built = experiment(name, parts)
    assert built.prepare is not None
    built.prepare([FOLLOW_UP])
    assert embedded == [SEARCHED[name]]


def test_a_question_is_made_no_longer_than_the_embedder_reads(kb: Path) -> None:
    parts = parts_of(kb)
    parts.embedder()._inner.max_tokens = 41  # type: ignore[misc]
    c1, full = (cast("Conversing", experiment(name, parts).pipeline).turn_search for name in ("c1", "c1-full"))
    assert c1.ahead(FOLLOW_UP) == "how much is that? This is about: Ridge."
    assert cast("JoinedTurns", full).most_tokens == 41


def test_a_rewriter_is_an_ingredient_of_c1_alone(kb: Path) -> None:
    parts = parts_of(kb, rewrite_model="mock/placeholder", rewrite_base_url="http://127.0.0.1:9/v1")
    c1, last, full = (experiment(name, parts) for name in NAMES)
    assert c1.ingredients["rewrite_by"][:2] == ["mock/placeholder", "http://127.0.0.1:9/v1"]
    assert not {"rewrite_by"} & {*last.ingredients, *full.ingredients}


def test_earlier_turns_of_a_served_question_count_although_it_has_no_place(kb: Path) -> None:
    output = answered(experiment("c1", parts_of(kb)), replace(FOLLOW_UP, inputs={"history": HISTORY}))
    assert stage(output)["searched"] == SEARCHED["c1"]


def test_data_that_pyproject_names_without_the_conversations_is_refused(kb: Path) -> None:
    (kb / "pyproject.toml").write_text('[tool.rag_harness.data.other]\nkb = "kb"\n')
    with pytest.raises(SettingsError, match="conversations"):
        experiment("c1", parts_of(kb))
