"""Hits keep their places when chunks are read as documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.measures.hits import document_of, place_documents
from rag_harness.measures.ranking import first_hits, recall

chunk_ids = st.lists(st.builds("{}#{}".format, st.sampled_from(["a", "a#1", "b", "c/d"]), st.integers(0, 3)))


def test_the_document_is_what_stands_before_the_last_hash() -> None:
    assert document_of("returns.md#chunk_3") == "returns.md"
    assert document_of("c#sharp.md#chunk_0") == "c#sharp.md"
    assert document_of("d7") == "d7"


def test_later_hits_of_a_document_hold_their_place() -> None:
    placed = place_documents(["a#0", "a#1", "a#2", "b#0"])
    assert (placed[0], placed[3]) == ("a", "b")
    assert recall(placed, {"b": 1}, 3) == 0.0
    assert recall(placed, {"b": 1}, 4) == 1.0
    assert recall(first_hits(["a", "a", "a", "b"]), {"b": 1}, 2) == 1.0  # what closing the gaps would have said


@given(chunk_ids)
def test_each_document_has_the_rank_of_its_first_hit_and_nothing_else_matches(ids: list[str]) -> None:
    placed, documents = place_documents(ids), [document_of(each) for each in ids]
    assert len(placed) == len(set(placed)) == len(ids)
    for document in ("a", "a#1", "b", "c/d", "a#2"):
        assert (document in placed) == (document in documents)
        assert document not in placed or placed.index(document) == documents.index(document)
