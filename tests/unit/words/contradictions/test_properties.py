"""What holds of contradictions between any texts, and how long hostile ones take."""

from __future__ import annotations

from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.text.contradictions import Contradiction, against, contradictions

_SUBJECTS = ("a lost card", "the guided tour", "the swimming course", "a parcel by post")
_SAYINGS = (
    "{} costs €{} in spring.",
    "{} takes {} days at most.",
    "{} starts on {} June each year.",
    "{} needs Java {} or later.",
    "{} is booked by {} people or more.",
    "{} begins between {} and 29 minutes later.",
)
_DENIALS = ("{} can be cancelled online.", "{} cannot be cancelled online.", "{} must not be cancelled online.")
_sentences = st.one_of(
    st.builds(lambda said, what, many: said.format(what, many).capitalize(),
              st.sampled_from(_SAYINGS), st.sampled_from(_SUBJECTS), st.integers(2, 28)),
    st.builds(lambda said, what: said.format(what).capitalize(), st.sampled_from(_DENIALS), st.sampled_from(_SUBJECTS)),
)  # fmt: skip
_texts = st.lists(_sentences, max_size=6).map(" ".join)
LONG = 20_000
PATIENCE = 1.5
"""Seconds. Under 0.2 each where it was written; the rest is for slower machines, not for a power of the length."""


def told(found: list[Contradiction]) -> list[tuple[object, ...]]:
    return sorted((one.kind, one.first.sentence, one.second.sentence, one.differs) for one in found)


def turned(found: list[Contradiction]) -> list[tuple[object, ...]]:
    return sorted((one.kind, one.second.sentence, one.first.sentence, one.differs[::-1]) for one in found)


@given(_texts, _texts)
def test_the_order_of_texts_only_swaps_the_sides(one: str, other: str) -> None:
    assert told(contradictions([one, other])) == turned(contradictions([other, one]))


@given(st.one_of(_texts, st.text(max_size=200)))
def test_a_text_never_contradicts_itself(text: str) -> None:
    assert contradictions([text, text]) == []
    assert contradictions([text, text.replace(" ", "  ")]) == []
    assert against(text, [text]) == []


@given(_texts, _texts)
def test_case_does_not_matter(one: str, other: str) -> None:
    loud = contradictions([one.upper(), other])
    found = contradictions([one, other])
    assert [(it.kind, it.first.start, it.second.start) for it in loud] == [
        (it.kind, it.first.start, it.second.start) for it in found
    ]


@given(_texts, _texts, st.sampled_from(["  ", "\t", "\n", " \n  "]))
def test_white_space_does_not_matter(one: str, other: str, space: str) -> None:
    spaced = contradictions([one.replace(" ", space), other])
    folded = [(it.kind, " ".join(it.first.sentence.split()), it.second.sentence, it.differs) for it in spaced]
    assert sorted(folded) == told(contradictions([one, other]))


@given(st.lists(st.one_of(_texts, st.text(max_size=300)), max_size=4))
def test_quotes_are_verbatim_and_of_two_texts(texts: list[str]) -> None:
    for found in contradictions(texts):
        assert 0 <= found.first.text < found.second.text < len(texts)
        for quote in (found.first, found.second):
            assert texts[quote.text][quote.start : quote.end] == quote.sentence


@given(st.text(alphabet="|-#*[](){}`~<>!$€%.:;,'\"\\ \n\t 019azAZé½²٣\x00", max_size=300), _texts)
@settings(max_examples=200)
def test_any_text_is_read(text: str, other: str) -> None:
    contradictions([text, other])
    against(text, [other])


def _prose(shift: int) -> str:
    names = [f"{first}{second}ump" for first in "bcdfghjklmnp" for second in "aeiou"]
    lines = (f"The {names[n % 60]} {names[n * 7 % 59]} costs €{(n * 13 + shift) % 97}." for n in range(2_000))
    return " ".join(lines)[:LONG]


_PIECES = (
    *("1", "1 ", "1.", "5 - ", "a", "a-", "a1-", " ", "\n", "[", "[a](", "[1 ", "<!--", "```\n", "*", "|", "$", "$a="),
    *(
        "€5 ",
        "not ",
        "if ",
        "zone 1, ",
        "a: ",
        ".\"'",
        "e.g. ",
        "# a\n",
        "- a 5 b\n",
        "may 5 ",
        "free of charge ",
        "\0",
    ),
    *("until the end of ", "effective from a ", "The pool opens at 7:00. ", "|a|1|\n|-|-|\n"),
)


def test_long_hostile_texts_are_read_at_once() -> None:
    took = {piece: seconds(piece * (2 * LONG // len(piece)), "The pool opens at 8:00.") for piece in _PIECES}
    assert {piece: each for piece, each in took.items() if each >= PATIENCE} == {}


def test_long_prose_and_tables_are_read_at_once() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| row {row} | {row} |\n" for row in range(9_000))
    assert seconds(_prose(1), _prose(2)) < PATIENCE
    assert seconds(table[: 2 * LONG], "Row 5 of a has 7 of b.") < PATIENCE


def seconds(*texts: str) -> float:
    start = process_time()
    contradictions(texts)
    return process_time() - start
