"""Hits keep their places when chunks are read as documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.evaluation.measures.ranking_arrays import first_hits
from rag_harness.records.document_ranking import document_of, place_documents, ranking_of
from tests.unit.rows import make_chunk, make_row

chunk_ids = st.lists(st.builds("{}#{}".format, st.sampled_from(["a", "a#1", "b", "c/d"]), st.integers(0, 3)))


def test_the_document_is_what_stands_before_the_last_hash() -> None:
    assert document_of("returns.md#chunk_3") == "returns.md"
    assert document_of("c#sharp.md#chunk_0") == "c#sharp.md"
    assert document_of("d7") == "d7"


def test_later_hits_of_a_document_hold_their_place() -> None:
    placed = place_documents(["a#0", "a#1", "a#2", "b#0"])
    assert (placed[0], placed[3]) == ("a", "b")
    closed = first_hits(["a", "a", "a", "b"])
    found = evaluate(
        {"kept": placed, "closed": closed}, {"kept": {"b": 1}, "closed": {"b": 1}}, ["recall@3", "recall@4"]
    )
    # What closing the gaps would have said.
    assert found["recall@3"] == {"kept": 0.0, "closed": 1.0}
    assert found["recall@4"] == {"kept": 1.0, "closed": 1.0}


@given(chunk_ids)
def test_each_document_has_the_rank_of_its_first_hit_and_nothing_else_matches(ids: list[str]) -> None:
    placed, documents = place_documents(ids), [document_of(each) for each in ids]
    assert len(placed) == len(set(placed)) == len(ids)
    for document in ("a", "a#1", "b", "c/d", "a#2"):
        assert (document in placed) == (document in documents)
        assert document not in placed or placed.index(document) == documents.index(document)


def test_the_ranking_is_the_prompts_order_then_the_rest_by_rerank_score() -> None:
    scores = {"p.md#chunk_0": 0.1, "low.md#chunk_0": 0.2, "none.md#chunk_0": None, "high.md#chunk_0": 0.9}
    candidates = [{"chunk_id": chunk, "score": 0.5, "rerank_score": score} for chunk, score in scores.items()]
    row = make_row(retrieved_chunks=[make_chunk("p.md#chunk_0")], candidates=candidates)
    assert ranking_of(row) == ["p.md", "high.md", "low.md", "none.md"]


def test_the_ranking_without_a_reranker_keeps_the_first_stages_order() -> None:
    candidates = [{"chunk_id": f"{page}.md#chunk_3", "score": 0.1} for page in "bac"]
    assert ranking_of(make_row(retrieved_chunks=[], candidates=candidates)) == ["b.md", "a.md", "c.md"]


def test_what_a_case_leaves_out_is_no_hit_and_what_is_below_moves_up() -> None:
    row = make_row(retrieved_chunks=[make_chunk(f"{page}#chunk_0") for page in ("a", "b")], candidates=[])
    assert ranking_of(row, Case(Query("a", "?"), left_out=frozenset({"a"}))) == ["b"]
    assert ranking_of(row, Case(Query("a", "?"))) == ["a", "b"]


def test_names_that_the_row_gives_are_the_ranking() -> None:
    assert ranking_of(make_row(ranking=["returns.md#refunds", "c.md"])) == ("returns.md#refunds", "c.md")
