"""Questions are parted by rules: the one that was asked first, at most three, nothing empty, nothing twice."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.studies.retail import MOST_SEARCHES, VERSION_QUESTION, subquestions

PIECES = st.sampled_from(
    [
        "How long do I have", "and what does it cost", ", or can I swap it", "between Grove and Plus", "?", ". ", "! ",
        "I am away", "compared with", "in 2024", ", how", " and ", "versus", "which policy", "\n", "é", "12.50", "",
    ]
)  # fmt: skip


@given(st.text(max_size=200) | st.lists(PIECES, max_size=12).map(" ".join))
def test_whatever_is_asked(text: str) -> None:
    found = subquestions(text)
    assert found[0] == text
    assert len(found) <= MOST_SEARCHES == 3
    assert all(part.strip() for part in found[1:])
    assert len({part.casefold() for part in found}) == len(found)
    assert subquestions(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "?!",
        "How long may I return a lamp?",
        "Can I return it or exchange it?",
        "lamp return window",
        "What do I pay to send it to my brother, who lives in Zone 2?",
        "When I sign up today, will that purchase show up?",
        "My aunt gave me a kettle and I don't want it. What would I get?",
        "Is it a chair or a stool?",
        "How, and why?",
    ],
)
def test_what_has_no_parts_stays_whole(text: str) -> None:
    assert subquestions(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "How many days does merging take and which number stays?",
            ["How many days does merging take", "which number stays?"],
        ),
        (
            "I cancelled the sofa. How much do you keep, and how long does the rest take?",
            ["I cancelled the sofa. How much do you keep", "I cancelled the sofa. how long does the rest take?"],
        ),
        (
            "Am I too late to swap it and do I have to pay on top?",
            ["Am I too late to swap it", "do I have to pay on top?"],
        ),
        (
            "It is broken. Can you mend it? And what does that cost?",
            ["It is broken. Can you mend it?", "It is broken. And what does that cost?"],
        ),
        (
            "am i doing sth wrong or do i have to push harder",
            ["am i doing sth wrong", "do i have to push harder"],
        ),
        (
            "What is the difference between Grove and Grove Plus?",
            ["What is the difference Grove?", "What is the difference Grove Plus?"],
        ),
        ("Express compared with standard delivery?", ["Express", "standard delivery?"]),
        ("Express vs. standard?", ["Express", "standard?"]),
        (
            "What does it cost, how long does it take and who brings it to me?",
            ["What does it cost", "how long does it take and who brings it to me?"],
        ),
        ("Who may call them and from when is it staffed?", ["Who may call them", "from when is it staffed?"]),
    ],
)
def test_parts(text: str, parts: list[str]) -> None:
    assert subquestions(text) == [text, *parts]


@pytest.mark.parametrize("text", ["Was delivery free in 2024?", "Is this the current policy?", "Which is outdated?"])
def test_which_version_is_current_is_asked_where_versions_matter(text: str) -> None:
    assert subquestions(text) == [text, f"{text} {VERSION_QUESTION}"]


def test_parts_go_before_versions() -> None:
    assert VERSION_QUESTION not in " ".join(subquestions("What did it cost in 2024 and what does it cost now?"))


@pytest.mark.parametrize(
    "text", ["between " * 2_000, " " * 10_000 + "?", ", how" * 2_000, "." * 10_000, "is it? " * 1_500]
)
def test_a_long_text_takes_no_time(text: str) -> None:
    started = time.perf_counter()
    subquestions(text)
    assert time.perf_counter() - started < 1
