"""What gold and row say together: where the evidence got lost, and what is outdated."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.types import Case, Chunk, Evidence, Query
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.gold import GoldIndex, contradiction, doubt_of, gold_facts, may_contradict
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.records.row import ExperimentResult
from tests.unit.diagnosis.made_up import CASES, OLD, PAGES, chunks_of, halved
from tests.unit.rows import make_chunk, make_row

CHUNKS = {chunk.chunk_id: chunk for chunk in chunks_of(PAGES)}
GOLD, BESIDE, STALE = "tent.md#chunk_2", "tent.md#chunk_1", f"{OLD}#chunk_2"
TENT, LAMP = CASES[2], CASES[0]


def row(context: list[str], candidates: list[str] | None = None, **changes: Any) -> ExperimentResult:
    given = [make_chunk(chunk_id, text=CHUNKS[chunk_id].text) for chunk_id in context]
    found = [{"chunk_id": chunk_id, "score": 0.1} for chunk_id in candidates or context]
    return make_row(retrieved_chunks=given, candidates=found, **changes)


def view(*chunks: Chunk) -> CorpusView:
    return CorpusView(chunks or list(CHUNKS.values()), PAGES)


@pytest.mark.parametrize(
    ("context", "candidates", "place", "rank"),
    [
        ([BESIDE, GOLD], None, "in context", 2),
        ([BESIDE], [BESIDE, "desk.md#chunk_0", GOLD], "ranked below k", 3),
        ([BESIDE, "desk.md#chunk_0"], [GOLD, BESIDE, "desk.md#chunk_0"], "lost in reranking", 1),
        ([BESIDE, "desk.md#chunk_0"], [BESIDE, GOLD, "desk.md#chunk_0"], "lost in reranking", 2),
        ([BESIDE, "desk.md#chunk_0"], [BESIDE, "desk.md#chunk_0", GOLD], "ranked below k", 3),
        ([BESIDE], None, "not found", None),
    ],
)
def test_where_a_quote_got_lost(context: list[str], candidates: list[str], place: str, rank: int | None) -> None:
    (fact,) = gold_facts(TENT, row(context, candidates), view()).needed
    assert (fact.place, fact.rank) == (place, rank)
    assert (fact.position, fact.sent) == (2 if place == "in context" else None, (0, 0))


def test_a_quote_that_no_chunk_holds_whole_is_cut_and_one_without_its_page_is_not_in_the_index() -> None:
    others = [chunk for chunk in CHUNKS.values() if chunk.chunk_id != GOLD]
    cut = CorpusView([*others, *halved(CHUNKS[GOLD])], PAGES)
    assert gold_facts(TENT, row([BESIDE]), cut).lost[0].place == "cut"
    assert (
        gold_facts(TENT, row(["desk.md#chunk_0"]), view(CHUNKS["desk.md#chunk_0"])).lost[0].place == "not in the index"
    )


def test_where_nobody_knows_the_index_it_is_only_missing() -> None:
    assert gold_facts(TENT, row(["desk.md#chunk_0"]), None).lost[0].place == "missing"
    assert gold_facts(TENT, row(["desk.md#chunk_0"]), CorpusView(None, PAGES)).lost[0].place == "missing"


def test_a_page_that_came_without_the_quote_says_how_much_of_it_came() -> None:
    text, whole = CHUNKS[BESIDE].text[:-4], len(PAGES[2].text)
    short = make_row(retrieved_chunks=[make_chunk(BESIDE, text=text)], candidates=[])
    for known, sent in ((None, (len(text), 0)), (CorpusView(None, PAGES), (len(text), whole))):
        (lost,) = gold_facts(TENT, short, known).lost
        assert (lost.place, lost.sent) == ("without", sent)


def test_a_whole_chunk_of_a_page_without_the_quote_is_another_part() -> None:
    for known in (None, CorpusView(None, PAGES)):
        (lost,) = gold_facts(TENT, row([BESIDE]), known).lost
        assert lost.place == "another part"


@pytest.mark.parametrize("part", [slice(None, 45), slice(-45, None)])
def test_a_chunk_that_came_shorter_than_the_index_has_it_lost_the_quote(part: slice) -> None:
    """Where the index knows the whole chunk, the page is neither missing nor ranked too low."""
    text = CHUNKS[GOLD].text[part]
    for chunk_id in (GOLD, "tent.md#7"):
        short = make_row(retrieved_chunks=[make_chunk(chunk_id, text=text)], candidates=[])
        (lost,) = gold_facts(TENT, short, view()).lost
        assert (lost.place, lost.sent) == ("without", (45, len(CHUNKS[GOLD].text)))


@pytest.mark.parametrize("known", [view(), CorpusView(None, PAGES)])
def test_a_chunk_that_came_without_its_text_lost_the_quote(known: CorpusView) -> None:
    empty = make_row(retrieved_chunks=[make_chunk(GOLD, text="")], candidates=[{"chunk_id": GOLD, "score": 1.0}])
    (lost,) = gold_facts(TENT, empty, known).lost
    assert (lost.place, lost.sent[0]) == ("without", 0)


@pytest.mark.parametrize("name", ["hit-1", "tent.md"])
def test_a_page_is_known_by_its_text_where_a_service_has_names_of_its_own(name: str) -> None:
    sent = make_chunk(f"{name}#1", text=CHUNKS[GOLD].text[:40])
    (lost,) = gold_facts(TENT, make_row(retrieved_chunks=[sent], candidates=[]), CorpusView(None, PAGES)).lost
    assert (lost.place, lost.sent) == ("without", (40, len(PAGES[2].text)))
    other = make_chunk(f"{name}#1", text="Tents are sold in the shop at the harbour, and there alone.")
    (lost,) = gold_facts(TENT, make_row(retrieved_chunks=[other], candidates=[]), CorpusView(None, PAGES)).lost
    assert lost.place == ("missing" if name == "hit-1" else "another part")


def test_the_end_of_a_page_that_the_index_lacks_is_not_in_the_index() -> None:
    first = [chunk for chunk in CHUNKS.values() if chunk.doc_id == "tent.md" and chunk.chunk_id != GOLD]
    (lost,) = gold_facts(TENT, row([BESIDE]), CorpusView(first, PAGES)).lost
    assert lost.place == "left out"


def test_an_index_of_shortened_chunks_is_no_border_through_the_quote() -> None:
    """Of a quote that a border cuts, both pieces are there."""
    others = [chunk for chunk in CHUNKS.values() if chunk.chunk_id != GOLD]
    first, _ = halved(CHUNKS[GOLD])
    came = make_row(retrieved_chunks=[make_chunk(first.chunk_id, text=first.text)], candidates=[])
    (lost,) = gold_facts(TENT, came, CorpusView([*others, first], PAGES)).lost
    assert (lost.place, lost.sent) == ("without", (len(first.text), len(PAGES[2].text)))


def test_without_quotes_the_relevant_page_stands_for_them() -> None:
    case = replace(TENT, evidence=())
    assert gold_facts(case, row([GOLD]), view()).lost == ()
    assert [fact.place for fact in gold_facts(case, row([BESIDE]), view()).lost] == ["without"]
    assert gold_facts(case, row(["desk.md#chunk_0"]), view()).lost[0].place == "not found"


def test_what_only_the_outdated_page_says_is_stale() -> None:
    told = row([STALE, "lamp.md#chunk_2"], llm_answer="Within 14 days of 31 [Source 1].", query=LAMP.query.text)
    facts = gold_facts(LAMP, told, view())
    assert facts.superseded == (OLD,)
    assert facts.stale == (("14", OLD),)


def test_an_outdated_page_is_no_matter_where_the_question_is_about_it_or_about_something_else() -> None:
    told = row([STALE], llm_answer="Within 14 days.")
    about_it = replace(LAMP, qrels={OLD: 1}, evidence=(Evidence(OLD, CHUNKS[STALE].text),))
    assert gold_facts(about_it, told, view()).superseded == ()
    elsewhere = replace(TENT, evidence=(Evidence("tent.md", "Made by hand since 1980."),))
    assert gold_facts(elsewhere, told, view()).superseded == ()


def test_pages_that_say_themselves_that_they_are_outdated_need_no_metadata() -> None:
    old = make_chunk("lamp-2024.md#0", text="You may return the lamp within 14 days of delivery.")
    new = make_chunk("lamp.md#0", text="You may return the lamp within 31 days of delivery.")
    told = make_row(retrieved_chunks=[old, new], llm_answer="14 days", query=LAMP.query.text)
    assert gold_facts(LAMP, told, None).stale == (("14", "lamp-2024.md"),)


def test_evidence_that_has_nothing_of_the_ground_truth_is_doubtful() -> None:
    assert doubt_of(TENT) == ""
    other = (Evidence("desk.md", "Our shops open on Sunday mornings at 9:00."),)
    assert "none of its figures" in doubt_of(replace(TENT, evidence=other))
    assert doubt_of(replace(TENT, evidence=())) == ""
    # The question's own words are in both, and carry nothing.
    same = (Evidence("tent.md", "How to return the tent: see overleaf."),)
    assert "0% of what the ground truth adds" in doubt_of(replace(TENT, evidence=same))
    # A sum has figures that no page has; its words are enough.
    total = replace(TENT, ground_truth="In sum €40 for three delivery dates", query=replace(TENT.query, text="Cost?"))
    assert doubt_of(replace(total, evidence=(Evidence("t.md", "each further delivery date costs €20"),))) == ""


def test_a_case_without_any_gold_says_so() -> None:
    bare = replace(TENT, ground_truth="", evidence=(), qrels={})
    assert gold_facts(bare, row([BESIDE]), view()).nothing == "the case has neither ground truth nor evidence"
    for known in (replace(bare, ground_truth="33 days"), replace(bare, evidence=TENT.evidence)):
        assert gold_facts(known, row([BESIDE]), view()).nothing == ""
    assert gold_facts(replace(bare, answerable=False), row([BESIDE]), view()).nothing == ""


def test_a_chunk_that_came_as_long_as_the_index_has_it_was_not_shortened() -> None:
    loud = make_row(retrieved_chunks=[make_chunk("x.md#1", text=CHUNKS[GOLD].text.upper())], candidates=[])
    assert gold_facts(TENT, loud, view()).lost[0].place == "not found"


def test_what_was_given_is_counted_and_known_to_carry_the_gold() -> None:
    given = gold_facts(TENT, row([BESIDE, GOLD]), view())
    assert (given.given, given.carried) == (2, True)
    given = gold_facts(TENT, row([BESIDE]), view())
    assert (given.given, given.carried) == (1, False)


def test_a_quarter_of_the_words_keeps_evidence_from_doubt() -> None:
    case = replace(TENT, ground_truth="Green heavy wooden boxes", evidence=(Evidence("a.md", "A green thing."),))
    assert doubt_of(case) == ""
    case = replace(case, ground_truth="Green heavy wooden painted boxes")
    assert doubt_of(case) == "the evidence carries 20% of what the ground truth adds to the question"


# Does the ground truth contradict its own evidence?


def case(truth: str, *quotes: str, asked: str = "How long may I return the tent?") -> Case:
    evidence = tuple(Evidence("tent.md", quote) for quote in quotes)
    return Case(Query("q", asked), ground_truth=truth, qrels={"tent.md": 1}, evidence=evidence)


DAYS = "You may return the tent within 33 days of delivery."


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (case("The tent may be returned within 44 days.", DAYS), "You may return the tent within 33 days."),
        (case("44 days", DAYS), "33 days"),
        (case("The tent costs €44.", "A tent: 33 euros", asked="What is the price?"), "The tent costs 33 EUR."),
        (
            case("The tent may be returned until Monday.", "Returned tents: until Friday"),
            "The tent: returned until Friday.",
        ),
        (
            case("Within 44 days, and within 7 days if used.", f"{DAYS} If used, 7 days."),
            "Within 33 days, 7 days if used.",
        ),
    ],
)
def test_an_answer_that_matches_the_evidence_and_not_the_gold(found: Case, answer: str) -> None:
    assert contradiction(found, answer, []).startswith("the evidence says ")


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (case("The tent may be returned within 33 days.", DAYS), "You may return the tent within 33 days."),
        (case("The tent may be returned within 44 days.", DAYS), "You may return the tent within 44 days."),
        (case("The tent may be returned within 44 days.", DAYS), "You may return the tent within 55 days."),
        (case("The tent may be returned within 44 days.", DAYS), "I don't know."),
        (
            case("Three tents cost 99 euros.", "A tent costs 33 euros.", asked="What do 3 tents cost?"),
            "Tents cost 33 euros.",
        ),
        (case("Both cost 40 euros.", "A tent costs 33 euros.", "A lamp costs 7 euros."), "The tent costs 33 euros."),
        (case("The tent may be returned within 44 days.", DAYS), "33 of our shops are closed."),
    ],
)
def test_what_is_right_wrong_otherwise_or_computed_is_no_contradiction(found: Case, answer: str) -> None:
    assert contradiction(found, answer, []) == ""


def test_pages_stand_for_the_evidence_where_there_is_no_quote() -> None:
    found = case("The tent may be returned within 44 days of delivery.")
    page = f"# The tent\n\nIt is made by hand in 12 hours. {DAYS}"
    assert contradiction(found, "Within 33 days of delivery the tent may be returned.", [page])
    assert contradiction(found, "Within 12 days of delivery the tent may be returned.", [page]) == ""


def test_most_answers_need_not_be_looked_at() -> None:
    assert may_contradict("How long?", "44 days", "33 days")
    assert not may_contradict("How long?", "33 days", "33 days, or so")
    assert not may_contradict("How long?", "44 days", "Soon.")


@pytest.mark.parametrize(
    ("truth", "quote", "answer", "found"),
    [
        ("It takes 20 hours.", "It takes 20 minutes.", "It takes 20 minutes.", "20 minute"),
        ("It costs £40.", "It costs 40 euros.", "40 EUR.", "40 euro"),
        ("A case weighs 20 g.", "A case weighs 20 kg.", "20 kilograms", "20 kilogram"),
        ("It is 9 per mille.", "It is 9 %.", "9 percent", "9 %"),
        ("It takes 20 min.", "It takes 20 minutes.", "It takes 20 minutes.", ""),
        ("A 30-day window.", "Within 30 days.", "30 days", ""),
        ("It takes 20 hours.", "It takes 20 minutes.", "It takes 20 hours.", ""),
        ("It takes 20 hours.", "It takes 20 minutes, or 20 hours by sea.", "It takes 20 minutes.", ""),
        ("It takes 1 hour 20.", "It takes 20 minutes.", "20 minutes", ""),
    ],
)
def test_the_same_figure_in_another_unit(truth: str, quote: str, answer: str, found: str) -> None:
    case = Case(Query("q", "How much?"), ground_truth=truth, evidence=(Evidence("a.md", quote),))
    said = contradiction(case, answer, [])
    assert said.startswith(f"the evidence says {found}, as the answer does") if found else not said
    assert may_contradict("How much?", truth, answer) or not found


@pytest.mark.parametrize(
    "truth", ["It is €87: €39 for delivery, €19 for setup and €29 for taking it away.", "€38.25 with 15 % off €45."]
)
def test_what_a_ground_truth_adds_up_stands_in_no_passage(truth: str) -> None:
    quotes = ("Delivery is €39.", "Setup is €19.", "Taking it away is €29.", "All three are €45.")
    for answer in ("For €29 it is taken away.", "It is €45, delivery €39 and setup €19."):
        assert not contradiction(case(truth, *quotes, asked="What does it cost?"), answer, [])


@pytest.mark.parametrize(
    ("truth", "quote", "asked"),
    [
        ("It is 45 euros.", "A tent is 33 euros.", "How much is it with delivery for 12?"),
        ("It is 21 euros.", "A tent is 33 euros.", "How much is it, 12 less?"),
        ("It is 396 euros.", "A tent is 33 euros.", "How much are 12 of them?"),
    ],
)
def test_what_is_computed_with_a_figure_of_the_question_is_no_contradiction(truth: str, quote: str, asked: str) -> None:
    assert contradiction(case(truth, quote, asked=asked), "33 euros", []) == ""
    other = case(truth.replace("It is ", "It is 1"), quote, asked=asked)
    assert contradiction(other, "It is 33 euros", []).startswith("the evidence says 33, as the answer does, and the")


@pytest.mark.parametrize("figures", [(40, 19), (40, 19, 7), (40, 19, 7, 5)])
def test_a_ground_truth_may_add_up_two_to_four_figures(figures: tuple[int, ...]) -> None:
    said = ", ".join(f"{figure} euros" for figure in figures)
    found = case(f"In all {sum(figures)} euros: {said}.", f"{said}, less than 33 euros", asked="How much?")
    answer = f"In all 33 euros: {said}"
    assert contradiction(found, answer, []) == ""
    other = case(f"In all {sum(figures) + 1} euros: {said}.", f"{said}, less than 33 euros", asked="How much?")
    assert contradiction(other, answer, []).startswith("the evidence says 33")


def test_a_figure_of_the_question_and_one_that_is_cited_are_not_in_anothers_place() -> None:
    found = case("The tent may be returned within 44 days.", DAYS, asked="May I return the tent within 33 days?")
    assert contradiction(found, "The tent may be returned within 33 days.", []) == ""
    found = case("The tent may be returned within 44 days.", DAYS)
    assert contradiction(found, "The tent may be returned within days [Source 33].", []) == ""
    assert contradiction(replace(found, answerable=False), "The tent may be returned within 33 days.", []) == ""


def test_what_a_contradiction_says() -> None:
    found = case("The tent may be returned within 44 days.", DAYS)
    said = contradiction(found, "The tent may be returned within 33 days.", [])
    assert said == "the evidence says 33, as the answer does, and the ground truth 44"


@pytest.mark.parametrize(
    ("answer", "found"),
    [("It costs $40.", True), ("It costs £40.", False), ("It costs 40.", False), ("40 £ [1]", False)],
)
def test_a_sign_before_a_figure_is_its_unit(answer: str, found: bool) -> None:
    told = case("It costs £40.", "It costs $40.", asked="How much?")
    said = contradiction(told, answer, [])
    assert said == ("the evidence says 40 dollar, as the answer does, and the ground truth 40 pound" if found else "")
    assert may_contradict("How much?", "It costs £40.", answer) is found
    asked = case("It costs £40.", "It costs $40.", asked="Is it £40?")
    assert contradiction(asked, answer, []) == ""


def test_half_of_the_ground_truths_words_make_a_sentence_of_a_page_evidence() -> None:
    found = case("Green wooden boxes weigh 44 grams.")
    answer = "Green wooden boxes weigh 33 grams."
    assert contradiction(found, answer, ["It rains. Heavy wooden boxes weigh 33 things."])
    assert contradiction(found, answer, ["It rains. Heavy boxes are of 33 things."]) == ""
    assert contradiction(found, answer, ["Nothing.", "It rains\nGreen boxes weigh 33\nIt rains"])


def test_a_question_may_say_the_figure_of_the_ground_truth() -> None:
    assert not may_contradict("Within 44 days?", "44 days", "33 days")
    assert may_contradict("How long?", "until Monday", "until Friday")


def test_nothing_is_left_of_100_percent() -> None:
    free = case("It costs €0: 100 % off €45.", "Delivery costs €39.", asked="What does it cost?")
    assert not contradiction(free, "It costs €39: 100 % off €45.", [])


def test_an_answer_that_repeats_a_figure_is_compared_once_with_the_gold() -> None:
    told = case("Zebras sleep 44 days under umbrellas.", "You may return the tent within 33 days, not 34 or 35.")
    begin = time.thread_time()
    assert contradiction(told, "within 33 days of it. " * 9_000, []) == ""
    assert time.thread_time() - begin < 5  # a comparison for each place takes minutes


# Gold that is that of another question.

SHIFTED = [
    replace(case, ground_truth=other.ground_truth, evidence=other.evidence)
    for case, other in zip(CASES, [*CASES[1:], CASES[0]], strict=True)
]


def other(case: Case, answer: str, cases: list[Case]) -> str:
    return GoldIndex(cases).other(case, answer, rightness(case, answer, False))


@pytest.mark.parametrize("n", range(len(CASES)))
def test_rows_that_have_shifted(n: int) -> None:
    said = other(SHIFTED[n], CASES[n].ground_truth, SHIFTED)
    assert said == f"the answer is the ground truth of {CASES[n - 1].query.query_id}, which fits the question better"


def test_an_answer_to_another_question_is_the_answers_fault() -> None:
    assert other(CASES[0], CASES[1].ground_truth, CASES) == ""


def test_a_right_answer_and_one_that_nobody_can_hold_against_anything_say_nothing() -> None:
    assert other(CASES[0], CASES[0].ground_truth, SHIFTED) == ""
    assert other(replace(CASES[0], ground_truth="", evidence=()), CASES[1].ground_truth, CASES) == ""


def test_a_ground_truth_of_a_word_or_two_is_nobodys() -> None:
    short = replace(CASES[1], ground_truth="Yes, lamp.")
    assert other(SHIFTED[0], "Yes, lamp.", [short]) == ""


LONG = "The tent may be returned within 33 days of delivery"


@pytest.mark.parametrize(
    ("more", "is_told"), [("", True), (", if green, new", True), (", if green, new, dry, whole and washed", False)]
)
def test_the_answer_says_hardly_more_than_the_other_gold(more: str, is_told: bool) -> None:
    assert bool(other(SHIFTED[2], f"{LONG}{more}.", SHIFTED)) is is_told


def test_the_question_has_to_fit_the_other_gold_better() -> None:
    both = replace(SHIFTED[2], ground_truth=f"{SHIFTED[2].ground_truth} The tent is another matter, as is its return.")
    assert other(both, f"{LONG}.", [both, *SHIFTED]) == ""
