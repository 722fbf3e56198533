"""Each fault of a page that was written from a plan: named as it comes, and by ``kb validate`` where it lies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.authoring.kb.page_grammar import compose, heading_of, tellable, thing_of, topic_with_article
from rag_harness.authoring.kb.page_writing import LONGEST_PAGE, body_of, faults, labelled
from rag_harness.authoring.kb.plan import PlannedFact, PlanPage
from rag_harness.authoring.kb.validation import validate
from rag_harness.frontends.cli import FOUND
from tests.unit.authoring.kb.small_plan import (
    LABEL,
    NEW,
    OLD,
    STANDARD,
    STEPS,
    brief_of,
    plan_data,
    plan_of,
    write_plan,
)

Change = Callable[[str], str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("made")
    assert main(["kb", "generate", str(write_plan(at)), "-o", str(at / "kb")]) == 0
    assert validate(at / "kb").findings == []
    return at / "kb"


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a generated knowledge base without a fault."""
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    return Path(copytree(made, tmp_path / "kb"))


def page(name: str = "returns") -> str:
    return compose(brief_of(name), 0).replace("**", "")


def found_in(text: str, name: str = "returns") -> list[str]:
    return faults(brief_of(name), plan_of(), text)


def replaced(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text().replace("**", "")
    file.write_text(replaced(old, new)(text))


def test_a_sound_page_has_no_fault() -> None:
    assert [found_in(page(name), name) for name in ("shipping", "returns-2024", "returns")] == [[], [], []]


def test_bold_and_line_breaks_do_not_count() -> None:
    text = page().replace(LABEL, "The return label costs **€3.50**\nfor each parcel.")
    assert found_in(text) == []


PLANTED: dict[str, tuple[str, Change, str, str]] = {
    "a fact is missing": (
        "returns", replaced(LABEL, ""),
        "planned facts", f"fact r2: the page does not say {LABEL!r}. Write it word for word.",
    ),
    "a fact is altered by one character": (
        "returns", replaced("€3.50 for", "€3.60 for"),
        "planned facts", "It says 'The return label costs €3.60 for each parcel.'. Write it word for word.",
    ),
    "the new version says what the old one did": (
        "returns", replaced(NEW, f"{NEW} {OLD}"),
        "planned facts", f"fact r1: the page says {OLD!r}, which belongs to its other version. Remove it.",
    ),
    "the wrong page is linked": (
        "shipping", replaced("(returns.md)", "(returns-2024.md)"),
        "planned links", "shipping.md has no link to returns.md, as links_to says.",
    ),
    "a cell is altered": (
        "shipping", replaced("| €7.50 |", "| €7.60 |"),
        "planned tables", "row 2 is Zone 2 | €7.60 | €14.90, planned is Zone 2 | €7.50 | €14.90. Write it so.",
    ),
    "a row is missing": (
        "shipping", replaced("| Zone 2 | €7.50 | €14.90 |\n", ""),
        "planned tables", "row 2 is not there, planned is Zone 2 | €7.50 | €14.90.",
    ),
    "a table that nobody planned": (
        "returns", replaced(LABEL, f"{LABEL}\n\n| A | B |\n|---|---|\n| c | d |"),
        "planned tables", "a table of A | B is not planned. Remove it, or write it as a list.",
    ),
    "a step is missing": (
        "returns", replaced(f"2. {STEPS[1]}\n", ""),
        "planned steps", "step 2, 'Print the label.', is not there.",
    ),
    "steps in another order": (
        "returns", replaced(f"1. {STEPS[0]}\n2. {STEPS[1]}", f"1. {STEPS[1]}\n2. {STEPS[0]}"),
        "planned steps", "step 2, 'Print the label.', stands too early.",
    ),
    "a figure that nobody planned": (
        "returns", replaced(LABEL, f"{LABEL} It lies there for 99 days."),
        "planned figures", "returns.md has figures that its plan has not: 99. Leave out what is not planned.",
    ),
    "no sections": (
        "returns", replaced("\n## ", "\n### "),
        "outlines", "returns.md has no section. Put headings of the second level (##) over its parts.",
    ),
    "another title": (
        "returns", replaced("# Returns\n", "# Goods sent back\n"),
        "plan", "the first heading of returns.md is 'Goods sent back', planned is 'Returns'.",
    ),
    "the diagram is missing": (
        "returns", replaced("```mermaid", "```text"),
        "kinds", "returns.md is planned with a Mermaid diagram, but has none.",
    ),
    "the diagram is broken": (
        "returns", replaced('"]\n', '"\n'),
        "mermaid", "has no partner on its line.",
    ),
}  # fmt: skip


def test_titles_and_cells_are_compared_as_a_reader_sees_them() -> None:
    data = plan_data()
    data["pages"][0]["title"] = "The `ship` command & *rates*"
    data["pages"][0]["tables"][0]["rows"][0][0] = "`zone_1` **or** [home](<x>)"
    plan = plan_of(data)
    brief = brief_of("shipping", plan)
    text = compose(brief, 0)
    assert "# The `ship` command & *rates*" in text
    assert not [fault for fault in faults(brief, plan, text) if "heading" in fault or "table" in fault]
    other = faults(brief, plan, text.replace("`zone_1` **or**", "`zone_2` **or**"))
    assert any("row 1 is zone_2 or home" in fault for fault in other), other


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_named_at_once_and_by_the_validator(what: str, folder: Path) -> None:
    name, change, check, said = PLANTED[what]
    text = change(page(name))
    assert any(said in fault for fault in found_in(text, name)), found_in(text, name)
    (folder / f"{name}.md").write_text(labelled(text, "embedded", "0" * 16), encoding="utf-8")
    errors = [(each.check, each.message) for each in validate(folder).findings if each.level == "error"]
    assert any(of == check and said in message for of, message in errors), errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "returns.md is empty. Write the whole page."),
        (
            "Here is your page!\n\n# Returns",
            "returns.md begins with 'Here is your page!\\n\\n# Returns'. Begin with '# ",
        ),
        ("I cannot help with that.", "the first heading of returns.md is '', planned is 'Returns'."),
        ("x" * (LONGEST_PAGE + 1), f"returns.md has 60,001 characters; at most {LONGEST_PAGE:,} are taken."),
        ("# Returns\n# Returns\n", "returns.md has 2 headings of the first level (#)."),
        ("# Returns\n\n## A\n\nSee [x](nowhere.md).\n", "returns.md links to nowhere.md, which its links_to does not"),
    ],
)
def test_what_is_no_page_at_all(text: str, said: str) -> None:
    assert any(said in fault for fault in found_in(text))


