"""Answers of the longest length that a model may give are cited, and compared, in a time that grows with them alone."""

from __future__ import annotations

import time

import pytest

from rag_harness.core.text.sentences import stripped
from rag_harness.core.types import Chunk, Document, Hit
from rag_harness.service.citations import cited
from rag_harness.studies.reliability_verification import claims_agreement

TEXT = "Lamps can be returned within 45 days. Every lamp is made by hand."
HITS = [Hit(Chunk("lamp.md#0", "lamp.md", TEXT, 0, len(TEXT)), 1.0, 1)]


def document(doc_id: str) -> Document:
    return Document(doc_id, TEXT, "lamp", {})


@pytest.mark.parametrize(
    "answer",
    [
        "lamp " * 20_000 + "[source 1])" * 8_500,
        "a\n" * 50_000 + "x[source 1]" * 9_000,
        "Lamps can be returned within 45 days [Source 1]. " * 4_000,
        "[Source 1][Source 1]" * 9_000,
        "[source " * 25_000,
        " )" * 100_000 + "[source 1]",
    ],
    ids=["one claim, many marks", "many sentences, many marks", "an ordinary list", "marks", "unclosed", "blanks"],
)
def test_citations_open_in_a_time_that_grows_with_the_answer(answer: str) -> None:
    began = time.thread_time()
    cited(answer, (1,), HITS, document)
    assert time.thread_time() - began < 5  # the first took minutes


def test_two_long_lists_are_compared_at_once() -> None:
    lists = [" ".join(f"Lamp {n} costs {n + more} euros." for n in range(7_000)) for more in (0, 10_000)]
    began = time.thread_time()
    assert claims_agreement(lists[0], lists[0]) == 1
    assert claims_agreement(*lists) < 1
    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("text", "kept"), [(" \t- a b ", "a b"), ("\u2003)\n * x", "x"), (" ) ", ""), ("", ""), ("a -", "a -")]
)
def test_blanks_and_marks_of_lists_are_taken_off_in_any_order(text: str, kept: str) -> None:
    start, end = stripped(text, 0, len(text), "-*)")
    assert text[start:end] == kept
