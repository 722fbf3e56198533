"""What the detector of contradictions finds and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.core.text.contradictions import ANSWER, Contradiction, against, contradictions

DATA = Path(__file__).parent / "data"
FEE = "A lost card is replaced for €5."
DEARER = "A lost card is replaced for €8."


def only(*texts: str) -> Contradiction:
    [found] = contradictions(texts)
    return found


@pytest.mark.parametrize(
    ("first", "second", "kind", "differs"),
    [
        (FEE, DEARER, "number", ("€5", "€8")),
        ("Interest is 2 % a year.", "Interest is 3.5 % a year.", "number", ("2 %", "3.5 %")),
        ("The lamp weighs 2 kg.", "The lamp weighs 900 g.", "number", ("2 kg", "900 g")),
        ("The course lasts two weeks.", "The course lasts 10 days.", "number", ("two weeks", "10 days")),
        ("We compare four listed shops.", "We compare six listed shops.", "number", ("four", "six")),
        ("Applications arrive by 3 May.", "Applications arrive by 9 May.", "date", ("3 May", "9 May")),
        ("The fair opens on 3 May 2025.", "The fair opens on 3 May 2026.", "date", ("3 May 2025", "3 May 2026")),
        ("The pool opens at 7:00.", "The pool opens at 8 am.", "date", ("7:00", "8 am")),
        ("Rent is due by the 3rd of the month.", "Rent is due by the 5th of the month.", "date", ("3rd", "5th")),
        ("Dogs are allowed on deck.", "Dogs are not allowed on deck.", "negation", ("affirmed", "denied")),
        ("You must register the bicycle.", "You must not register the bicycle.", "negation", ("affirmed", "denied")),
        ("You need not register the bicycle.", "You must register the bicycle.", "negation", ("denied", "affirmed")),
        ("Cards no longer expire in spring.", "Cards expire in spring.", "negation", ("denied", "affirmed")),
        ("Never bring food into the room.", "Bring food into the room.", "negation", ("denied", "affirmed")),
        ("The parser needs Java 11 or later.", "The parser needs Java 17 or later.", "version", ("11", "17")),
        (f"Edition of 2019. {FEE}", f"Edition of 2024. {DEARER}", "version", ("€5", "€8")),
    ],
)
def test_each_kind_is_found_and_named(first: str, second: str, kind: str, differs: tuple[str, str]) -> None:
    found = only(first, second)
    assert (found.kind, found.differs) == (kind, differs)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The course lasts two weeks.", "The course lasts 14 days."),
        ("The lamp weighs 1.5 kg.", "The lamp weighs 1,500 g."),
        ("The pool opens at 2 pm.", "The pool opens at 14:00."),
        ("Repairs take 3 to 10 days.", "Repairs take 5 days."),
        ("Repairs take between 3 and 10 days.", "Repairs take 5 days."),
        ("The exam takes at least 60 minutes.", "The exam takes 75 minutes."),
        ("We answer letters within 3 days.", "We usually answer letters within 1 day."),
        ("The walk takes about 60 minutes.", "The walk takes 65 minutes."),
        ("If you book online, the tour costs €12.", "If you book by letter, the tour costs €15."),
        ("With an appointment, you wait 10 minutes.", "Without an appointment, you wait 90 minutes."),
        ("A trip of less than 5 years ago counts 2 points.", "A trip of more than 9 years ago counts 4 points."),
        ("The blender has 900 W.", "The toaster has 1,200 W."),
        ("The lamp S weighs 900 g.", "The lamp L weighs 2 kg."),
        ("Rooms in zone 1 cost €40.", "Rooms in zone 2 cost €60."),
        ("A ticket costs €4 per hour.", "A ticket costs €9 per day."),
        ("Until 2019 a swim cost €4.", "A swim costs €6."),
        ("Formerly a swim cost €4.", "A swim costs €6."),
        ("Does a swim cost €4?", "A swim costs €6."),
        ("Suppose a swim costs €4.", "A swim costs €6."),
        ("Dogs are not allowed on deck.", "Dogs aren't allowed on deck."),
        ("You need not register the bicycle.", "You can register the bicycle."),
        ("Dogs are not always allowed on deck.", "Dogs are allowed on deck."),
        ("Cards cannot be renewed after 7 days.", "Cards can be renewed for €3."),
        ("Not only dogs are allowed on deck.", "Dogs are allowed on deck."),
        ("Outlet shoes cannot be returned by post.", "Shoes can be returned by post."),
        ("Delivery of shoes is free for orders of €50.", "Delivery of shoes costs €4."),
        ("```\nA swim costs €4.\n```", "A swim costs €6."),
    ],
)
def test_what_can_both_be_true_is_left_alone(first: str, second: str) -> None:
    assert contradictions([first, second]) == []


def test_a_quote_says_where_it_stands() -> None:
    texts = [f"Read this first.\n\n{FEE} Bring a photo.", f"# Cards\n\n- Bring **two** photos.\n- {DEARER}"]
    found = only(*texts)
    for quote, text, said in zip((found.first, found.second), texts, (FEE, DEARER), strict=True):
        assert text[quote.start : quote.end] == quote.sentence == said.rstrip(".")
    assert (found.first.text, found.second.text) == (0, 1)


def test_cells_are_read_with_their_row_and_column() -> None:
    table = "## Postage\n\n| Service | Zone 1 | Zone 2 |\n|---|---|---|\n| Letter | €2 | €3 |\n| Parcel | €5 | {} |\n"
    found = only(table.format("€7"), table.format("€8"))
    assert found.differs == ("€7", "€8")
    assert found.first.sentence.startswith("Parcel | €5 | €7")
    assert only(table.format("€7"), "Postage of a parcel to zone 2 costs €9.").differs == ("€7", "€9")


def test_a_bare_cell_has_the_unit_of_its_column() -> None:
    table = "## Loans\n\n| What | Weeks |\n|---|---|\n| Books | {} |\n"
    assert only(table.format(4), table.format(3)).differs == ("4 weeks", "3 weeks")


def test_another_row_of_a_table_is_another_case() -> None:
    table = "## Loans\n\n| What | Period |\n|---|---|\n| {} | {} weeks |\n"
    assert contradictions([table.format("Books", 4), table.format("Picture books", 2)]) == []
    assert contradictions([table.format("Picture books", 2), "A loan of books has a period of 4 weeks."]) == []


def test_what_the_other_text_says_as_well_is_no_contradiction() -> None:
    assert contradictions([f"{FEE} {DEARER}", DEARER]) == []
    assert contradictions([f"Earlier cards were other cards. {FEE} {DEARER}", f"By the way: {DEARER}"]) == []


def test_markup_and_citations_change_nothing() -> None:
    written = "A lost **card** is [replaced](../cards.md#lost) for `€5` [Source 1: a.md]."
    assert only(written, DEARER).differs == ("€5", "€8")


def test_weights_can_be_given() -> None:
    texts = ["A member's scarf from the shop is €20.", "A member's scarf is €30."]
    assert contradictions(texts, idf={"member": 1.0, "scarf": 1.0, "shop": 9.0}) == []
    assert only(*texts).differs == ("€20", "€30")


def test_an_answer_is_held_against_its_sources() -> None:
    [found] = against("It is simple: a lost card is replaced for €8 [Source 1].", ["Cards expire.", FEE])
    assert (found.first.text, found.second.text, found.differs) == (ANSWER, 1, ("€8", "€5"))
    [found] = against("Dogs are allowed on deck.", ["Dogs are not allowed on deck."])
    assert (found.kind, found.differs) == ("negation", ("affirmed", "denied"))


def test_sources_that_differ_are_not_the_fault_of_the_answer() -> None:
    sources = [FEE, DEARER]
    assert against("Good news. A lost card is replaced for €8.", sources) == []
    assert against("Your lost card is replaced for €8.", sources) == []
    assert len(against("Your lost card is replaced for €9.", sources)) == 2
    opposed = ["Dogs are allowed on deck.", "Dogs are not allowed on deck."]
    assert against("Your dogs are allowed on deck.", opposed) == []


def test_sources_are_not_held_against_each_other_with_an_answer() -> None:
    assert against("Cards are green.", [FEE, DEARER]) == []


@pytest.mark.parametrize("texts", [[], [""], ["", ""], [FEE], ["\n", "| a |\n|---|\n"], ["1", "2"]])
def test_too_little_says_nothing(texts: list[str]) -> None:
    assert contradictions(texts) == []
    assert against("", texts) == []


def test_the_pairs_written_before_the_detector() -> None:
    """20 conflicts and 40 that are none; nothing was tuned on them. These are the figures of their first run."""
    rows = [json.loads(line) for line in (DATA / "conflict_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {row["id"] for row in rows if contradictions([row["first"], row["second"]])}
    conflicts = {row["id"] for row in rows if row["conflicts"]}
    assert (len(conflicts), len(rows)) == (20, 60)
    assert len(found & conflicts) >= 16
    assert len(found - conflicts) <= 1