def test_versions_that_state_the_same_are_found(folder: Path) -> None:
    edit(folder / "returns.md", NEW, OLD)
    said = [each.message for each in validate(folder).findings if each.check == "version pairs"]
    assert f"conflict 'r1': the page does not say {NEW!r}. Write it word for word, or mend structure.json." in said


def test_versions_that_differ_in_what_was_not_planned_are_found_in_their_text(folder: Path) -> None:
    edit(folder / "returns-2024.md", LABEL, "The return label costs €3.90 for each parcel.")
    (found,) = [each for each in validate(folder).findings if each.check == "versions agree"]
    assert found.where == str(folder / "returns.md")
    assert "€3.90 against €3.50 is not a planned conflict. Make both say the same, or plan it." in found.message


def test_a_plan_whose_versions_differ_in_what_it_does_not_list_is_found(folder: Path) -> None:
    data = plan_data()
    other = LABEL.replace("€3.50", "€3.90")
    data["pages"][1]["facts"][1] = {**data["pages"][1]["facts"][1], "statement": other, "value": "€3.90"}
    write_plan(folder, data)
    edit(folder / "returns-2024.md", LABEL, other)
    messages = [each.message for each in validate(folder).findings]
    assert any("fact r2" in said and "€3.90" in said and "€3.50" in said for said in messages)


def test_pages_without_planned_facts_are_not_asked_for_them(folder: Path) -> None:
    data = plan_data()
    for each in data["pages"]:
        for key in ("facts", "tables", "steps"):
            each.pop(key, None)
    write_plan(folder, data)
    skipped = {check.name for check in validate(folder).checks if check.skipped == "structure.json plans no facts"}
    assert skipped == {
        "planned facts",
        "planned tables",
        "planned steps",
        "planned figures",
        "outlines",
        "versions agree",
    }


def test_the_label_is_no_part_of_the_page(folder: Path) -> None:
    for name in ("shipping", "returns-2024", "returns"):
        assert found_in(body_of((folder / f"{name}.md").read_text()), name) == []


def test_a_folder_with_faults_is_told_with_status_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "shipping.md"
    edit(file, "31.5 kg", "32.5 kg")
    assert main(["kb", "validate", str(folder)]) == FOUND
    assert f"{file}: fact f2: the page does not say 'A parcel may weigh at most 31.5 kg.'" in capsys.readouterr().out


def asked(folder: Path, **query: Any) -> list[str]:
    """Return what is said against one query of the knowledge base."""
    file = folder / "queries.jsonl"
    file.write_text(json.dumps({"query_id": "q1", "ground_truth": "?", **query}), encoding="utf-8")
    return [finding.message for finding in validate(folder, file).findings if finding.level == "error"]


def hop(*quotes: tuple[str, str]) -> dict[str, Any]:
    evidence = [{"filename": name, "quote": quote} for name, quote in quotes]
    return {"query": "q?", "query_type": "multi_hop", "context_reference": [name for name, _ in quotes],
            "evidence": evidence}  # fmt: skip


def test_evidence_that_was_altered_by_one_character_is_named(folder: Path) -> None:
    altered = hop(("shipping.md", STANDARD), ("returns.md", NEW.replace("45", "46")))
    (said,) = asked(folder, **altered)
    assert said.startswith(f"quote {NEW.replace('45', '46')!r} is not in returns.md.")


def test_a_question_of_two_pages_that_one_of_them_answers_is_named(folder: Path) -> None:
    assert asked(folder, **hop(("shipping.md", STANDARD), ("returns.md", NEW))) == []
    said = "q1 is multi_hop, but returns.md alone holds all its evidence."
    found = asked(folder, **hop(("returns-2024.md", LABEL), ("returns.md", NEW)))
    assert f"{said} Quote what needs the other page too, or make it direct." in found


def test_a_negative_question_that_a_planned_fact_answers_is_named(folder: Path) -> None:
    negative = {"query_type": "negative", "context_reference": [], "evidence": []}
    assert asked(folder, query="How much is the label of an exchange?", **negative) == []
    (said,) = asked(folder, query="What does the return label cost for a parcel?", **negative)
    assert said == (
        f"q1 is negative, but returns.md has every word of it: {LABEL!r}. Ask for what no page says, or make it direct."
    )


def test_what_both_versions_say_is_no_conflict_however_it_is_marked(folder: Path) -> None:
    edit(folder / "returns.md", LABEL, f"{LABEL} The return label never costs €3.50 for each parcel.")
    file = folder / "returns-2024.md"
    file.write_text(file.read_text().replace("**", "").replace("€3.50", "**€3.50**"))
    assert [each.message for each in validate(folder).findings if each.check == "versions agree"] == []


# How a page speaks of its own topics: without the thing that it is all about, and with names as they are written.

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
