"""The boost orders and nothing else; the floor and the confidence ask for the raw cosine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Hit
from rag_harness.studies.textbook import above_floor, boost, boosted, confidence_of, cosine_of, near_the_first
from rag_harness.studies.textbook_retrieval import CALIBRATED, RECORD, Selection, floor_of
from tests.unit.studies.textbook.hits import near, section

HELD = "the selected words"
cosines = st.lists(st.floats(-1, 1, width=32), max_size=12)
factors = st.sampled_from([1.0, 1.2, 1.5, 2.0])


def hits_of(values: list[float], held: set[int]) -> list[Hit]:
    falling = sorted(values, reverse=True)
    return near([section(f"{n} {HELD if n in held else 'others'}") for n in range(len(falling))], falling)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_a_boost_only_orders(values: list[float], held: set[int], factor: float) -> None:
    before = hits_of(values, held)
    after, count = boosted(before, Selection(HELD), factor)
    assert count == sum(n in held for n in range(len(before)))
    assert sorted(hit.chunk.chunk_id for hit in after) == sorted(hit.chunk.chunk_id for hit in before)
    assert [hit.rank for hit in after] == list(range(1, len(before) + 1))
    raw = {hit.chunk.chunk_id: hit.score for hit in before}
    assert all(hit.score == cosine_of(hit) == raw[hit.chunk.chunk_id] for hit in after)
    assert confidence_of(after, 5) == confidence_of(before, 5)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_boosted_scores_fall_stay_at_most_one_and_ties_go_by_cosine(
    values: list[float], held: set[int], factor: float
) -> None:
    after, _ = boosted(hits_of(values, held), Selection(HELD), factor)
    scores = [hit.scores["boosted"] for hit in after]
    assert scores == sorted(scores, reverse=True)
    assert all(score <= 1 for score in scores)
    for first, second in pairwise(after):
        if first.scores["boosted"] == second.scores["boosted"]:
            assert cosine_of(first) >= cosine_of(second)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_nothing_that_holds_the_selection_falls_behind(values: list[float], held: set[int], factor: float) -> None:
    after, _ = boosted(hits_of(values, held), Selection(HELD), factor)
    before = {hit.chunk.chunk_id: n for n, hit in enumerate(hits_of(values, held))}
    others = [before[hit.chunk.chunk_id] for hit in after if HELD not in hit.chunk.text]
    assert others == sorted(others)
    for rank, hit in enumerate(after):
        if HELD in hit.chunk.text:
            overtook = [one for one in after[rank + 1 :] if before[one.chunk.chunk_id] < before[hit.chunk.chunk_id]]
            assert not [one for one in after[:rank] if before[one.chunk.chunk_id] > before[hit.chunk.chunk_id]
                        and HELD not in one.chunk.text], overtook  # fmt: skip


def test_two_at_the_cap_are_told_apart_by_their_cosines() -> None:
    hits = near([section("a"), section(f"b {HELD}"), section(f"c {HELD}")], [0.9, 0.6, 0.55])
    after, _ = boosted(hits, Selection(HELD), 2)
    assert [hit.chunk.text[0] for hit in after] == ["b", "c", "a"]
    assert [hit.scores["boosted"] for hit in after] == [1.0, 1.0, 0.9]


def test_ties_go_by_cosine_whatever_the_hits_were_ranked_by() -> None:
    first = Hit(section(f"a {HELD}"), 0.9, 1, "hybrid", {"dense": 0.3})
    second = Hit(section(f"b {HELD}"), 0.8, 2, "hybrid", {"dense": 0.5})
    after, _ = boosted([first, second], Selection(HELD), 2)
    assert [hit.chunk.text[0] for hit in after] == ["b", "a"]


def test_a_boost_leaves_the_confidence() -> None:
    hits = near([section(f"{n} {HELD if n == 5 else ''}") for n in range(6)], [0.9, 0.8, 0.7, 0.6, 0.5, 0.48])
    after, _ = boosted(hits, Selection(HELD), 2)
    assert after[0].score == 0.48
    assert confidence_of(after, 5) == confidence_of(hits, 5) == pytest.approx(0.7)


FORTY = near([section(f"{n} {HELD}") for n in range(40)], [0.9 - n / 100 for n in range(40)])
OTHERS = near([section("a"), section("b")], [0.9, 0.4])


@pytest.mark.parametrize(
    ("hits", "inputs", "factor", "outcome", "value", "reason"),
    [
        (OTHERS, {}, 2, "none", None, "nothing is selected"),
        (OTHERS, {"selected_text": 7}, 2, "none", None, "selected_text is int, not text"),
        (OTHERS, {"selected_text": " \n "}, 2, "none", None, "the selection is white space"),
        (OTHERS, {"selected_text": HELD}, 1, "none", None, "this experiment does not boost"),
        (OTHERS, {"selected_text": HELD}, 2, "none", 0.0, "none of the 2 candidates holds the selection, x2; the"),
        (OTHERS, {"selected_text": "word " * 2000}, 2, "none", 0.0, "has 9,999 characters"),
        ([], {"selected_text": HELD}, 2, "none", 0.0, "none of the 0 candidates"),
        (FORTY, {"selected_text": HELD}, 2, "boosted", 40.0, "all 40 candidates hold the selection, which tells none"),
        (near([section("a"), section(HELD)], [0.6, 0.5]), {"selected_text": HELD}, 1.5, "boosted", 1.0,
         "1 of 2 candidates hold the selection and the order changed, x1.5"),
        (near([section(HELD), section("a")], [0.6, 0.5]), {"selected_text": HELD}, 1.2, "boosted", 1.0,
         "and the order stayed, x1.2"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_boost(
    hits: list[Hit], inputs: dict[str, object], factor: float, outcome: str, value: float | None, reason: str
) -> None:
    after, decision = boost(hits, inputs, factor)
    assert len(after) == len(hits)
    assert (decision.name, decision.outcome, decision.value) == ("boost", outcome, value)
    assert reason in decision.reason


@given(cosines, st.floats(0, 1))
def test_the_floor_keeps_the_first_five_that_reach_it(values: list[float], floor: float) -> None:
    hits = hits_of(values, set())
    kept, decision = above_floor(hits, floor, 5)
    assert [hit.chunk for hit in kept] == [hit.chunk for hit in hits if hit.score >= floor][:5]
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))
    assert (decision.outcome == "kept") == bool(kept)
    assert decision.threshold == floor


def test_a_floor_of_nothing_and_of_one() -> None:
    hits = near([section("a"), section("b"), section("c")], [1.0, 0.0, -0.1])
    assert len(above_floor(hits, 0.0, 5)[0]) == 2
    assert [hit.chunk.text for hit in above_floor(hits, 1.0, 5)[0]] == ["a"]
    kept, decision = above_floor([], 0.0, 5)
    assert (kept, decision.outcome, decision.value) == ([], "nothing found", None)
    assert decision.reason == "nothing was retrieved at all"


def test_the_floor_asks_for_the_cosine_and_not_for_the_score_it_was_ranked_by() -> None:
    low = Hit(section("low"), 0.95, 1, "hybrid", {"dense": 0.2})
    high = Hit(section("high"), 0.5, 2, "hybrid", {"dense": 0.8})
    assert [hit.chunk.text for hit in above_floor([low, high], 0.7, 5)[0]] == ["high"]
    assert confidence_of([low, high], 5) == pytest.approx(0.5)


def test_confidence_lies_between_nought_and_one() -> None:
    assert confidence_of([], 5) == 0
    assert confidence_of(near([section("a")], [-0.4]), 5) == 0
    assert confidence_of(near([section("a")], [1.0000001]), 5) == 1
    six = near([section(str(n)) for n in range(6)], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert confidence_of(six, 5) == pytest.approx(0.4)


def test_floors() -> None:
    assert floor_of("mock/hashed-words", "calibrated")[0] == CALIBRATED["mock/hashed-words"]
    assert floor_of("mock/hashed-words", "record")[0] == RECORD == 0.7
    floor, decision = floor_of("nobody/knows", "calibrated")
    assert floor == RECORD
    assert "none is calibrated for nobody/knows" in decision.reason
    assert [floor_of("a", kind)[0] for kind in ("0", "1", "0.25")] == [0, 1, 0.25]
    for wrong in ("1.01", "-0.1", "nan", "high"):
        with pytest.raises(ValueError, match="expected calibrated, record, or a number from 0 to 1"):
            floor_of("a", wrong)


@pytest.mark.parametrize(
    ("scores", "kept", "near"),
    [
        ([0.8, 0.3, 0.2, 0.1], 3, 1),
        ([0.8, 0.7, 0.65, 0.61, 0.59], 4, 4),
        ([0.8] * 10, 8, 10),
        ([0.8, 0.1], 2, 1),
        ([], 0, 0),
    ],
)
def test_the_scores_decide_how_many_sources_there_are(scores: list[float], kept: int, near: int) -> None:
    hits = hits_of(scores, set())
    found, decision = near_the_first(hits)
    assert found == hits[:kept]
    assert decision.value == kept
    assert decision.reason.startswith(f"{near} of {len(scores)} sections have 75% of the first one's score")


def test_adaptive_sources_go_by_the_boosted_order() -> None:
    first, *others = hits_of([0.6] * 6, set())
    boosted_first = replace(first, scores={"dense": 0.6, "boosted": 0.9})
    assert len(near_the_first([boosted_first, *others])[0]) == 3
