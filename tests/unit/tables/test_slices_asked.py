"""The text of ``--rag-slices``."""

from __future__ import annotations

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.tables.requested_measures import SliceAsked, check_slice_keys, measures_of, read_slices


def asked(*texts: str) -> list[tuple[str, str]]:
    return [(each.key, each.measure) for each in read_slices(texts, 7)]


def test_keys_stand_before_a_colon_and_measures_behind_it() -> None:
    assert asked("query_type") == [("query_type", "")]
    assert asked(" query_type ,topic: recall@5, hri ") == [
        ("query_type", "recall@5"),
        ("query_type", "hri"),
        ("topic", "recall@5"),
        ("topic", "hri"),
    ]
    assert asked("topic: recall@k", "topic: recall@7", "topic") == [("topic", "recall@7"), ("topic", "")]
    assert asked() == []


def test_measures_that_are_named_must_be_had() -> None:
    assert measures_of(["topic, kind: hri", "query_type", "kind: recall@k, hri"], 3) == ["hri", "recall@3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a name is empty in ''. Example: 'query_type, topic: recall@5'"),
        ("topic,", "a name is empty in 'topic,'"),
        (": recall@5", "a name is empty in ''"),
        ("topic:", "a name is empty in ''"),
        ("topic: recal@5", "--rag-slices=topic: recal@5: Unknown measure 'recal'. Did you mean 'recall'?"),
        ("topic: p95(total_ms)", "Unknown measure 'p95(total_ms)'"),
        ("topic: recall@5 >= 0.9", "needs a cutoff of 1 or more"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_slices([text], 10)
    assert said in str(refused.value)
    assert str(refused.value).startswith("--rag-slices=")


def test_a_key_that_no_case_has_is_refused_with_those_that_there_are() -> None:
    check_slice_keys([SliceAsked("topic")], {"topic", "query_type"})
    with pytest.raises(SettingsError) as refused:
        check_slice_keys([SliceAsked("query_typ")], {"topic", "query_type"})
    wanted = "Unknown slice key 'query_typ'. Did you mean 'query_type'? Known: query_type, topic."
    assert str(refused.value) == f"--rag-slices: {wanted}"
