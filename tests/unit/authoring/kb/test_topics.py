"""How a page speaks of its own topics: without the thing that it is all about, and with names as they are written."""

from __future__ import annotations

import pytest

from rag_harness.authoring.kb.page_grammar import heading_of, tellable, thing_of, topic_with_article
from rag_harness.authoring.kb.plan import PlannedFact, PlanPage

FACTS = (
    ("sales area of the outlet in Nantes", "The sales area of the outlet in Nantes is 2,350 square metres."),
    ("Parking at the outlet in Nantes", "Parking at the outlet in Nantes costs €3.00 per hour."),
    ("delivery from the outlet in Nantes by bike", "A delivery from the outlet in Nantes by bike costs €10.00."),
    ("open day of the outlet in Nantes", "The next open day of the outlet in Nantes is on 28 March 2027."),
    ("Fern Club", "Fern Club members of the outlet in Nantes enter at 8:00; ask for the Fern Club card."),
)
PAGE = PlanPage(
    filename="a.md",
    title="Visiting the outlet in Nantes",
    facts=tuple(
        PlannedFact(id=f"f{number}", kind="amount", subject=subject, value="x", statement=statement)
        for number, (subject, statement) in enumerate(FACTS)
    ),
)


def test_the_thing_of_a_page_is_what_its_title_and_most_facts_share() -> None:
    assert thing_of(PAGE) == "outlet in Nantes"
    assert thing_of(PlanPage(filename="b.md", title="Wholly other words", facts=PAGE.facts)) == ""


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "the sales area"), (1, "parking"), (2, "a delivery by bike"), (3, "the next open day"), (4, "Fern Club")],
)
def test_a_topic_within_a_sentence(number: int, said: str) -> None:
    assert topic_with_article((PAGE.facts or ())[number], PAGE) == said


def test_topics_as_a_heading() -> None:
    facts = PAGE.facts or ()
    assert heading_of(facts[:2], PAGE) == "Sales area and parking"
    assert heading_of([*facts, *facts], PAGE) == heading_of(facts, PAGE)
    assert (
        heading_of([facts[0], PlannedFact(id="g", kind="date", subject="x" * 60, value="x", statement="x")], PAGE) == ""
    )


def test_a_topic_that_denies_is_named_in_no_other_sentence() -> None:
    said = "Goods that are not in stock take up to 2 weeks."
    denied = PlannedFact(id="n", kind="limit", subject="Goods that are not in stock", value="2 weeks", statement=said)
    facts = (*(PAGE.facts or ()), denied)
    assert tellable(PAGE.model_copy(update={"facts": facts})) == list(PAGE.facts or ())
