"""One rule for the ends of sentences, on what people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.sentences import sentence_spans, sentence_texts
from rag_harness.service.citations import document_sentences


@pytest.mark.parametrize(
    "whole",
    [
        "Pay €4.90, e.g. Monday.",
        "See Dr. Meier and Mr. Olson.",
        "It is open Mon. to Fri. at ten.",
        "Bring form No. 4, see Fig. 2 and p. 12.",
        "C. Walton Musser patented it in the U.S. Patent Office.",
        "Six weeks, i.e. forty-five days.",
        "It is 1.5 m.",
        "Come at 5 p.m. Friday.",
        "Well... maybe.",
        "He asked “why?” and left.",
        "1. Fill in your name.",
        "$$ d = v t. $$",
        "It arrived! 🎉",
        "???",
    ],
)
def test_what_is_one_sentence_stays_whole(whole: str) -> None:
    assert sentence_texts(whole) == [whole]


@pytest.mark.parametrize(
    "pieces",
    [
        ["Shops open at ten.", "They close at six."],
        ["Is it free?", "No. Shipping costs €5."],
        ["There is no no.", "The rest is yes."],
        ["We ship until 5 p.m.", "The rest goes out on Monday."],
        ["It waits 45 ms.", "The network needs 48 V.", "Simplified: switching is left out."],
        ["*Model-free.*", "A method learns a policy."],
        ["It is made by Pennock Inc.", "It lasts."],
        ["`archive: false` opens it.", "`true` does not."],
        ["退货期限为45天。", "费用由买方承担。"],
        ["返品は45日以内です。", "送料は無料ですか？"],
        ["One line", "another line"],
    ],
)
def test_what_is_two_is_divided(pieces: list[str]) -> None:
    assert sentence_texts(" ".join(pieces) if "line" not in pieces[0] else "\n".join(pieces)) == pieces


def test_a_wrapped_sentence_goes_on_in_the_next_line_and_a_semicolon_may_end_one() -> None:
    text = "Pay now; it is\ndue. Thank you."
    assert len(list(sentence_spans(text))) == 3
    assert len(list(sentence_spans(text, wrapped=True))) == 2
    assert len(list(sentence_spans(text, wrapped=True, clauses=True))) == 3


def test_the_abbreviations_are_those_of_the_language_that_the_text_is_in() -> None:
    text = "Sperrige Waren, z. B. Anhänger, kommen später. Die Fassung gilt seit dem 3. März."
    assert len(sentence_texts(text)) == len(sentence_texts(text, "de")) == 2
    assert len(sentence_texts(text, "en")) > 2


def test_headings_items_and_rows_of_a_document_are_sentences_of_their_own() -> None:
    page = "# Returns\nSend it\nback. We pay.\n- One. Two.\n| a | b |\n"
    found = [page[slice(*span)] for span in document_sentences(page, 0, len(page), wrapped=True)]
    assert found == ["# Returns", "Send it\nback.", "We pay.", "- One.", "Two.", "| a | b |"]


@given(st.text("aB1 .!?;…\n\"'”)。e$", max_size=60), st.booleans(), st.booleans())
def test_sentences_stand_in_order_and_leave_out_blank_space_alone(text: str, wrapped: bool, clauses: bool) -> None:
    found = list(sentence_spans(text, language="en", wrapped=wrapped, clauses=clauses))
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(before[1] <= start < end for before, (start, end) in zip([(0, 0), *found], found, strict=False))
