"""Questions of planned facts: how statements are asked for, and what plans of every domain bear."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest

from rag_harness.__main__ import main
from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PlannedFact, PlanPage, PlanRequest, briefs
from rag_harness.authoring.questions.answerable import like_draft
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import json_lines, rows
from rag_harness.authoring.questions.facts import PLANNED_KINDS
from rag_harness.authoring.questions.gap_questions import nothing_says, untold
from rag_harness.authoring.questions.generator import GeneratedQuestions, make_questions
from rag_harness.authoring.questions.planned_facts import PlannedPages, asked_of, thing_of
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Document

DOMAINS = ("device manuals", "employee handbook", "retail support")
WANTED = {"direct": 20, "multi_hop": 4, "negative": 4}


def fact(kind: str, subject: str, value: str, statement: str) -> PlannedFact:
    return PlannedFact(id="f", kind=kind, subject=subject, value=value, statement=statement)


@pytest.mark.parametrize(
    ("kind", "subject", "value", "statement", "asked"),
    [
        ("amount", "gift box", "€4.50", "A gift box costs €4.50 per order.", "how much does a gift box cost per order"),
        ("amount", "late fee", "€9", "The late fee is €9.", "how much is the late fee"),
        ("amount", "gifts", "€30", "Gifts are free from €30.", "from what amount are gifts free"),
        ("amount", "eco mode", "5 %", "The eco mode saves 5 % of it.", "what percentage of it does the eco mode save"),
        ("amount", "lamp", "1.2 kg", "The lamp weighs 1.2 kg.", "how many kilograms does the lamp weigh"),
        ("limit", "tent", "1 day", "A tent is kept for up to 1 day.", "for up to how many days is a tent kept"),
        ("limit", "filter", "2 months", "The filter is changed every 2 months.", "how often is the filter changed"),
        ("limit", "break", "5 minutes", "The break lasts 5 minutes.", "how many minutes does the break last"),
        ("limit", "hook", "5 kg", "The hook withstands a load of 5 kg.", "what load does the hook withstand"),
        ("limit", "note", "3", "A note is needed from day 3.", "from which day is a note needed"),
        ("limit", "5 days", "5 days", "At most 5 days count twice.", "at most how many days count twice"),
        ("limit", "5 days off", "5 days", "Up to 5 days off are lost.", "up to how many days off are lost"),
        ("limit", "pay", "2 weeks", "In Oulu, pay is due in 2 weeks.", "in Oulu, in how many weeks is pay due"),
        ("date", "course", "3 May 2026", "The course ends on 3 May 2026.", "when does the course end"),
        ("date", "shop", "3 May 2026", "The shop has been open since 3 May 2026.", "since when has the shop been open"),
        ("condition", "bonus", "it rains", "The bonus is paid only if it rains.", "in which cases is the bonus paid"),
        ("condition", "lock", "the app", "The lock opens with the app.", "what does the lock open with"),
        ("condition", "key", "the owner", "The key is kept by the owner.", "by whom is the key kept"),
        ("condition", "bag", "in a dry place", "The bag is stored in a dry place.", "where is the bag stored"),
        ("condition", "fault", "at night", "A fault is shown at night.", "when is a fault shown"),
        ("condition", "theft", "the police", "Theft is reported to the police.", "to whom is theft reported"),
        ("condition", "lost points", "are paid out", "Lost points are paid out.", "what happens to lost points"),
        ("condition", "fault", "stops at once", "With a fault, it stops at once.", "with a fault, what does it do"),
        ("condition", "Visitors", "wear a badge", "Visitors must wear a badge.", "what must visitors do"),
        ("condition", "access", "on for guests", "The access is on for guests.", ""),
        ("condition", "claim", "a receipt", "A claim needs a receipt.", "what does a claim need"),
        ("condition", "parcel", "your door", "We leave the parcel at your door.", "where do you leave the parcel"),
        ("limit", "Whoever leaves", "2 weeks", "Whoever leaves within 2 weeks pays.", ""),
        ("limit", "lamp", "2", "The lamp has 2 of 2.", ""),
    ],
)  # fmt: skip
def test_a_statement_is_turned_into_the_question_for_its_value(
    kind: str, subject: str, value: str, statement: str, asked: str
) -> None:
    assert asked_of(fact(kind, subject, value, statement), {"Oulu"}) == asked


@lru_cache
def made(domain: str) -> tuple[DocumentCollection, GeneratedQuestions]:
    plan = planned(PlanRequest(domain, 30))
    documents = [
        Document(brief.page.filename, compose(brief, 0), brief.page.title or "", {"status": brief.page.status})
        for brief in briefs(plan)
    ]
    collection = DocumentCollection(documents, {page.filename: page for page in plan.pages})
    return collection, make_questions(collection, WANTED)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_plan_of_each_domain_bears_questions_of_all_kinds(domain: str) -> None:
    collection, found = made(domain)
    assert not found.short
    for draft in found.drafts:
        assert all(each.quote in collection.by_id[each.filename].text for each in draft.evidence)
        assert draft.kind != "multi_hop" or len(draft.pages) == 2


def test_like_things_are_among_the_questions_of_two_pages() -> None:
    kinds = {draft.metadata.get("kind") for domain in DOMAINS for draft in made(domain)[1].drafts}
    assert {"like things", "two parts"} <= kinds


def test_the_command_reads_the_plan_that_lies_in_the_folder(tmp_path: Path) -> None:
    plan, folder = tmp_path / "plan.json", tmp_path / "kb"
    assert main(["kb", "plan", "--domain", "employee handbook", "--pages", "12", "-o", str(plan)]) == 0
    assert main(["kb", "generate", str(plan), "-o", str(folder)]) == 0
    assert main(["kb", "queries", str(folder), "--direct", "10"]) == 0
    lines = (folder / "queries.jsonl").read_text().splitlines()
    assert {json.loads(line)["metadata"]["made_of"] for line in lines} & set(PLANNED_KINDS)


def test_planned_facts_have_their_value_as_answer() -> None:
    collection, found = made("employee handbook")
    values = {fact.value for page in collection.planned._pages.values() for fact in page.facts or ()}
    asked = [draft for draft in found.drafts if draft.kind == "direct" and draft.made_of[0] in ("amount", "limit")]
    assert len(asked) >= 5
    assert {draft.answer for draft in asked} <= values
    assert not any("topic" in draft.metadata for draft in asked), "their statements name what they are about"


def test_what_nothing_answers_is_planned_of_no_page_of_its_thing() -> None:
    collection, found = made("device manuals")
    for draft in (each for each in found.drafts if each.kind == "negative"):
        thing = collection.planned.things[draft.metadata["nearest_page"]]
        own = [name for name, of in collection.planned.things.items() if of == thing]
        asked = {
            fact.parts["asked"].casefold() for name in own for fact in collection.facts(name) if "id" in fact.parts
        }
        assert draft.plain.rstrip("?").casefold() not in asked


def test_the_same_questions_for_the_same_seed_and_others_for_another() -> None:
    collection, found = made("retail support")
    again = DocumentCollection(collection.documents, collection.planned._pages)
    text = json_lines(rows(found.drafts, collection))
    assert json_lines(rows(make_questions(again, WANTED).drafts, again)) == text
    assert json_lines(rows(make_questions(again, WANTED, seed=1).drafts, again)) != text
    assert {json.loads(line)["query_type"] for line in text.splitlines()} == set(WANTED)


def page(name: str, **told: str) -> PlanPage:
    facts = [fact(*_told(text)).model_copy(update={"id": f"{name}-{key}"}) for key, text in told.items()]
    return PlanPage(filename=f"{name}.md", title=f"Using the {name} lamp", facts=tuple(facts))


def _told(text: str) -> tuple[str, str, str, str]:
    kind, value, statement = text.split("|")
    return kind, statement.split(" of ")[0].removeprefix("The "), value, statement


PINE = page(
    "Pine",
    price="amount|€9|The price of the Pine lamp is €9.",
    weight="amount|2 kg|The weight of the Pine lamp is 2 kg.",
    guarantee="limit|3 years|The guarantee of the Pine lamp lasts 3 years.",
)
OAK = page(
    "Oak",
    price="amount|€7|The price of the Oak lamp is €7.",
    weight="amount|5 kg|The weight of the Oak lamp is 5 kg.",
)
SAW = PlanPage(
    filename="saw.md",
    title="Using the Ash saw",
    facts=(fact("amount", "weight", "4 kg", "The weight of the Ash saw is 4 kg."),) * 2,
)


def test_a_page_is_about_what_its_title_and_its_statements_name() -> None:
    assert [thing_of(each) for each in (PINE, OAK)] == ["Pine lamp", "Oak lamp"]
    nothing = fact("amount", "price", "€9", "The price is €9.")
    assert thing_of(PlanPage(filename="a.md", title="Prices", facts=(nothing, nothing))) == ""


def test_what_is_untold_is_told_of_things_that_are_alike() -> None:
    pages = PlannedPages({each.filename: each for each in (PINE, OAK, SAW)})
    assert [each.statement for each in pages.untold("Oak.md")] == ["The guarantee of the Oak lamp lasts 3 years."]
    assert pages.untold("Pine.md") == []
    assert pages.untold("saw.md") == []


TABLE = """
| Part | Price |
|---|---|
| Bulb (Pine lamp) | €3 |
| Large (Pine lamp) | €4 |
"""


def lamps(more: str = "", *others: PlanPage) -> DocumentCollection:
    """Return pages of lamps as a writer would write them; ``more`` stands on the page of the oak lamp."""
    pages = (PINE, OAK, *others)
    texts = [f"# {each.title}\n\n" + " ".join(told.statement for told in each.facts or ()) for each in pages]
    texts[0] += f"\n{TABLE}"
    texts[1] += f" {more}\n"
    documents = [Document(each.filename, text, each.title or "") for each, text in zip(pages, texts, strict=True)]
    return DocumentCollection(documents, {each.filename: each for each in pages})


def test_a_planned_statement_is_asked_for_once_and_a_cell_names_its_thing() -> None:
    facts = lamps().facts("Pine.md")
    assert [fact.kind for fact in facts] == ["amount", "amount", "limit", "cell"]
    assert facts[0].quote == "The price of the Pine lamp is €9."
    assert facts[-1].parts["asked"].endswith("the bulb for the Pine lamp")


def test_like_things_are_compared_and_the_greater_is_named() -> None:
    collection = lamps()
    pine, oak = collection.facts("Pine.md"), collection.facts("Oak.md")
    drafts = [like_draft(pine, oak, collection, Random(seed)) for seed in range(8)]
    truths = {draft.ground_truth for draft in drafts if draft}
    assert truths == {
        "The price of the Pine lamp is €9. The price of the Oak lamp is €7. "
        "The greater figure is that of the Pine lamp.",
        "The weight of the Pine lamp is 2 kg. The weight of the Oak lamp is 5 kg. "
        "The greater figure is that of the Oak lamp.",
    }
    assert all(draft.pages == ("Pine.md", "Oak.md") and "the Oak lamp" in draft.text for draft in drafts if draft)


def test_like_things_are_not_asked_for_in_one_breath_where_the_words_differ() -> None:
    ways = (("Ash", "by the owner"), ("Elm", "with a dry cloth"), ("Fir", "by the dealer"))
    guarantee = "limit|2 years|The guarantee of the {} lamp lasts 2 years."
    ash, elm, fir = (
        page(name, way=f"condition|{way}|The shade of the {name} lamp is cleaned {way}.", ends=guarantee.format(name))
        for name, way in ways
    )
    collection = lamps("", ash, elm, fir)
    facts = {name: collection.facts(f"{name}.md") for name, _ in ways}
    shades = {name: facts[name][:1] for name in facts}
    assert like_draft(shades["Ash"], shades["Elm"], collection, Random(0)) is None
    assert like_draft(shades["Ash"], shades["Fir"], collection, Random(0)) is not None


def test_what_a_passage_may_say_is_not_asked_as_untold() -> None:
    asked = "How many years does the guarantee of the Oak lamp last?"
    assert [question for question, _ in untold("Oak.md", lamps("The Oak lamp is made in Pau."))] == [asked]
    assert not list(untold("Oak.md", lamps("A guarantee of the Oak lamp lasts for years.")))


def test_of_planned_pages_a_passage_may_share_a_word_with_what_nothing_says() -> None:
    collection, asked = lamps("A guarantee of the Oak lamp is given."), terms("guarantee years")
    assert nothing_says("Oak lamp", asked, collection, is_planned=True)
    assert not nothing_says("Oak lamp", asked, collection)
