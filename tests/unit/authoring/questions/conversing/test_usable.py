"""Which facts a conversation asks for, and which attributes like things have."""

from __future__ import annotations

import pytest

from rag_harness.authoring.questions.conversing.like_things import LikeThings
from rag_harness.authoring.questions.conversing.thing_tables import tables_of
from rag_harness.authoring.questions.conversing.usable import usable
from rag_harness.authoring.questions.facts import Fact, read_facts
from rag_harness.types import Document


def told(text: str) -> list[Fact]:
    return list(read_facts(Document("a.md", f"# Post\n\n{text}\n", "Post")))


def used(text: str) -> list[str]:
    return [fact.said for fact in usable(told(text))]


@pytest.mark.parametrize(
    "said",
    [
        "If the parcel seal is broken, we refund half of the price.",
        "If you've lost the certificate, contact the harbour office.",
        "The search takes 3 working days.",
        "A harbour pass doesn't open the inner gate.",
    ],
)
def test_what_tells_something_is_asked_for(said: str) -> None:
    assert used(said) == [said]


@pytest.mark.parametrize(
    "said",
    [
        "If your old tent, mower or lamp still works, ask for an estimate first.",
        "If you keep even one item, we don't.",
        "If one payment is enough for you, look at invoices and receipts.",
        "You are not obliged to buy anything.",
        "You may not control which way the parcel will arrive.",
        "Pass `id='<yours>'` to use an id from your own shop.",
    ],
)
def test_halves_pointers_and_what_has_to_be_filled_in_are_not(said: str) -> None:
    assert told(said), "a fact is read, and left out"
    assert used(said) == []


def test_what_is_told_in_two_ways_is_not_asked_for() -> None:
    twice = "When the form is passed, the clerk signs it.\n\nIf the form is provided, the clerk stamps the last page."
    assert used(twice) == []
    assert len(used(twice.replace("provided", "lost"))) == 2


def test_a_thing_of_two_tables_is_asked_about_two_matters() -> None:
    first = "| Store | Code |\n|---|---|\n| Harbour (S01) | A1 |\n| Quay | A2 |\n"
    both = f"{first}\n## Parking\n\n{first.replace('Code', 'Charge').replace('A', '€')}"
    assert used(both.replace("| Quay | €2 |\n", "")) == ["Quay – Code: A2"]


def test_of_a_table_all_rows_count_and_either_side_may_be_the_things() -> None:
    rows = "| Lamp | Weight | Price |\n|---|---|---|\n| Pine | 1 kg | €3 |\n| Oak | 2 kg | €4 |\n| 5 | 3 kg | €5 |\n"
    turned = "| | Pine One | Pine Two |\n|---|---|---|\n| Weight | 1 kg | 2 kg |\n| Price | €3 | €4 |\n"
    for text, size, things in ((rows, 3, {"Pine", "Oak"}), (turned, 2, {"Pine One", "Pine Two"})):
        document = Document("a.md", f"# A\n\n{text}", "A")
        (table,) = tables_of(document, list(read_facts(document)))
        assert (table.size, set(table.facts)) == (size, things)
        assert all(set(told) == {"weight", "price"} for told in table.facts.values())


def test_what_all_things_have_makes_none_of_them_alike() -> None:
    page = "# {0}\n\n| {0} | Price | Code | {1} | {2} |\n|---|---|---|---|---|\n| Big {0} | €3 | A1 | 3 kg | 4 m |\n"
    names = ["Lamp", "Bell", "Horn", "Rope", "Sail", "Oar", "Mast", "Keel", "Flag", "Hook", "Buoy", "Chain"]
    made = []
    for number, name in enumerate(names):
        columns = ("Voltage", "Power") if number < 3 else (f"Width{number}", f"Depth{number}")
        document = Document(f"{name}.md", page.format(name, *columns), name)
        made += [(document.doc_id, table) for table in tables_of(document, list(read_facts(document)))]
    found = LikeThings(made)
    assert found.of_like_things(frozenset(("price", "code"))) == set()
    assert found.of_like_things(frozenset(("price", "voltage"))) >= {"code", "power"}
    assert found.units("voltage") == {"kg"}
    assert found.units("code") == set()
