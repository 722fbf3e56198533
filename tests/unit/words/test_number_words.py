"""Numbers in words are written in digits where they stand, and the text stays as long as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.numbers import in_digits, in_words, number_said


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("twenty-four months", "24 months"),
        ("forty two months", "42 months"),
        ("one hundred and twenty-five people", "125 people"),
        ("fifteen hundred visitors", "1500 visitors"),
        ("three million users", "3000000 users"),
        ("two thousand and nine", "2009"),
        ("nineteen ninety-eight", "1998"),
        ("half a year", "6 months"),
        ("a year and a half", "18 months"),
        ("two and a half hours", "2.5 hours"),
        ("three quarters of an hour", "45 minutes"),
        ("half a litre", "0.5 litre"),
        ("a quarter of a percent", "0.25 percent"),
        ("two dozen eggs", "24 eggs"),
        ("a fortnight", "14 days"),
        ("one in ten users", "10% users"),
        ("USD 14.99", "$14.99"),
        ("nine in the morning", "9 am"),
        ("half past nine", "9:30"),
        ("a quarter to ten", "9:45"),
        ("nine o'clock", "9:00"),
        ("half past two in the afternoon", "2:30pm"),
        ("at ten to six", "at 5:50"),
        ("twenty past seven", "7:20"),
        ("4:30 in the morning", "4:30 am"),
        ("eight p.m.", "8 p.m."),
        ("an hour and three quarters", "105 minutes"),
        ("1 hour and 20 minutes", "80 minutes"),
        ("half hour", "30 mins"),
        ("two hours and a half", "2.5 hours"),
        ("two euros fifty.", "2.50 euros."),
        ("three pounds and twenty pence", "3.20 pounds"),
        ("twenty-nine Swiss francs", "29 francs"),
        ("four fifths of its capacity", "80% of its capacity"),
        ("every fifth member", "20% member"),
        ("ten to twelve thousand kilometres", "10000 to 12000 kilometres"),
        ("a hundred and twelve", "112"),
        ("one point six", "1.6"),
        ("the last day of August", "August 31"),
        ("the thirty-first of March", "the 31 of March"),
        ("June the twelfth", "June 12"),
    ],
)
def test_words_and_digits(words: str, digits: str) -> None:
    assert " ".join(in_digits(words).split()) == digits


@pytest.mark.parametrize(
    "text",
    [
        "one of them",
        "in five minutes",
        "five to ten people",
        "every third year",
        "the last day of February",
        "3.5 out of 5 stars",
        "seven days",
        "this afternoon",
        "a second opinion",
        "24/7",
    ],
)
def test_what_is_no_number_of_several_words_stays(text: str) -> None:
    assert in_digits(text) == text


_WORDS = st.sampled_from(
    "twenty four hundred and a half past nine of an hour year million USD 14.99 the dozen quarter in ten to -".split()  # noqa: SIM905
)


@given(st.lists(_WORDS, max_size=12).map(" ".join) | st.text(max_size=40))
def test_a_text_keeps_its_length_and_is_read_once(text: str) -> None:
    digits = in_digits(text)
    assert len(digits) == len(text)
    assert in_digits(digits) == digits or len(in_digits(digits)) == len(text)


@given(st.integers(21, 99))
def test_numbers_to_a_hundred_by_their_names(number: int) -> None:
    tens = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
    ones = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    name = "-".join(filter(None, [tens[number // 10], ones[number % 10]]))
    assert number_said(name) == number
    if number % 10:
        assert in_digits(f"{name} days").split() == [str(number), "days"]


def test_a_reason_shows_the_words_of_the_text() -> None:
    text = "The warranty lasts twenty-four months, or half a year for batteries."
    assert in_words(text, "24 months") == "twenty-four months"
    assert in_words(text, "6 months") == "half a year"
    assert in_words("It lasts 24 months.", "24 months") == "24 months"
    assert number_said("no number") is None
