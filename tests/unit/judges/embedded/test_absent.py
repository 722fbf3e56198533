"""What a claim says that its source does not, in plain words; and true claims of which nothing is missed."""

from __future__ import annotations

import pytest

from rag_harness.evaluation.judges.embedded.alignment import split_text
from rag_harness.evaluation.judges.embedded.quantities import quantities
from rag_harness.evaluation.judges.embedded.unsupported_details import absent

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
