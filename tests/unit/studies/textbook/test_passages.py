"""The selected passage as a candidate: found anywhere in the book, added where the question does not find it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import QueryTooLongError
from rag_harness.core.types import Decision, PipelineOutput, Query
from rag_harness.pipelines.parts import RunParts
from rag_harness.studies.textbook import Assistant, Design, textbook
from rag_harness.studies.textbook_retrieval import MOST, Passages, Selection
from tests.unit.studies.textbook.book import PAGES, Says, parts_over

DRIFT = "Quartz drifts by twenty parts in a million."


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KB_DIR", "DRY_RUN", "OVERWRITE", "RAG_PROFILE", "RAG_MODE"):
        monkeypatch.delenv(name, raising=False)


def assistant_of(parts: RunParts, candidates: int = 2, **design: Any) -> Assistant:
    """Return t1's assistant with small chunks and few candidates, so that a passage can be missed."""
    made = textbook("t1", parts, Design(least=0, **design))
    assert isinstance(made.pipeline, Assistant)
    return replace(made.pipeline, chat=Says(), rules=replace(made.pipeline.rules, candidates=candidates))


def ask(assistant: Assistant, selected: object, text: str = "topic messages publishers subscribers") -> PipelineOutput:
    return asyncio.run(assistant.answer(Query("q", text, {"selected_text": selected})))


def decided(output: PipelineOutput) -> dict[str, Decision]:
    return {decision.name: decision for decision in output.decisions}


def holding(output: PipelineOutput, text: str) -> list[str]:
    return [hit.source for hit in output.retrieved if text in hit.chunk.text]


def test_the_passage_is_a_candidate_though_the_question_does_not_find_it(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    without = ask(assistant_of(parts, passage=False), DRIFT)
    assert holding(without, DRIFT) == []
    assert "passage" not in decided(without)
    output = ask(assistant_of(parts), DRIFT)
    assert holding(output, DRIFT) == ["passage"]
    assert decided(output)["passage"] == Decision(
        "passage", "added", 1.0, reason="1 section holds the selection, and cosine missed 1"
    )
    assert decided(output)["boost"].outcome == "boosted"
    assert len(output.retrieved) == 3
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]


def test_an_added_passage_has_its_own_cosine_and_stays_behind_without_a_boost(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    all_found = ask(assistant_of(parts, candidates=10, boost=1.0), DRIFT)
    (own,) = (hit for hit in all_found.retrieved if DRIFT in hit.chunk.text)
    added = ask(assistant_of(parts, boost=1.0), DRIFT).retrieved[-1]
    assert added.source == "passage"
    assert added.scores["dense"] == pytest.approx(own.score, abs=1e-6)
    assert added.score <= all_found.retrieved[1].score


def test_a_passage_that_is_found_is_not_added_again(tmp_path: Path) -> None:
    output = ask(assistant_of(parts_over(tmp_path)), DRIFT, "quartz drifts parts million")
    assert holding(output, DRIFT) == ["dense"]
    assert (decided(output)["passage"].outcome, decided(output)["passage"].value) == ("found", 0.0)


def test_a_selection_that_stands_nowhere_changes_nothing(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    output, without = (
        ask(assistant_of(parts), "Zebras graze."),
        ask(assistant_of(parts, passage=False), "Zebras graze."),
    )
    assert output.retrieved == without.retrieved
    assert decided(output)["passage"].reason == "no section was found that holds the selection"


@pytest.mark.parametrize("selected", ["", " \n", 7, None])
def test_no_selection_looks_for_no_passage(tmp_path: Path, selected: object) -> None:
    output = ask(assistant_of(parts_over(tmp_path), search_selection=True), selected)
    assert len(output.retrieved) == 2
    assert not {"passage", "search"} & decided(output).keys()


def repeated(times: int) -> dict[str, str]:
    """Return a book with the same sentence in several chapters."""
    return PAGES | {
        f"module-3/chapter-{n}-again.md": f"# Again {n}\n\n## Part\n\n{DRIFT} Chapter {n} goes on.\n"
        for n in range(1, times)
    }


def test_a_selection_that_stands_twice_adds_both_sections(tmp_path: Path) -> None:
    output = ask(assistant_of(parts_over(tmp_path, repeated(2))), DRIFT)
    assert holding(output, DRIFT) == ["passage", "passage"]
    assert decided(output)["passage"].reason == "2 sections hold the selection, and cosine missed 2"


def test_a_selection_that_stands_everywhere_adds_none(tmp_path: Path) -> None:
    output = ask(assistant_of(parts_over(tmp_path, repeated(MOST + 1))), DRIFT)
    assert "passage" not in holding(output, DRIFT)
    assert decided(output)["passage"].outcome == "not told apart"
    assert decided(output)["passage"].threshold == MOST


def test_both_are_searched_together(tmp_path: Path) -> None:
    output = ask(assistant_of(parts_over(tmp_path), search_selection=True, boost=1.0), DRIFT, "and the other one?")
    assert output.retrieved[0].chunk.section[-1] == "Drift"
    assert decided(output)["search"] == Decision("search", "question and selection", float(len(DRIFT)))


def test_the_question_is_searched_alone_where_both_are_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = assistant_of(parts_over(tmp_path)).passages
    assert isinstance(passages, Passages)

    def refuse(text: str) -> None:
        raise QueryTooLongError("too long", 600, 512)

    monkeypatch.setattr(passages.retrieval.embedder, "check_query", refuse)
    searched, decision = passages.searched("and here?", Selection(DRIFT))
    assert (searched, decision.outcome) == ("and here?", "question alone")
    assert decision.reason == "with the selection the question has 600 tokens, and the embedding model reads 512"


def test_a_long_selection_is_searched_in_part(tmp_path: Path) -> None:
    passages = assistant_of(parts_over(tmp_path)).passages
    assert isinstance(passages, Passages)
    searched, decision = passages.searched("and here?", Selection("word " * 1_000))
    assert len(searched) == len("and here? ") + 400
    assert decision.value == 400
