"""Several rankings become one by their ranks."""

from __future__ import annotations

import pytest

from rag_harness.core.types import Hit
from rag_harness.retrieval.retrievers import fused
from tests.unit.hits import chunks_of

A, B, C = chunks_of(["a", "b", "c"])


def test_what_several_rankings_have_goes_before_what_one_has() -> None:
    first = [Hit(A, 0.9, 1), Hit(B, 0.8, 2)]
    second = [Hit(C, 0.7, 1), Hit(B, 0.95, 2)]
    found = fused([first, second], 3, "several")
    assert [hit.chunk for hit in found] == [B, A, C]
    assert [hit.rank for hit in found] == [1, 2, 3]
    assert found[0].score == pytest.approx(2 / 62)
    assert found[0].scores == {"rrf": found[0].score, "dense": 0.95, "several": found[0].score}
    assert fused([first, second], 1, "several") == found[:1]
    assert fused([], 3, "several") == []
