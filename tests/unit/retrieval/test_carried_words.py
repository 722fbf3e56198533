"""The rules: a turn takes over the words that it lacks, and one that is complete takes none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Chunk, Message
from rag_harness.retrieval.retrievers import MOST_CARRIED, Rarity, with_carried_words
from tests.hostile import CORPUS

PAGES = (
    "The Ridge 2 tent weighs 3 kg. Renting the Ridge 2 costs €14 for a day.",
    "The Ridge 3 tent weighs 5 kg. Renting the Ridge 3 costs €18 for a day.",
    "Our stores take small batteries; the box stands near the entrance.",
    "Standard delivery takes 3 days. Express delivery takes one day.",
    "A gift card is valid for five years. It cannot be returned.",
    "The warranty of a mower lasts 36 months and covers the motor.",
)
RARITY = Rarity([Chunk(f"p{n}", f"p{n}.md", text) for n, text in enumerate(PAGES)])
SAID = [Message("user", "can i rent a tent?"), Message("assistant", "Yes, the Ridge 2 and the Ridge 3.")]
LONGEST = 510
texts = st.text(max_size=300) | st.sampled_from(CORPUS)
words = st.lists(st.sampled_from(" ".join(PAGES).split()), max_size=60).map(" ".join)
said = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), texts | words), max_size=12)


def carried(turn: str, *earlier: Message, longest: int = LONGEST) -> tuple[str, tuple[str, ...]]:
    made = with_carried_words(turn, earlier or SAID, RARITY, longest)
    return made.text, made.words


def test_a_turn_gets_the_words_that_it_lacks_those_said_last_first() -> None:
    text, taken = carried("the bigger one please. how much is that")
    assert text == "the bigger one please. how much is that? This is about: Ridge 2 3 rent tent."
    assert taken == ("Ridge", "2", "3", "rent", "tent")


def test_a_word_of_the_turn_is_not_repeated_in_whatever_form() -> None:
    assert carried("and the TENTS?")[0] == "and the TENTS? This is about: Ridge 2 3 rent."


def test_words_that_no_page_has_are_not_taken_over() -> None:
    made = with_carried_words("and?", [Message("user", "my zebra sleeps")], RARITY, LONGEST)
    assert (made.text, made.words, made.why_not) == ("and?", (), "no words of the pages were said")


@pytest.mark.parametrize(
    "turn", ["another thing, is the box for batteries near the entrance?", "gift card valid five years"]
)
def test_a_turn_that_is_complete_in_itself_stays_as_it_is(turn: str) -> None:
    made = with_carried_words(turn, SAID, RARITY, LONGEST)
    assert (made.text, made.words) == (turn, ())
    assert made.why_not.startswith("it is complete in itself")


def test_a_turn_of_few_words_is_not_complete_though_none_of_them_was_said() -> None:
    assert carried("and batteries for the box?")[1] == ("Ridge", "2", "3", "rent", "tent")


def test_one_that_repeats_a_word_is_not_complete() -> None:
    assert carried("is the box for batteries near the entrance of a tent?")[1] == ("Ridge", "2", "3", "rent")


def test_a_first_question_stays_as_it_is() -> None:
    made = with_carried_words("  how much is\n that ", [], RARITY, LONGEST)
    assert (made.text, made.why_not) == ("  how much is\n that ", "nothing was said before it")


def test_the_weightiest_words_are_chosen() -> None:
    everything = Message("user", " ".join(PAGES))
    taken = set(carried("and?", everything)[1])
    assert len(taken) == MOST_CARRIED
    # Two pages have these, and those that are left out are no rarer than any that is chosen.
    assert not {"Ridge", "tent", "takes", "day", "kg"} <= taken


def test_what_does_not_fit_is_left_out() -> None:
    # One page has "2", two have each of the others but "3", which three have.
    whole = "and? This is about: Ridge 2 3 rent tent."
    assert carried("and?", longest=len(whole))[0] == whole
    assert carried("and?", longest=len(whole) - 1) == (
        "and? This is about: Ridge 2 rent tent.",
        ("Ridge", "2", "rent", "tent"),
    )
    made = with_carried_words("x" * LONGEST, SAID, RARITY, LONGEST)
    assert (made.text, made.why_not) == ("x" * LONGEST, "there is no room for words")


def test_a_question_in_another_language_gets_words_of_its_language_and_no_english_ones() -> None:
    earlier = [Message("user", "Kann ich ein Zelt wie das Ridge 2 für einen Tag mieten?")]
    text, taken = carried("und was kostet das", *earlier)
    assert text == "und was kostet das? Ridge 2"
    assert taken == ("Ridge", "2")


@given(turn=texts, earlier=said, longest=st.integers(0, 600))
def test_no_question_is_longer_than_its_bound_or_the_turn_itself(
    turn: str, earlier: list[Message], longest: int
) -> None:
    made = with_carried_words(turn, earlier, RARITY, longest)
    assert made.text == turn or len(made.text.encode(errors="replace")) <= longest
    assert len(made.words) <= MOST_CARRIED
    assert bool(made.words) != bool(made.why_not)
    assert made.text.startswith(turn.rstrip())


@given(turn=words, earlier=said)
def test_equal_conversations_give_equal_questions(turn: str, earlier: list[Message]) -> None:
    again = Rarity([Chunk(f"p{n}", f"p{n}.md", text) for n, text in enumerate(PAGES)])
    first = with_carried_words(turn, earlier, RARITY, LONGEST)
    assert with_carried_words(turn, [*earlier], again, LONGEST) == first


@given(turn=words, earlier=said)
def test_every_word_that_is_taken_over_was_said(turn: str, earlier: list[Message]) -> None:
    everything = " ".join(each.content for each in earlier)
    assert all(word in everything for word in with_carried_words(turn, earlier, RARITY, LONGEST).words)


@pytest.mark.parametrize("part", ["a", "a ", "é", "2-", "a-1", "tent ", "[Source 1: ", "'s", "\ud800", "«€ "])
def test_hostile_text_takes_no_more_than_linear_time(part: str) -> None:
    def seconds(times: int) -> float:
        started = time.thread_time()
        with_carried_words(part * times, [Message("user", part * times)] * 12, RARITY, LONGEST)
        return time.thread_time() - started

    # 16 times the text takes about 16 times as long, and 256 times as long if it were quadratic.
    assert seconds(8_000) < 64 * max(seconds(500), 0.005)
