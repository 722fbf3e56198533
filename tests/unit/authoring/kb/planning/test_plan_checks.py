"""Each way in which a plan can contradict itself is named, with its page and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.authoring.kb.plan import Plan, PlannedFact, PlannedTable, PlanPage, VersionPair
from rag_harness.authoring.kb.plan_checks import SHOWN_FAULTS, check_plan, pairing_faults, plan_faults
from rag_harness.core.errors import DataError
from tests.unit.authoring.kb.planning.plans import NEW, OLD, OTHER, PAIR, fact, page, plan


def changed(whole: PlanPage, **said: Any) -> PlanPage:
    return PlanPage.model_validate({**whole.model_dump(), **said})


def wrong(**said: Any) -> PlannedFact:
    return PlannedFact.model_validate({**fact(3).model_dump(), **said})


RAGGED = PlannedTable(title="Prices", columns=("Zone", "Price"), rows=(("1", "€3"), ("2",)))

CASES: dict[str, tuple[Plan, str]] = {
    "no page": (Plan(pages=()), "there is no page in it"),
    "count": (plan(num_pages=4), "num_pages is 4, but 3 pages are planned"),
    "rot": (plan(rot=1.5), "rot is 1.5; it is a share of pages"),
    "pairs": (plan(version_pairs=(PAIR,) * 5), "5 version pairs need 10 pages; 3 are planned"),
    "kind": (plan(OLD, NEW, changed(OTHER, kind="poem")), "gifts: kind 'poem' is unknown"),
    "no table": (plan(OLD, NEW, changed(OTHER, kind="tabular", tables=())), "gifts: its kind is tabular"),
    "no steps": (plan(OLD, NEW, changed(OTHER, kind="logical", steps=())), "gifts: its kind is logical"),
    "neither": (plan(OLD, NEW, changed(OTHER, tables=(), steps=())), "gifts: its kind is mixed"),
    "diagram": (plan(OLD, NEW, changed(OTHER, steps=(), mermaid=True)), "gifts: mermaid is true"),
    "empty step": (plan(OLD, NEW, changed(OTHER, steps=(" ",))), "gifts: step 1: it is empty"),
    "step of lines": (plan(OLD, NEW, changed(OTHER, steps=("Go.\nStop.",))), "step 1: 'Go.\\nStop.' is no single line"),
    "numbered step": (plan(OLD, NEW, changed(OTHER, steps=("1. Go.",))), "gifts: step 1: it begins with '1. '"),
    "heading for a fact": (
        plan(OLD, NEW, changed(OTHER, facts=(wrong(statement="# Parcel 3 costs €4.90."),))),
        "fact f3: the statement begins with '# '",
    ),
    "fact kind": (plan(OLD, NEW, changed(OTHER, facts=(wrong(kind="mood"),))), "fact f3: kind 'mood' is unknown"),
    "value": (plan(OLD, NEW, changed(OTHER, facts=(wrong(value="€9"),))), "fact f3: the value '€9' is not in"),
    "subject": (plan(OLD, NEW, changed(OTHER, facts=(wrong(subject="Box"),))), "fact f3: the subject 'Box' is not"),
    "lines": (
        plan(OLD, NEW, changed(OTHER, facts=(wrong(statement="Parcel 3 costs\n€4.90."),))),
        "fact f3: the statement is no single line",
    ),
    "fact twice": (plan(OLD, NEW, changed(OTHER, facts=(fact(1),))), "gifts: fact f1 stands on rates-2023 already"),
    "fact twice on a page": (plan(OLD, NEW, changed(OTHER, facts=(fact(3), fact(3)))), "gifts: fact f3 stands on"),
    "id": (plan(OLD, NEW, changed(OTHER, id="rates")), "2 pages have the id 'rates'"),
    "filename": (plan(OLD, NEW, changed(OTHER, filename="RATES.md")), "2 pages have the filename 'rates.md'"),
    "title": (plan(OLD, NEW, changed(OTHER, title="Rates")), "2 pages have the title 'Rates'"),
    "leaves": (plan(OLD, NEW, changed(OTHER, filename="../a.md")), "'../a.md' leads out of the folder"),
    "no markdown": (plan(OLD, NEW, changed(OTHER, filename="gifts.txt")), "'gifts.txt' is no Markdown file"),
    "no file": (plan(OLD, NEW, changed(OTHER, filename="a\0.md")), "'a\\x00.md' has '\\x00', which files and links"),
    "no link": (plan(OLD, NEW, changed(OTHER, filename="c#.md")), "'c#.md' has '#', which files and links"),
    "roundabout": (plan(OLD, NEW, changed(OTHER, filename="./a.md")), "'./a.md' is another way to write 'a.md'"),
    "hidden": (plan(OLD, NEW, changed(OTHER, filename=".x/a.md")), "'.x/a.md' is hidden"),
    "long": (plan(OLD, NEW, changed(OTHER, filename="ü" * 120 + ".md")), "is too long: 240 bytes are the most"),
    "below a page": (plan(OLD, NEW, changed(OTHER, filename="rates.md/a.md")), "stands below 'rates.md', which is a"),
    "title of lines": (plan(OLD, NEW, changed(OTHER, title="A\nB")), "the title 'A\\nB' is no single line"),
    "no title": (plan(OLD, NEW, changed(OTHER, title="")), "the title '' is no single line"),
    "link": (plan(OLD, NEW, changed(OTHER, links_to=("nowhere",))), "gifts: links_to names 'nowhere'"),
    "own link": (plan(OLD, NEW, changed(OTHER, links_to=("gifts",))), "gifts: links_to names the page itself"),
    "row": (plan(OLD, NEW, changed(OTHER, tables=(RAGGED,))), "table 'Prices': row 2 has 1 cells, its header 2"),
    "equal": (plan(changed(OLD, facts=NEW.facts), NEW, OTHER), "conflict 'f1' says 'Parcel 1 costs €3.90"),
    "unplanned": (
        plan(changed(OLD, facts=(fact(1, "€3.90"), fact(2, "€7"))), NEW, OTHER),
        "rates: fact f2 differs from that of rates-2023",
    ),
    "not of both": (plan(changed(OLD, facts=(fact(2),)), NEW, OTHER), "conflict 'f1' with rates-2023 is no fact of"),
    "tables": (plan(changed(OLD, tables=()), NEW, OTHER), "rates: its tables differ from those of rates-2023"),
    "steps": (plan(changed(OLD, steps=("Go.",)), NEW, OTHER), "rates: its steps differ from those of rates-2023"),
    "no conflict": (
        plan(version_pairs=(VersionPair(outdated="rates-2023", current="rates"),)),
        "its pair with rates-2023 lists no conflict",
    ),
    "same page": (
        plan(version_pairs=(PAIR.model_copy(update={"outdated": "rates"}),)),
        "rates: stands in a version pair with itself",
    ),
    "same page, once by its file": (
        plan(version_pairs=(PAIR.model_copy(update={"outdated": "rates.md"}),)),
        "rates: stands in a version pair with itself",
    ),
    "unknown pair": (
        plan(version_pairs=(PAIR.model_copy(update={"outdated": "gone"}),)),
        "a version pair names 'gone'",
    ),
    "two pairs": (
        plan(version_pairs=(PAIR, PAIR.model_copy(update={"outdated": "gifts"}))),
        "rates: stands in 2 version pairs",
    ),
    "no pair": (plan(version_pairs=()), "rates-2023: is outdated, but stands in no version pair"),
    "status": (plan(changed(OLD, status="current"), NEW, OTHER), "whose status is 'current'"),
    "own status": (plan(OLD, changed(NEW, status="outdated"), OTHER), "its own status is 'outdated'"),
    "supersedes": (plan(OLD, changed(NEW, supersedes="gifts"), OTHER), "supersedes 'gifts', its version pair says"),
    "older": (plan(changed(OLD, version="10"), changed(NEW, version="9"), OTHER), "its version is '9', that of"),
    "dates": (
        plan(changed(OLD, effective_date="2025-01-02"), changed(NEW, effective_date="2024-05-01"), OTHER),
        "its effective_date is '2024-05-01'",
    ),
    "circle": (
        plan(changed(OLD, supersedes="rates"), NEW, OTHER),
        "rates-2023: supersedes itself: rates-2023 supersedes rates supersedes rates-2023",
    ),
    "itself": (plan(OLD, NEW, changed(OTHER, supersedes="gifts")), "gifts: supersedes itself: gifts supersedes gifts"),
}


def test_a_sound_plan_has_no_fault() -> None:
    assert list(plan_faults(plan())) == []


def test_a_pair_counts_once_where_ids_are_filenames() -> None:
    old, new = changed(OLD, id="rates-2023.md"), changed(NEW, id="rates.md", supersedes="rates-2023.md")
    pair = PAIR.model_copy(update={"outdated": "rates-2023.md", "current": "rates.md"})
    assert list(pairing_faults(plan(old, new, OTHER, version_pairs=(pair,)))) == []


def test_a_page_is_counted_by_its_id_and_by_its_file() -> None:
    again = PAIR.model_copy(update={"current": "gifts", "outdated": "rates-2023.md"})
    faults = list(pairing_faults(plan(version_pairs=(PAIR, again))))
    assert faults == [(OLD, "stands in 2 version pairs. Keep one.")]


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_named_with_its_page(name: str) -> None:
    broken, told = CASES[name]
    with pytest.raises(DataError) as raised:
        check_plan(broken)
    assert told in str(raised.value)


def test_all_faults_are_told_up_to_a_number_and_the_rest_is_counted() -> None:
    pages = [page(f"page{number}", "nowhere") for number in range(SHOWN_FAULTS + 5)]
    with pytest.raises(DataError) as raised:
        check_plan(Plan(pages=tuple(pages)))
    lines = str(raised.value).splitlines()
    assert len(lines) == SHOWN_FAULTS + 2
    assert lines[-1] == "… and 5 more."


def test_a_long_chain_of_versions_is_walked_once() -> None:
    pages = [page(f"page{n}", "page0", supersedes=f"page{n + 1}") for n in range(1, 2000)]
    faults = plan_faults(Plan(pages=(page("page0", "page1"), *pages, page("page2000", "page0"))))
    assert not any("supersedes itself" in fault.text for fault in faults)
