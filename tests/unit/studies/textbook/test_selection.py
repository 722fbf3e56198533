"""Does a chunk hold what a student has selected?"""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.studies.textbook_retrieval import Selection, selected_text

TEN = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(
    ("selected", "text", "held"),
    [
        ("two  three\n\tfour", f"# Numbers\n\n{TEN}", True),
        ("two three", "one two\n\nthree", True),
        ("Best effort sends once.", "*Best effort* sends once.", True),  # a screen shows no marks
        ("cross", "across the grass", False),
        ("gras", "across the grass", False),
        ("cross", "across a cross", True),
        ("ros", "ROS 2 Humble", True),
        ("→ ★", "a → ★ b", True),
        ("→ ★", "a b", False),
        (TEN, "one two three four five six and so on", True),  # six of ten in a row
        (TEN, "one two three four five and six", False),
        (TEN, "one two three x four five six x seven eight nine", False),  # nine of ten, three in a row
        (TEN, "xone two three four five six", False),
        ("one two three", "one two", True),  # 60 % of three words are two
        ("one two three", "one x two x three", False),
        ("", "anything", False),
        (" \n\t\u00a0", "anything", False),
    ],
)
def test_held(selected: str, text: str, held: bool) -> None:
    assert Selection(selected).is_in(text) is held


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "c"]), max_size=12))
def test_a_run_of_three_fifths_and_nothing_less(selected: list[str], text: list[str]) -> None:
    runs = [end - start for start in range(len(selected)) for end in range(start + 1, len(selected) + 1)
            if selected[start:end] in [text[at : at + end - start] for at in range(len(text))]]  # fmt: skip
    longest = max(runs, default=0)
    expected = bool(selected) and longest * 10 >= len(selected) * 6
    assert Selection(" ".join(selected)).is_in(" ".join(text)) is expected


@pytest.mark.parametrize("characters", [10_000, 200_000])
def test_a_long_selection_is_looked_for_in_bounded_time(characters: int) -> None:
    selection = Selection("word after word, " * (characters // 17))
    text = f"{'word after word. ' * 300} other " * 2
    started = perf_counter()
    assert not any(selection.is_in(f"{text} {n}") for n in range(10))
    assert perf_counter() - started < 2


def test_what_is_no_text_is_no_selection() -> None:
    assert selected_text({}) is None
    assert selected_text({"selected_text": ["a"]}) is None
    found = selected_text({"selected_text": " a\nb "})
    assert found is not None
    assert found.text == "a b"
