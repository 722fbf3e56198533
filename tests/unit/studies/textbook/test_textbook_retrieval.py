"""Fusion of two rankings, and summaries that stand for their sections."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Chunk, Hit
from rag_harness.retrieval.chunking.chunkers import summary_of
from rag_harness.studies.textbook_retrieval import Fused, Selection, SummariesFirst, by_rank, selected_text, weighted
from tests.effort import bounded
from tests.unit.studies.textbook.hits import near, section

# Fusion of two rankings, and summaries that stand for their sections.

A, B, C, D = (section(name) for name in "ABCD")


class Fixed:
    """Returns the hits that it was made with."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.hits = list(hits)

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.hits[:k]


def worded(chunks: Sequence[Chunk], scores: Sequence[float]) -> list[Hit]:
    return [Hit(c, score, rank, "bm25") for rank, (c, score) in enumerate(zip(chunks, scores, strict=True), 1)]


NEAR, WORDED = near([A, B, C], [0.9, 0.7, 0.5]), worded([D, B], [12.0, 4.0])


def test_weights_over_stretched_scores() -> None:
    scores = {name[-1]: score for name, score in weighted(NEAR, WORDED).items()}
    assert scores == pytest.approx({"A": 0.7, "B": 0.35, "C": 0.0, "D": 0.3})


def test_equal_scores_count_fully_and_nothing_counts_nothing() -> None:
    assert set(weighted(near([A, B], [0.5, 0.5]), []).values()) == {0.7}
    assert weighted([], []) == {}
    assert list(weighted([], worded([D], [3.0])).values()) == [0.3]


def test_fused_hits_keep_their_cosines() -> None:
    hits = Fused(Fixed(NEAR), Fixed(WORDED), weighted).retrieve("q", 3)
    assert [hit.chunk.text for hit in hits] == ["A", "B", "D"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert hits[1].scores == pytest.approx({"dense": 0.7, "bm25": 4.0, "hybrid": 0.35})
    assert hits[2].scores["dense"] == 0.5  # only words have found it: the lowest cosine of the candidates
    assert all(hit.score == hit.scores["hybrid"] for hit in hits)


def test_fused_by_rank() -> None:
    hits = Fused(Fixed(NEAR), Fixed(WORDED), by_rank).retrieve("q", 9)
    assert [hit.chunk.text for hit in hits] == ["B", "A", "D", "C"]
    assert hits[0].score == pytest.approx(2 / 62)
    assert Fused(Fixed([]), Fixed([]), by_rank).retrieve("q", 9) == []


def test_sections_come_back_whole_by_the_better_cosine() -> None:
    sections = [Chunk(name, "p.md", f"the whole of {name}") for name in "abc"]
    summaries = near([Chunk(name, "p.md", "short") for name in "abc"], [0.6, 0.5, 0.4])
    own = near([sections[1]], [0.8])
    hits = SummariesFirst(Fixed(summaries), Fixed(own), lambda: sections).retrieve("q", 2)
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("the whole of b", 0.8), ("the whole of a", 0.6)]
    assert hits[0].scores == {"dense": 0.8, "summary": 0.5}


def test_a_summary_of_a_section_that_was_left_out_is_passed_over() -> None:
    summaries = near([Chunk(name, "p.md", "short") for name in "ab"], [0.6, 0.5])
    hits = SummariesFirst(Fixed(summaries), Fixed([]), lambda: [Chunk("b", "p.md", "the whole")]).retrieve("q", 2)
    assert [(hit.chunk.chunk_id, hit.rank) for hit in hits] == [("b", 1)]


TEXT = """## Reading

One *node* reads. It has v. 2 and waits!

```python
Not = "a sentence."
```

| table | x |
|---|---|

$$ y. Z $$

Third sentence here? Fourth is left out. """


def test_a_summary_has_the_headings_and_the_first_sentences() -> None:
    chunk = Chunk("a", "p.md", TEXT, section=("Page", "Reading"))
    said = summary_of(chunk)
    assert said == "Page > Reading: One *node* reads. It has v. 2 and waits! Third sentence here?"


def test_a_section_without_prose_has_its_headings_and_one_without_these_its_text() -> None:
    code = "```\nx = 1\n```\n"
    assert summary_of(Chunk("a", "p.md", code, section=("Page",))) == "Page"
    assert summary_of(Chunk("a", "p.md", code)) == code


# Does a chunk hold what a student has selected?

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
    with bounded(10):
        assert not any(selection.is_in(f"{text} {n}") for n in range(10))


def test_what_is_no_text_is_no_selection() -> None:
    assert selected_text({}) is None
    assert selected_text({"selected_text": ["a"]}) is None
    found = selected_text({"selected_text": " a\nb "})
    assert found is not None
    assert found.text == "a b"
