"""Numbers in words are written in digits where they stand, and the text stays as long as it was."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text import numbers
from rag_harness.core.text.numbers import in_digits, in_words, number_said, share_stated, stated_values


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
        ("ten minutes to five in the afternoon", "4:50pm"),
        ("seven o'clock in the evening", "7 pm"),
        ("half a percent", "0.5 percent"),
        ("half of the users", "50% of the users"),
        ("between five and ten thousand", "between 5000 and 10000"),
        # Letters that regular expressions take for s and i, whatever their case.
        ("ſix dozen", "72"),
        ("twenty mıllion", "20000000"),
        ("twenty MİLLION", "20000000"),
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


# Numbers, dates and amounts, however they are written.


def _says(answer: str, wanted: str, language: str = "en") -> bool:
    return share_stated(stated_values(wanted, language), stated_values(answer, language)) == 1


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("30 days", "thirty days"),
        ("1,400", "1 400"),
        ("1.5 million", "1,500,000"),
        ("€9.90", "9.9 euros"),
        ("24 months", "two years"),
        ("3 to 5 working days", "3–5 days"),
        ("31 March 2027", "2027-03-31"),
        ("March 3rd, 2024", "3 March 2024"),
        ("1 December 2025, noon", "12:00 on 1 Dec 2025"),
        ("5 pm", "17:00"),
        ("21:30", "half past nine"),
        ("0.5 kg", "500 g"),
        ("Mondays and Wednesday", "Mon, Wed"),
        ("5.94", "about 5.9"),
        ("两周", "14天"),
    ],
)
def test_a_value_in_other_words_is_the_same(wanted: str, answer: str) -> None:
    assert _says(answer, wanted)


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("30 days", "30 hours"),
        ("80 cm", "80 mm"),
        ("120 feet", "120 metres"),
        ("ten years", "ten months"),
        ("31 July", "31 August"),
        ("1.5 million", "1.5"),
        ("5 pm", "5 am"),
        ("Monday", "Tuesday"),
        ("一天三次", "每天吃两次"),
        ("3 days", "It takes days [Source 3]."),
        ("2", "2. In the second place,"),
    ],
)
def test_another_value_is_not_the_same(wanted: str, answer: str) -> None:
    assert not _says(answer, wanted)


def test_words_of_other_languages() -> None:
    assert _says("dans trois semaines", "3 semaines", "fr")
    assert _says("4.90 EUR", "4,90 €", "de")
    assert _says("am 5. Mai", "5. Mai 2024"[:6], "de")


@given(st.integers(0, 10**7))
def test_separators_of_thousands_change_nothing(number: int) -> None:
    assert _says(f"{number:,}", str(number))
    assert _says(f"{number:,}".replace(",", "\N{NO-BREAK SPACE}"), str(number))
    assert not _says(str(number + 1), str(number))


@given(st.text(max_size=60))
def test_any_text_says_what_it_says(text: str) -> None:
    assert _says(text, text)


_WORDS_OF_FORMS = """
    one two five nine twelve seventeen twenty thirty ninety 3 10 30 1.5 1999 first third twentieth thirty-first of and a
    an the in to at before past half quarter quarters thirds point zero hundred thousand million hour hours h minutes
    mins o'clock o’clock am pm a.m. p.m. morning night noon midnight last day may march january percent per cent litre
    every fortnight decades century dozen dollars euros pounds cents us british USD US$ EUR GBP between or – - , people
    users year week MAY Noon ſix ſeventh uſd MILLıON MİLLİON
    """.split()  # noqa: SIM905


def test_a_form_is_missed_by_none_of_its_words() -> None:
    """The words only save time: without them the same is found."""
    drawn = random.Random(62)
    for _ in range(1_500):
        text = drawn.choice((" ", " ", " ", "-")).join(drawn.choices(_WORDS_OF_FORMS, k=drawn.randint(2, 9)))
        wanted = text
        for _words, pattern, made in numbers._patterns() if numbers._ANY.search(text) else ():
            wanted = pattern.sub(partial(_written, made), wanted)
        assert numbers.in_digits(text) == wanted


def _written(made: Callable[[re.Match[str]], str], found: re.Match[str]) -> str:
    return numbers._filled(found[0], made(found))
