"""Numbers, dates and amounts, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.numbers import share_stated, stated_values


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
