"""Each kind of turn, made of a small table or of some sentences: its words, its gold, and when there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from rag_harness.authoring.questions.conversing.of_choices import which_of_all, which_one
from rag_harness.authoring.questions.conversing.of_prose import before_that, more_of_page, page_again, wrong_statement
from rag_harness.authoring.questions.conversing.of_tables import (
    choice,
    comparison_of_both,
    comparison_with_other,
    other_attribute,
    other_thing,
    thing_again,
    wrong_cell,
)
from rag_harness.authoring.questions.conversing.spoken_of import is_introduced, is_it
from rag_harness.authoring.questions.conversing.subject_free import LEADS, NAMES_IT, is_subject_free, turn_fault
from rag_harness.authoring.questions.conversing.talk import NextTurn, Sources, Talk
from rag_harness.authoring.questions.conversing.turn_draft import FOLLOW_UP, TurnDraft
from rag_harness.authoring.questions.conversing.unanswered import unsaid_attribute, unsaid_of_another
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.wording import question_of
from rag_harness.types import Evidence
from tests.unit.authoring.questions.shop import documents

HIRE = """# Hire

| Item | Deposit | Weight |
|---|---|---|
| Ridge 2 tent | €100 | 2.1 kg |
| Ridge 3 tent | €120 | 2.9 kg |
| Drift backpack | €60 | 1.7 kg |
"""
LAMPS = """# Lamps

| Lamp | Weight | Price | Range |
|---|---|---|---|
| Pine Lantern | 1.2 kg | €39 | 12 m |
| Brass Lantern | 2.4 kg | €89 | 30 m |
"""
POST = """# Island post

## Parcels

An island parcel is held for 9 days. An island parcel needs a signature of the recipient.

If the ferry is cancelled, we call the recipient first.

