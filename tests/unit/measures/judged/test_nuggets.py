"""Nugget recall: TREC's weights, and which of our quotes are vital."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.data.queries import read_queries
from rag_harness.evaluation.measures import Score, measure_named
from rag_harness.evaluation.measures.judged import vital
from rag_harness.evaluation.measures.measure import formula_of
from rag_harness.evaluation.measures.opinion import Support
from tests.unit.measures.judged.opinions import FULL, Told, score, verdicts

QUERIES = Path(__file__).parents[4] / "data" / "kb" / "queries.jsonl"
VITAL, OKAY = "The price is 5 euros.", "Members may ask again tomorrow."


def recall(texts: list[str], *values: float | None) -> Score:
    return score("nugget_recall", Told({Support("nuggets", "answer"): verdicts(*values, texts=texts)}))


def test_an_okay_nugget_counts_half() -> None:
    nuggets = [VITAL, VITAL, OKAY]
    assert recall(nuggets, 1, 0, 0).value == pytest.approx(1 / 2.5)
    assert recall(nuggets, 1, 1, 0).value == pytest.approx(2 / 2.5)
    assert recall(nuggets, 0, 0, 1).value == pytest.approx(0.5 / 2.5)
    assert recall(nuggets, 0.5, 0.5, 0.5).value == pytest.approx(0.5)
    assert recall([OKAY], 1).value == 1.0
    assert [claim["vital"] for claim in recall(nuggets, 1, 1, 1).detail["claims"]] == [True, True, False]


@given(st.lists(st.tuples(st.sampled_from([VITAL, OKAY]), st.floats(0, 1)), min_size=1, max_size=6))
def test_it_is_a_share_and_all_of_them_are_1(found: list[tuple[str, float]]) -> None:
    texts = [text for text, _ in found]
    value = recall(texts, *(value for _, value in found)).value
    assert value is not None
    assert 0 <= value <= 1
    assert recall(texts, *[1.0] * len(texts)).value == 1.0


def variant(name: str, texts: list[str], *values: float) -> Score:
    return score(name, Told({Support("nuggets", "answer"): verdicts(*values, texts=texts)}))


def test_strict_and_vital_variants() -> None:
    nuggets, said = [VITAL, VITAL, OKAY, OKAY], (1, 0.4, 0.6, 0)
    assert recall(nuggets, *said).value == pytest.approx((1 + 0.4 + 0.3) / 3)
    assert variant("nugget_recall_strict", nuggets, *said).value == 0.5
    assert variant("nugget_recall_vital", nuggets, *said).value == pytest.approx(0.7)
    assert variant("nugget_recall_vital_strict", nuggets, *said).value == 0.5
    for name in ("nugget_recall_vital", "nugget_recall_vital_strict"):
        found = variant(name, [OKAY], 1)
        assert (found.value, found.undefined, found.reason) == (None, True, "no vital nugget")


@pytest.mark.parametrize("name", [f"nugget_recall{of}" for of in ("", "_strict", "_vital", "_vital_strict")])
def test_the_formula_says_which_of_trec_s_scores_it_is(name: str) -> None:
    word = {"": "weighted", "_strict": "strict", "_vital": "vital", "_vital_strict": "strict vital"}
    assert formula_of(measure_named(name)).startswith(f"TREC's {word[name.removeprefix('nugget_recall')]} score: ")


def test_a_nugget_without_a_verdict_leaves_no_score() -> None:
    assert recall([VITAL, OKAY], 1, None).reason == "1 of 2 claims without a verdict: cut off"
    assert recall([]).reason == "no claim in the evidence quotes"


def test_who_says_nothing_has_no_nugget() -> None:
    assert score("nugget_recall", Told(), replace(FULL, abstained=True)).value == 0.0


@pytest.mark.parametrize(
    ("nugget", "ground_truth", "expected"),
    [
        ("| Price | €119 | €179 |", "€189: the bag costs €179 and the length adds €10.", True),
        ("| Price | €119 | €149 |", "€189: the bag costs €179 and the length adds €10.", False),
        ("It is paid as **store credit**.", "A store credit.", True),
        ("It is paid as store credit within a week.", "By bank transfer, and no store is asked.", False),
        ("2. Grind it finer before anything else.", "It needs 2 filters.", False),
        ("2 grams.", "It needs 2 filters.", True),
        ("Open until 22:00.", "At 10:00, or 22 hours.", False),
        ("– | –", "Nothing.", False),
        ("", "Nothing.", False),
    ],
)
def test_vital_is_what_shares_a_figure_or_half_of_its_content_words(
    nugget: str, ground_truth: str, expected: bool
) -> None:
    assert vital(nugget, ground_truth) is expected


def test_of_the_shipped_quotes_most_are_vital_and_no_query_is_without() -> None:
    found = {
        case.query.query_id: [vital(one.quote, case.ground_truth) for one in case.evidence]
        for case in read_queries(QUERIES)
        if case.evidence
    }
    assert Counter(is_vital for quotes in found.values() for is_vital in quotes) == {True: 264, False: 22}
    assert all(any(quotes) for quotes in found.values())
