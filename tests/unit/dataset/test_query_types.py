"""A type that is nearly a known one is no type of the user's own."""

from __future__ import annotations

import pytest

from rag_harness.data.queries import KNOWN_TYPES, type_problem, types_named


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("negtive", "negative"),
        ("negatives", "negative"),
        ("Negative", "negative"),
        ("multi-hop", "multi_hop"),
        ("multihop", "multi_hop"),
        ("Multi Hop", "multi_hop"),
        ("direkt", "direct"),
        ("comparisons", "comparison"),
        ("unlabeled", "unlabelled"),
    ],
)
def test_a_misspelling_is_named_with_what_was_meant(name: str, meant: str) -> None:
    said = type_problem(name, None)
    assert said.startswith(f"query_type {name!r} is not known. Did you mean {meant!r}? Known: direct, multi_hop, ")
    assert f"--rag-query-types={name} (ini rag_query_types)" in said


@pytest.mark.parametrize(
    "name",
    [*KNOWN_TYPES, "table", "selected", "exact_name", "single_hop", "multi_doc", "multi_turn", "indirect", "positive"],
)
def test_known_types_and_truly_other_ones_are_left_alone(name: str) -> None:
    assert type_problem(name, None) == ""


def test_a_named_type_is_known_and_its_misspelling_is_told_too() -> None:
    types = types_named(["negtive, policy date", "fee"])
    assert types == ("negtive", "policy date", "fee")
    assert type_problem("negtive", None, types) == ""
    assert "Did you mean 'policy date'?" in type_problem("policy_date", None, types)


@pytest.mark.parametrize("name", ["negative_hard", "unanswerable", "hard-negative"])
def test_what_says_that_nothing_answers_it_must_not_count_as_answerable_unsaid(name: str) -> None:
    assert 'add "answerable": false' in type_problem(name, None, (name,))
    assert type_problem(name, False) == type_problem(name, True) == ""