An island parcel cannot be sent back by ship.
"""
OTHERS = "# Others\n\n| Oar | Weight | Deposit | Price |\n|---|---|---|---|\n| Long Oar | 3 kg | €5 | €9 |\n"


FILLED = {f"filler{number}": f"# Filler {number}\n\nThe quay {number} is swept each day.\n" for number in range(12)}
"""Pages that state nothing, so that words are rare."""


def talk_of(**pages: str) -> Talk:
    pages |= FILLED
    return Talk(Sources(DocumentCollection(documents(**pages)), Random(0)), Random(1))


def fact_of(talk: Talk, page: str, **parts: str) -> Fact:
    return next(fact for fact in talk.facts(f"{page}.md") if parts.items() <= fact.parts.items())


def ask(talk: Talk, page: str, **parts: str) -> Talk:
    """Let the conversation ask for a fact."""
    fact = fact_of(talk, page, **parts)
    asked = question_of(fact, talk.chance)
    evidence = (Evidence(fact.doc_id, fact.quote),)
    alone = Draft("direct", asked, asked, fact.said, fact.answer, evidence, (fact.kind,))
    talk.take(NextTurn(TurnDraft(FOLLOW_UP, asked, alone), talk.sources.focus_of(fact), (fact,)))
    return talk


def made(maker: Callable[[Talk], Iterator[NextTurn]], talk: Talk) -> dict[str, TurnDraft]:
    return {step.turn.text: step.turn for step in maker(talk)}


def test_another_attribute_of_the_same_thing_without_its_name() -> None:
    talk = ask(talk_of(lamps=LAMPS), "lamps", thing="Pine Lantern", attribute="range")
    for text, turn in made(other_attribute, talk).items():
        assert "Lantern" not in text
        assert turn.alone.evidence[0].quote == "| Pine Lantern | 1.2 kg | €39 | 12 m |"
        assert turn.alone.answer in ("1.2 kg", "€39")
    assert {turn.alone.answer for turn in made(other_attribute, talk).values()} == {"1.2 kg", "€39"}


def test_the_last_question_of_the_other_thing() -> None:
    talk = ask(talk_of(lamps=LAMPS), "lamps", thing="Pine Lantern", attribute="range")
    turns = made(other_thing, talk)
    assert {turn.alone.ground_truth for turn in turns.values()} == {"Brass Lantern – Range: 30 m"}
    assert any("the other one" in text for text in turns)
    talk.focuses[-1] = talk.focus.unclear()
    assert made(other_thing, talk) == {}
    assert made(other_attribute, talk) == {}


def test_a_comparison_says_yes_or_no_by_the_figures() -> None:
    talk = ask(talk_of(lamps=LAMPS), "lamps", thing="Pine Lantern", attribute="weight")
    (turn, *_) = made(comparison_with_other, talk).values()
    assert turn.alone.ground_truth == "No: Pine Lantern – Weight: 1.2 kg; Brass Lantern – Weight: 2.4 kg."
    assert len(turn.alone.evidence) == 2
    ask(talk, "lamps", thing="Brass Lantern", attribute="weight")
    (both, *_) = made(comparison_of_both, talk).values()
    assert both.alone.ground_truth.startswith("Brass Lantern is heavier: ")
    assert both.text in ("Which of the two is heavier?", "So which one is heavier?")
    assert not is_it("Brass Lantern", Talk(talk.sources, Random(0), talk.turns, [talk.focus.unclear()]))


def test_a_wrong_value_is_put_right() -> None:
    talk = ask(talk_of(lamps=LAMPS), "lamps", thing="Brass Lantern", attribute="range")
    for text, turn in made(wrong_cell, talk).items():
        wrong = turn.alone.ground_truth.split(". ")[0].removeprefix("No, not ")
        assert wrong in text
        assert wrong not in LAMPS
        assert turn.alone.answer in turn.alone.ground_truth
    assert {turn.alone.answer for turn in made(wrong_cell, talk).values()} == {"2.4 kg", "€89"}


def test_what_fits_two_things_is_asked_back_and_chosen() -> None:
    talk = ask(talk_of(hire=HIRE, lamps=LAMPS), "hire", thing="the drift backpack", attribute="deposit")
    (step,) = which_one(talk)
    assert step.turn.text in ("And for a tent?", "What about a tent?", "And a tent?")
    assert step.turn.alone.ground_truth == (
        "It has to be asked which one is meant: Ridge 2 tent or Ridge 3 tent. Ridge 2 tent – Deposit: €100. "
        "Ridge 3 tent – Deposit: €120."
    )
    talk.take(step)
    chosen = made(choice, talk)
    assert {turn.alone.answer for turn in chosen.values()} == {"€100", "€120"}
    assert all("tent" in text and not text.endswith("?") for text in chosen)


def test_what_fits_one_thing_or_a_row_that_was_not_read_is_not_asked_back() -> None:
    one = HIRE.replace("Ridge 2 tent", "Ridge 2 boat")
    assert list(which_one(ask(talk_of(hire=one), "hire", thing="the drift backpack", attribute="deposit"))) == []
    unread = f"{HIRE}| Ridge 4 tent | – | – |\n"
    talk = ask(talk_of(hire=unread), "hire", thing="the drift backpack", attribute="deposit")
    assert list(which_one(talk)) == [], "the third tent may be meant"
    alike = ask(talk_of(hire=HIRE.replace("€120", "€100")), "hire", thing="the drift backpack", attribute="deposit")
    assert list(which_one(alike)) == [], "the answer is the same"


def test_things_that_share_a_name_are_asked_about_as_another_matter() -> None:
    talk = ask(talk_of(hire=HIRE.replace(" tent", ""), lamps=LAMPS), "lamps", thing="Pine Lantern", attribute="range")
    turns = made(which_of_all, talk)
    assert turns
    assert all("the Ridge" in text for text in turns)


def test_coming_back_to_the_first_thing() -> None:
    talk = ask(talk_of(lamps=LAMPS, post=POST), "lamps", thing="Pine Lantern", attribute="range")
    ask(talk, "post", subject="an island parcel")
    for text, turn in made(thing_again, talk).items():
        assert "Pine Lantern" in text or "first" in text
        assert turn.alone.pages == ("lamps.md",)


def test_an_attribute_that_like_things_have_and_this_one_has_not() -> None:
    more = "# {0}s\n\n| {0} | Weight | Price | Voltage |\n|---|---|---|---|\n| Oak {0} | 3 kg | €19 | 12 V |\n"
    talk = ask(
        talk_of(lamps=LAMPS, bells=more.format("Bell"), horns=more.format("Horn")),
        "lamps", thing="Pine Lantern", attribute="range",
    )  # fmt: skip
    turns = made(unsaid_attribute, talk)
    assert turns
    assert all("voltage" in text and turn.alone.kind == "negative" for text, turn in turns.items())
    metres = more.replace("12 V", "12 m")
    other = talk_of(lamps=LAMPS, bells=metres.format("Bell"), horns=metres.format("Horn"))
    assert made(unsaid_attribute, ask(other, "lamps", thing="Pine Lantern", attribute="range")) == {}, "metres are told"


def test_what_is_said_of_one_thing_and_not_of_its_sibling() -> None:
    said = (
        "# Sinks\n\n- **CallSink**: one\n- **PrintSink**: two\n\n## Rules\n\n"
        "The CallSink requires a signed permit when the storm quay is closed.\n"
    )
    talk = talk_of(sinks=said, lamps=LAMPS)
    ask(talk, "sinks", subject="the CallSink")
    (turn, *_) = made(unsaid_of_another, talk).values()
    assert (turn.alone.kind, turn.alone.plain) == (
        "negative",
        "What does the PrintSink require when the storm quay is closed?",
    )
    own = talk_of(sinks=said, lamps=LAMPS, print="# PrintSink\n\nIt prints.\n")
    assert made(unsaid_of_another, ask(own, "sinks", subject="the CallSink")) == {}, "it has a page of its own"


def test_prose_goes_on_with_it_where_only_one_thing_can_be_meant() -> None:
    talk = ask(talk_of(post=POST, lamps=LAMPS), "post", subject="an island parcel", verb="need")
    texts = set(made(more_of_page, talk))
    assert any("is it held" in text for text in texts)
    other = ask(talk_of(post=POST, lamps=LAMPS), "post", when="if")
    assert not any("is it held" in text for text in made(more_of_page, other)), "it could be the ferry"
    assert not any(" it " in text for text in made(page_again, other))


def test_it_is_what_was_asked_about_and_nothing_else() -> None:
    more = f"{POST}\nThe ferry takes 3 hours.\n"
    talk = ask(talk_of(post=more, lamps=LAMPS), "post", subject="an island parcel", verb="need")
    assert not any("does it take" in text for text in made(more_of_page, talk))
    assert any("does it take" in text for text in made(more_of_page, ask(talk, "post", when="if")))


def test_what_was_not_spoken_of_is_neither_asked_nor_taken_for_true() -> None:
    more = f"{POST}\n## Loss\n\nThe search takes 3 days.\n"
    talk = ask(talk_of(post=more, lamps=LAMPS), "post", subject="an island parcel", verb="need")
    assert not any("search" in text for text in [*made(more_of_page, talk), *made(wrong_statement, talk)])
    near = ask(talk_of(post=more.replace("\n## Loss\n", ""), lamps=LAMPS), "post", when="if")
    assert any("search" in text for text in made(wrong_statement, near))


def test_in_a_long_page_a_conversation_stays_in_its_chapter() -> None:
    chapters = [f"## Chapter {n}\n\nA crate{n} cannot be painted in colour{n}.\n" for n in range(14)]
    for number, others in ((14, {"crate13"}), (4, {"crate0", "crate1", "crate2", "crate3"})):
        page = "\n".join(["# Island post\n", *chapters[:number], "A barrel cannot be sunk in water.\n"])
        talk = ask(talk_of(post=page, lamps=LAMPS), "post", subject="a barrel")
        assert {turn.alone.answer.split()[1] for turn in made(more_of_page, talk).values()} == others


def test_a_cell_of_a_second_table_is_asked_for_with_its_heading() -> None:
    parking = "\n## Parking\n\n| Place | Charge |\n|---|---|\n| North Quay | €4 |\n| South Quay | €6 |\n"
    talk = ask(talk_of(lamps=f"{LAMPS}{parking}", post=POST), "lamps", thing="North Quay", attribute="charge")
    turns = made(other_thing, talk)
    assert turns
    assert all("arking" in turn.alone.plain for turn in turns.values())
    first = ask(talk, "lamps", thing="Pine Lantern", attribute="range")
    assert not any("arking" in turn.alone.plain for turn in made(other_attribute, first).values())


def test_a_wrong_statement_of_prose_is_a_changed_figure_or_what_is_denied() -> None:
    talk = ask(talk_of(post=POST, lamps=LAMPS), "post", subject="an island parcel", verb="need")
    turns = made(wrong_statement, talk)
    assert any("it is held for 18 days" in text for text in turns)
    denied = [turn for turn in turns.values() if turn.alone.made_of == ("permission",)]
    assert denied
    assert all(turn.alone.ground_truth.startswith("No. An island parcel cannot") for turn in denied)
    assert all("can be sent back by ship" in turn.text for turn in denied)


def test_what_was_so_before_is_asked_where_a_page_was_replaced() -> None:
    years = {"rates2024": ("2024", "€3"), "rates": ("2026", "€5")}
    table = "| Parcel | Price |\n|---|---|\n| Small parcel | {1} |\n"
    page = f"# Rates {{0}}\n\nEffective 1 March {{0}}.\n\n{table}"
    pages = {name: page.format(*told) for name, told in years.items()}
    talk = talk_of(**{name.replace("rates2024", "rates-2024"): text for name, text in pages.items()}, lamps=LAMPS)
    assert talk.collection.superseded == {"rates-2024.md": "rates.md"}
    ask(talk, "rates", attribute="price")
    (turn,) = made(before_that, talk).values()
    assert turn.alone.pages == ("rates.md", "rates-2024.md")
    assert "€5" in turn.alone.ground_truth
    assert "€3" in turn.alone.ground_truth


def test_the_words_of_a_turn_are_held_to_leave_out_what_they_should() -> None:
    talk = ask(talk_of(lamps=LAMPS, others=OTHERS), "lamps", thing="Pine Lantern", attribute="range")
    alone = next(iter(made(other_attribute, talk).values())).alone
    assert turn_fault(TurnDraft(FOLLOW_UP, "And the lantern?", alone, "Pine Lantern"), talk.collection) == NAMES_IT
    leads = TurnDraft(FOLLOW_UP, "And the range?", alone, "Pine Lantern")
    assert turn_fault(leads, talk.collection) == LEADS
    assert is_subject_free("And how about that?", ("lamps.md",), talk.collection)
    assert not is_subject_free("And the range?", ("lamps.md",), talk.collection)


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("what happens if the ferry is cancelled", True),
        ("how many days does the search take", False),
        ("what happens if the island parcel is lost", True),
        ("what is the way out", True),
    ],
)
def test_the_thing_was_spoken_of_or_not(asked: str, known: bool) -> None:
    apart = POST.replace("If the ferry", "## Ferries\n\nIf the ferry")
    talk = ask(talk_of(post=apart, lamps=LAMPS), "post", subject="an island parcel", verb="need")
    ask(talk, "lamps", thing="Pine Lantern", attribute="range")
    talk.turns.append(TurnDraft(FOLLOW_UP, "Does the ferry run?", talk.turns[0].alone))
    assert is_introduced(asked, fact_of(talk, "post", when="if"), talk) is known
