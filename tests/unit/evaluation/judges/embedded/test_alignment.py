"""What a claim says that its source does not, of long and of short answers, and the reasons that are printed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_harness.core.text.language_detection import answer_not_judged
from rag_harness.evaluation.judges.embedded.alignment import LONGEST_SENTENCE, JsonLeaf, passage_of, split_text
from rag_harness.evaluation.judges.embedded.features import hours_agreement, hours_of
from rag_harness.evaluation.judges.embedded.quantities import known_numbers, numbers, quantities, sentence_of, times
from rag_harness.evaluation.judges.embedded.short_answers import decide, is_short
from rag_harness.evaluation.judges.embedded.unsupported_details import absent
from rag_harness.evaluation.judges.embedded.values import is_stated, restated
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import AnswerRelevancy, Faithfulness
from rag_harness.evaluation.measures.opinion import NO_SUMMARY, REPEATS, TOO_SHORT, Material
from tests.unit.evaluation.judges.embedded.test_judge import Parts, judge_of

# What a claim says that its source does not, in plain words; and true claims of which nothing is missed.

# What a claim says that its source does not, in plain words; and true claims of which nothing is missed.

SHOP = (
    "Refunds take 30 days after the parcel is back. Gift cards stay valid for 5 years. Parcels to Norway cost €12.50 "
    "and leave every Thursday. Items on sale cannot be returned. The kettle was recalled on 12 May 2024 by Corrigan "
    "Freight.",
    "| Item | First day | Deposit |\n|---|---|---|\n| Ridge 2 tent | €14 | €100 |\n| Ridge 3 tent | €18 | €120 |\n"
    "| Power station | €16 | €200 |",
    "Dogs on a lead are welcome in the shop, but not in the café. The owner can remove a member at any time.",
)


def missed(claim: str, *passages: str, question: str = "") -> str:
    return "; ".join(filter(None, absent(split_text(claim), [split_text(text) for text in passages or SHOP], question)))


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("Refunds take 45 days after the parcel is back.", "45 days: the passage says 30 days"),
        ("Refunds take thirty weeks after the parcel is back.", "thirty weeks: the passage says 30 days"),
        ("Gift cards stay valid for 30 years.", "30 years: the passage says 5 years"),
        ("Parcels to Norway cost €14.", "€14: the passage says €12.50"),
        ("Parcels to Norway leave every Monday.", "Monday: the passage says Thursday"),
        ("The kettle was recalled on 14 May 2024 by Corrigan Freight.", "14 May 2024: the passage says 12 May 2024"),
        ("The Ridge 3 tent costs €18 on the first day, with a deposit of €200.", "€200: the passage says €120"),
        ("The shop has 4,700 tents.", "4,700 tents: no passage says it"),
        ("Parcels to Portugal cost €12.50.", "Portugal: no passage names it"),
        ("The kettle was recalled by Halloran Freight.", "Halloran: no passage names it"),
        ("Halloran Freight recalled the kettle on 12 May 2024.", "Halloran: no passage names it"),
        ("Items on sale can be returned.", "the passage denies it"),
        ("Dogs on a lead are welcome in the shop and in the café.", "the passage denies it"),
        ("A dog on a lead is welcome anywhere in the café.", "left out is “not”: Dogs on a lead"),
        ("The owner cannot remove a member at any time.", "it denies what the passage says"),
        ("The owner of a shop does not remove a member.", "“not”: the passage says it without"),
    ],
)
def test_what_is_not_there_is_said_in_plain_words(claim: str, why: str) -> None:
    assert missed(claim).startswith(why)


@pytest.mark.parametrize(
    "claim",
    [
        "Refunds take thirty days.",
        "A refund is paid within 720 hours after the parcel is back.",
        "You get your money back within a month.",
        "Gift cards stay valid for sixty months.",
        "Norwegian parcels cost 12.50 euros and leave on Thursdays.",
        "On May 12th, 2024 the kettle was recalled.",
        "The kettle was recalled on 2024-05-12.",
        "The Ridge 3 tent is €18 for the first day, with a €120 deposit.",
        "Items on sale are not returned.",
        "It is not possible to return items on sale.",
        "Dogs may not enter the café.",
        "There are two tents: Ridge 2 and Ridge 3.",
        "Additionally, gift cards stay valid for 5 years.",
        "**Deposit:** €120 for the Ridge 3 tent (Passage 2).",
        "1. Send the parcel back.",
    ],
)
def test_the_same_in_another_form_is_not_missed(claim: str) -> None:
    # "a month" is no other figure than 30 days that anybody could hold against them: no passage measures in months.
    assert missed(claim) in ("", "a month: no passage says it")


def test_what_the_question_says_may_be_repeated() -> None:
    assert missed("Parcels to Portugal are fine.") == "Portugal: no passage names it"
    assert missed("Parcels to Portugal are fine.", question="What of parcels to Portugal?") == ""
    assert missed("After 90 days there is a refund.", question="Is there a refund after 90 days?") == ""


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("They moved to California in March.", "They moved to San Diego, CA, in March."),
        ("The United States signed it.", "The US signed it."),
        ("The WHO signed it.", "The World Health Organization signed it."),
        ("The Governor signed it.", "Gov. Pence signed it."),
        ("It is 20 degrees Fahrenheit.", "It is 20 degrees F."),
        ("They moved to St. Ives in the WiFi age.", "They moved to St Ives in the Wi-Fi age."),
    ],
)
def test_a_name_is_known_by_its_short_form_and_the_other_way_round(claim: str, passage: str) -> None:
    assert missed(claim, passage) == ""


def test_a_condition_and_a_softened_negation_deny_nothing() -> None:
    source = "If the device has no battery, it goes by post. The offer is not only for members but for guests."
    assert missed("A device with a battery goes by post or by courier.", source) == ""
    assert missed("The offer is for members and for guests.", source) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("twenty-five people and 1.5 million users", [("", 25, "peopl"), ("", 1_500_000, "user")]),
        ("a week, 14 calendar days, 3 hours", [("time", 604_800, ""), ("time", 1_209_600, ""), ("time", 10_800, "")]),
        ("12 per cent or 12 %", [("percent", 12, ""), ("percent", 12, "")]),
        ("$3 million", [("$", 3_000_000, "")]),
        ("zone 1, [Source 2], at 5 pm, one thing, 7 days a week", []),
    ],
)
def test_quantities(text: str, found: list[tuple[str, float, str]]) -> None:
    assert [(each.unit, each.value, each.noun) for each in quantities(text)] == found


def test_nothing_is_missed_in_nothing() -> None:
    assert absent(split_text(""), [], "") == []
    assert missed("Refunds take 5 days.", "") == "5 days: no passage says it"


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_text(text).sentences]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Dr. Smith paid at 11:30 a.m. on Monday. It rained.",
            ["Dr. Smith paid at 11:30 a.m. on Monday.", "It rained."],
        ),
        ("1. Dump it.\n2. Stir", ["1. Dump it.", "2. Stir"]),
        ("Costs €1.50. Free above", ["Costs €1.50.", "Free above"]),
        ("日本語です。これも。", ["日本語です。", "これも。"]),
        ("😀", []),
        ("", []),
        ("<b>bold</b> & `code()`", ["<b>bold</b> & `code()`"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert _sentences(text) == sentences


def test_a_sentence_without_end_is_taken_in_parts_that_cover_its_words() -> None:
    text = " ".join(["word"] * 250)
    parts = _sentences(text)
    assert len(parts) == 3
    assert sum(len(part.split()) for part in parts) == 250
    assert all(len(split_text(part).spans) <= LONGEST_SENTENCE for part in parts)


def test_words_are_folded_and_keep_their_places() -> None:
    found = split_text("The shop’s 1,000.50 euros")
    assert found.words == ["the", "shop's", "1000.50", "euros"]
    assert found.stems == ["the", "shop", "1000.50", "euro"]
    assert found.content.tolist() == [False, True, True, True]


def test_json_becomes_sentences_and_fields() -> None:
    said = {
        "attributes": {"OutdoorSeating": True, "WiFi": "no", "Music": None},
        "hours": {"Monday": "11:0-17:30"},
        "n": [1, 2],
    }
    found = passage_of(json.dumps(said))
    assert found.text.splitlines() == [
        "attributes outdoor seating: yes",
        "attributes wi fi: no",
        "attributes music: unknown",
        "hours monday: 11:00 am to 5:30 pm",
        "n: 1",
        "n: 2",
    ]
    assert found.fields == (
        JsonLeaf((("attributes",), ("outdoor", "seating")), True),
        JsonLeaf((("attributes",), ("wi", "fi")), False),
        JsonLeaf((("attributes",), ("music",)), None),
    )


@pytest.mark.parametrize("text", ["{not json", "[1, 2", '"a string"', "{" * 5000, "plain"])
def test_what_is_no_json_object_is_text(text: str) -> None:
    assert passage_of(text).text == text


def test_numbers_in_words_and_figures_are_the_same() -> None:
    assert numbers("1. Three of 1,000.50 in [Source 2], at 5 pm, seven days a week") == ["1000.5", "3"]
    assert {"3", "1000.5", "1"} <= known_numbers("one, three and 1000.50")


def test_times_without_their_half_of_the_day_are_both() -> None:
    assert times("9 am, 5:30 p.m., 17:00 and 7:15") == [{540}, {1050}, {1020}, {435, 1155}]


HOURS = hours_of(
    ["hours monday: 9:00 am to 5:00 pm", "hours tuesday: 9:00 am to 5:00 pm", "hours saturday: 10:00 am to 2:00 pm"]
)


@pytest.mark.parametrize(
    ("sentence", "right_and_wrong"),
    [
        ("Open Monday to Tuesday from 9 am to 5 pm.", (2, 0)),
        ("It opens from 9:00 to 17:00 on Mondays and from 10 am to 3 pm on Saturdays.", (1, 1)),
        ("Open on Monday.", (0, 0)),
        ("Open from 9 am to 5 pm.", (0, 0)),
    ],
)
def test_hours_of_days(sentence: str, right_and_wrong: tuple[int, int]) -> None:
    assert hours_agreement(sentence, HOURS) == right_and_wrong


# Short answers are judged as the sentence that question and answer make, or not at all.

SHORT_ANSWERS_SHOP = (
    "Refunds take five days. Gift cards cannot be returned. Returns are accepted within 30 days of delivery.",
    "Standard shipping costs $5.99. Express shipping costs $14.99. Orders over $50 ship free.",
    "| Plan | Price | Users |\n|---|---|---|\n| Team | $12 | 10 |\n| Business | $30 | 50 |",
    "The contract was signed on 31 March 2025 and runs until 31 December 2027. The tour starts at the old mill and "
    "ends at the lighthouse. Run `acme sync --force` to overwrite. The pool was opened in 1931 and rebuilt in 1987.",
    "The bakery uses spelt, rye and oat flour. Wheat is used on Sundays only.",
)
SUPPORTS: dict[float | None, str] = {0.95: "right", 0.05: "wrong", None: "undecided"}


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        ("Can gift cards be returned?", "No.", "right"),
        ("Can gift cards be returned?", "Yes.", "wrong"),
        ("Are returns accepted?", "Yes", "right"),
        ("Are returns accepted or rejected?", "Rejected", "wrong"),
        ("Are returns accepted after 45 days of delivery?", "Yes.", "wrong"),
        ("Are returns accepted after 20 days of delivery?", "Yes.", "right"),
        ("Do orders over $50 ship free?", "No, they don't.", "wrong"),
        ("What does express shipping cost?", "$14.99", "right"),
        ("What does express shipping cost?", "$5.99", "wrong"),
        ("What does express shipping cost?", "$17.99", "wrong"),
        ("How long does a refund take?", "Five days", "right"),
        ("Which plan has 50 users?", "Business", "right"),
        ("Which plan has 50 users?", "Team", "wrong"),
        ("When was the contract signed?", "31 March 2025", "right"),
        ("When was the contract signed?", "31 December 2027", "wrong"),
        ("When was the pool rebuilt?", "1931", "wrong"),
        ("When was the pool rebuilt?", "1987", "right"),
        ("Where does the tour begin?", "At the lighthouse", "wrong"),
        ("Which option overwrites?", "--force", "right"),
        ("Which option overwrites?", "--forse", "wrong"),
        ("Which flours does the bakery use?", "Spelt, rye and oat", "right"),
        ("Which flours does the bakery use?", "Spelt, rye and barley", "wrong"),
        ("Who founded the shop?", "A baker's widow", "undecided"),
        ("Is the shop open at night?", "Yes", "undecided"),
    ],
)
def test_what_the_rules_say(question: str, answer: str, verdict: str) -> None:
    assert SUPPORTS[decide(question, answer, SHORT_ANSWERS_SHOP).value] == verdict


def test_a_wrong_one_has_a_reason_that_the_passages_bear_out() -> None:
    found = decide("What does express shipping cost?", "$5.99", SHORT_ANSWERS_SHOP)
    assert (found.reason, found.passage) == ("$5.99: the passage says $14.99", 1)
    assert (
        decide("What does express shipping cost?", "$17.99", SHORT_ANSWERS_SHOP).reason == "$17.99: no passage says it"
    )
    found = decide("Can gift cards be returned?", "Yes", SHORT_ANSWERS_SHOP)
    assert found.reason == "the passage says: Gift cards cannot be returned."


@pytest.mark.parametrize(
    ("answer", "short"),
    [
        ("Yes.", True),
        ("24 months", True),
        ("At the edge of the street", True),
        ("It costs $5.99.", True),
        ("Refunds take 5 days.", False),
        ("Our drones deliver Bitcoin from Zurich at midnight.", False),
        ("Yes. The refund takes five days.", False),
        ("", False),
        ("😀", False),
    ],
)
def test_what_is_short(answer: str, short: bool) -> None:
    assert is_short(answer, len(split_text(answer).sentences)) == short


def score(
    folder: Path, question: str, answer: str, measure: Literal["f", "r"] = "f", contexts: Any = SHORT_ANSWERS_SHOP
) -> Score:
    asked = Faithfulness() if measure == "f" else AnswerRelevancy()
    material = Material(question, answer, contexts)
    return asyncio.run(judged(material, [asked], judge_of(Parts(folder))))[asked.name]


def test_score_and_hallucinated_are_one_number_and_no_model_is_asked(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    material = Material("Can gift cards be returned?", "No.", SHORT_ANSWERS_SHOP)
    right = asyncio.run(judged(material, [Faithfulness()], judge_of(parts)))["faithfulness"]
    wrong = asyncio.run(judged(replace(material, answer="Yes."), [Faithfulness()], judge_of(parts)))["faithfulness"]
    assert right.value is not None
    assert wrong.value is not None
    assert wrong.value < 0.4
    assert right.value > 0.7
    assert (right.detail["hallucinated"], wrong.detail["hallucinated"]) == (False, True)
    assert parts.inner.asked == []


def test_what_is_not_judged_says_why(tmp_path: Path) -> None:
    assert score(tmp_path, "Who founded the shop?", "A widow").reason.endswith(TOO_SHORT)
    assert score(tmp_path, "How long is it?", "How long is it?").reason.endswith(REPEATS)
    assert score(tmp_path, "How long is it?", "how long is it", "r").value == 0
    assert score(tmp_path, "Summarise the page.", "Refunds take five days. Gift cards stay.").reason == NO_SUMMARY
    assert score(tmp_path, "How long does a refund take?", "5 Tage").reason == "not judged: language de"
    assert score(tmp_path, "How long does a refund take?", "Cinq jours").reason == "not judged: language fr"


@pytest.mark.parametrize("answer", ["😀", "`x = 1`", "| a |\n|---|\n| 1 |", "no", "?", "\ud800", "Yes, yes, yes"])
@pytest.mark.parametrize("question", ["Warranty", "?", "How long?", "¿"])
def test_odd_questions_and_answers_end_in_a_score_or_a_reason(tmp_path: Path, question: str, answer: str) -> None:
    found = score(tmp_path, question, answer)
    assert (found.value is None) == bool(found.reason)


def test_of_passages_in_three_languages_those_in_the_answers_language_count(tmp_path: Path) -> None:
    mixed = (
        SHORT_ANSWERS_SHOP[0],
        "Die Rückerstattung dauert fünf Tage und wird auf die Karte gebucht.",
        "Le remboursement prend cinq jours et arrive sur la carte.",
    )
    asked = "How long does a refund take?"
    assert score(tmp_path, asked, "Five days", contexts=mixed).detail["hallucinated"] is False
    # A passage in another language may state it.
    assert score(tmp_path, asked, "Nine days", contexts=mixed).reason.startswith("not judged: language")


# No printed reason is untrue: what it says no passage says, no passage says in any form.

CASES = [
    json.loads(line)
    for file in sorted((Path(__file__).parents[5] / "benchmarks" / "short_answers").glob("dev*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
_VALUE = 3
"""Most words of a value; more are a quoted sentence."""
UNSAID, INSTEAD = ": no passage says it", ": the passage says "


def reasons(case: Mapping[str, Any]) -> list[str]:
    question, answer, contexts = case["question"], case["answer"], case["contexts"]
    if answer_not_judged(question, answer, contexts):
        return []
    text = split_text(answer)
    if is_short(answer, len(text.sentences)):
        return [decide(question, answer, contexts).reason]
    return absent(text, [split_text(context) for context in contexts], question)


def test_a_value_that_is_called_unsaid_is_in_no_passage() -> None:
    said = [(why.removesuffix(UNSAID), case) for case in CASES for why in reasons(case) if why.endswith(UNSAID)]
    assert len(said) > 20
    assert [(what, case["id"]) for what, case in said if is_stated(what, case["contexts"])] == []


def test_of_right_answers_no_value_is_called_unsaid() -> None:
    right = [case for case in CASES if case["label"] == "faithful"]
    assert [(why, case["id"]) for case in right for why in reasons(case) if why.endswith(UNSAID)] == []


def test_what_a_passage_says_instead_is_another_value() -> None:
    pairs = [why.split(INSTEAD) for case in CASES for why in reasons(case) if INSTEAD in why]
    assert len(pairs) > 20
    assert [
        (ours, theirs)
        for ours, theirs in pairs
        if len(theirs.split()) <= _VALUE and quantities(theirs) and is_stated(ours, [theirs])
    ] == []


@pytest.mark.parametrize(
    ("said", "passage"),
    [
        ("three months", "The fee is 18 pounds per quarter."),
        ("a week", "Prescriptions are valid for twenty-eight days; special ones for seven."),
        ("20 cents", "A copy costs €0.20."),
        ("fourteen days", "Drink it within a fortnight."),
        ("12,000 km", "Rotate them every ten to twelve thousand kilometres."),
        ("5:50 pm", "The last cabin comes down at 17:50."),
    ],
)
def test_a_value_in_another_form_is_stated(said: str, passage: str) -> None:
    assert is_stated(said, [passage])


@pytest.mark.parametrize(
    ("said", "passage"), [("eight days", "It takes a week."), ("$5", "It costs 5 francs."), ("6:50 pm", "Until 17:50.")]
)
def test_another_value_is_not_stated(said: str, passage: str) -> None:
    assert not is_stated(said, [passage])


def test_models_read_values_as_the_passage_writes_them() -> None:
    source = [sentence_of("Prescriptions are valid for twenty-eight days.")]
    assert restated("They are valid for four weeks.", source) == "They are valid for twenty-eight days."
    assert restated("They are valid for 18 days.", source) == "They are valid for 18 days."
