"""What the trials of an experiment show together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_harness.core.types import Document
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.symptoms import AcrossTrials, WordSearch, drawn_from
from rag_harness.records.row import ExperimentResult
from tests.unit.rows import make_chunk, make_row

THINGS = ("lamp", "kettle", "tent", "desk", "sofa", "scarf", "mirror", "pillow")
PAGES = [
    Document(f"{thing}.md", f"# The {thing}\n\nYou may return the {thing} within {n} days of delivery.", thing, {})
    for n, thing in enumerate(THINGS, 31)
]
SEARCH = WordSearch(CorpusView(None, PAGES))


def asked(n: int, answer: str = "", about: int | None = None, **changes: object) -> ExperimentResult:
    thing = THINGS[n]
    page = PAGES[n if about is None else about]
    said = answer or f"You may return the {thing} within {31 + n} days."
    chunk = make_chunk(f"{page.doc_id}#1", text=page.text)
    usual: dict[str, object] = {
        "query_id": f"q{n}",
        "query": f"How many days for the return of my {thing} after delivery?",
    }
    usual |= {"llm_answer": said, "ground_truth": f"Return the {thing} within {31 + n} days.", "abstained": False}
    return make_row(**(usual | {"retrieved_chunks": [chunk]} | changes))


def across(rows: Sequence[ExperimentResult]) -> AcrossTrials:
    return AcrossTrials(lambda: rows, SEARCH)


@pytest.mark.parametrize(("same", "of", "wanted"), [(3, 5, True), (3, 6, False), (2, 3, False), (8, 8, True)])
def test_one_answer_to_most_questions(same: int, of: int, wanted: bool) -> None:
    rows = [asked(n, "Ask our team." if n < same else "") for n in range(of)]
    assert bool(across(rows).same_answer(rows[0])) == wanted
    assert not across(rows).same_answer(asked(7, "Something else."))


def test_an_answer_that_is_right_for_all_and_a_refusal_are_no_one_answer() -> None:
    rows = [asked(n, "Yes, it may.", ground_truth="Yes, it may.") for n in range(5)]
    assert across(rows).same_answer(rows[0]) == ""
    rows = [asked(n, "I don't know.") for n in range(5)]
    assert across(rows).same_answer(rows[0]) == ""


def test_one_context_for_most_questions() -> None:
    rows = [asked(n, about=0) for n in range(5)]
    assert across(rows).same_context(rows[1]) == "5 of 5 different questions have this context"
    assert across([asked(n) for n in range(5)]).same_context(asked(1)) == ""


def asked_of(n: int, about: int, answer: str) -> ExperimentResult:
    """Ask for one thing; the context is that of another."""
    reference = (PAGES[n].doc_id,)
    return asked(n, answer, about, query=f"Return my {THINGS[n]}?", context_reference=reference)


def test_contexts_of_other_questions_are_seen_together() -> None:
    shifted = [asked_of(n, (n + 1) % 6, asked((n + 1) % 6).llm_answer) for n in range(6)]
    said = across(shifted).strange_context(shifted[0])
    assert said.startswith("kettle.md has the ground truth of q1")
    assert said.endswith("contexts of 6 of 6 questions belong to another")
    assert across([asked(n) for n in range(6)]).strange_context(asked(0)) == ""
    declined = [asked_of(n, (n + 1) % 6, "I don't know.") for n in range(6)]
    assert across(declined).strange_context(declined[0])


@pytest.mark.parametrize(
    "rows",
    [
        [asked_of(n, n + 1 if n < 2 else n, asked(n + 1).llm_answer) for n in range(6)],
        [asked_of(n, 7, asked(7).llm_answer) for n in range(6)],
        [asked_of(n, (n + 1) % 6, f"A {THINGS[n]} goes back within a fortnight, says the shop.") for n in range(6)],
    ],
    ids=["too few", "a page of no question", "the answer is of its own question"],
)
def test_a_context_that_fits_badly_is_a_plain_miss(rows: list[ExperimentResult]) -> None:
    assert across(rows).strange_context(rows[0]) == ""


def test_without_pages_nothing_is_said_of_contexts() -> None:
    rows = [asked(n) for n in range(5)]
    assert AcrossTrials(lambda: rows, None).strange_context(rows[0]) == ""
    assert WordSearch(CorpusView(None, [])).fit("How many days for the return?", ["x"]) is None


def test_the_place_of_a_passage_by_words() -> None:
    quote = "You may return the tent within 33 days of delivery."
    assert SEARCH.place_of("Return the tent within days of delivery?", quote) == 1
    assert SEARCH.place_of("Return the tent?", "It is green.") == 0


@pytest.mark.parametrize(
    ("answer", "above", "is_wrong"),
    [
        ("Tents go back to the shop beside the station.", "Tents go back to the shop beside the station.", True),
        ("Tents go back to the shop beside the station.", "Tents go back by post, or to the shop.", False),
        ("Tents go back by post.", "Tents go back by post, or to the shop.", False),
        ("Within 31 days.", "Send it within 31 days.", True),
        ("Within 33 days.", "Send it within 31 days.", False),
    ],
)
def test_a_page_above_is_the_wrong_one_where_the_answer_is_closer_to_it(
    answer: str, above: str, is_wrong: bool
) -> None:
    right = "Tents go back by post, or to the shop, within 33 days."
    chunks = [make_chunk("lamp.md#1", text=above), make_chunk("tent.md#1", text=right)]
    said = across([]).wrong_above(asked(2, answer, retrieved_chunks=chunks), {"tent.md"}, 2)
    assert said == ("the answer goes with lamp.md at place 1, above tent.md at place 2" if is_wrong else "")


def test_an_answer_is_drawn_from_the_one_text_with_most_of_its_words() -> None:
    texts = ["Parcels leave at noon.", "You may return the tent within 33 days of delivery by post."]
    assert drawn_from("Return the tent within 33 days of delivery by post.", texts) == 2
    assert drawn_from("Return the tent within 33 days of delivery by post.", [texts[1], texts[1]]) == 0
    assert drawn_from("Noon.", texts) == 0


def test_what_no_answer_is_drawn_from_is_unread() -> None:
    def row(n: int, read: int) -> ExperimentResult:
        chunks = [make_chunk(f"{PAGES[i].doc_id}#1", text=PAGES[i].text) for i in ((n + 1) % 8, n)]
        thing = (n + 1) % 8 if read == 1 else n
        return asked(
            n, f"You may return the {THINGS[thing]} within {31 + thing} days of delivery.", retrieved_chunks=chunks
        )

    first = across([row(n, 1) for n in range(5)])
    assert first.unread(2) == "none of 5 answers is drawn from a chunk behind place 1, and 5 truths are there"
    assert first.unread(1) == ""
    assert across([row(n, 1 + n % 2) for n in range(5)]).unread(2) == ""
