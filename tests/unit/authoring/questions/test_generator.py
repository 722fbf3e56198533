"""Questions without a model: of small collections and of plans, with facts and other words."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest

from rag_harness.__main__ import main
from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PlannedFact, PlanPage, PlanRequest, briefs
from rag_harness.authoring.questions.answerable import in_other_words, like_draft, with_topic
from rag_harness.authoring.questions.document_collection import DocumentCollection, superseded_pages
from rag_harness.authoring.questions.drafts import json_lines, rows
from rag_harness.authoring.questions.english import asked_by_reader, ing, lower_first, past, plural, read_forms, third
from rag_harness.authoring.questions.facts import PLANNED_KINDS, question_for_fact, read_facts
from rag_harness.authoring.questions.gap_questions import nothing_says, siblings, swapped, untold
from rag_harness.authoring.questions.generator import GeneratedQuestions, make_questions
from rag_harness.authoring.questions.planned_facts import PlannedPages, asked_of, thing_of
from rag_harness.authoring.questions.sentence_facts import passages, seen
from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Document
from rag_harness.data.documents import read_folder
from rag_harness.data.queries import QueryLine
from tests.unit.authoring.questions.shop import RETURNS, documents

# Questions of every kind for a small collection: sound, the same for a seed, spread over pages.

# Questions of every kind for a small collection: sound, the same for a seed, spread over pages.

SHIPPED = Path(__file__).parents[4] / "data" / "kb"


def made(collection: DocumentCollection, seed: int = 0, **wanted: int) -> tuple[GeneratedQuestions, list[QueryLine]]:
    found = make_questions(collection, wanted, seed)
    text = json_lines(rows(found.drafts, collection))
    return found, [QueryLine.model_validate(json.loads(line)) for line in text.splitlines()]


@pytest.fixture(scope="module")
def retail() -> DocumentCollection:
    return DocumentCollection(read_folder(SHIPPED).documents)


@pytest.fixture(scope="module")
def of_retail(retail: DocumentCollection) -> list[QueryLine]:
    return made(retail, direct=60, multi_hop=8, negative=8)[1]


def test_direct_questions_of_a_small_shop() -> None:
    collection = DocumentCollection(documents())
    found, queries = made(collection, direct=50)
    assert len(queries) >= 10
    assert {page for query in queries for page in query.context_reference} == set(collection.by_id)
    assert found.short == {"direct": 50 - len(queries)}
    for query in queries:
        assert all(each.quote in collection.by_id[each.filename].text for each in query.evidence)
        assert query.metadata["generated_by"] == "embedded/templates"
        assert query.metadata["reviewed"] == "no"
        assert query.metadata["difficulty"] in ("easy", "medium", "hard")
        assert 0 <= query.metadata["overlap"] <= 1


def test_pages_that_tempt_are_counted() -> None:
    few = DocumentCollection(documents())
    twin = Document("twin.md", "# Twin\n\nA parcel seal that is broken by rain is our courier's business.\n", "Twin")
    more = DocumentCollection([*documents(), twin])
    counts = []
    for collection in (few, more):
        found = make_questions(collection, {"direct": 50})
        counts += [
            row["metadata"]["distractors"] for row in rows(found.drafts, collection) if "seal is broken" in row["query"]
        ]
    assert counts == [0, 1]


def test_a_question_of_two_pages_quotes_both() -> None:
    _, queries = made(DocumentCollection(documents()), multi_hop=3)
    assert queries
    for query in queries:
        assert {each.filename for each in query.evidence} == set(query.context_reference)
        assert len(query.context_reference) == 2


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(retail: DocumentCollection) -> None:
    wanted = {"direct": 8, "multi_hop": 2, "negative": 2}
    few = [page for page in retail.documents if page.metadata["category"] == "products"]
    one, same, other = (
        json_lines(rows(make_questions(collection, wanted, seed).drafts, collection))
        for seed, collection in (
            (1, DocumentCollection(few)),
            (1, DocumentCollection(few)),
            (2, DocumentCollection(few)),
        )
    )
    assert one == same
    assert one != other


def test_no_page_dominates(of_retail: list[QueryLine]) -> None:
    pages = Counter(query.context_reference[0] for query in of_retail if query.query_type == "direct")
    assert max(pages.values()) <= 4  # two rounds, and two more for a page that replaced another
    assert len(pages) >= 40


def test_direct_questions_are_of_current_pages(retail: DocumentCollection, of_retail: list[QueryLine]) -> None:
    assert "shipping-rates-2024.md" in retail.superseded
    direct = [query for query in of_retail if query.query_type == "direct"]
    assert not {page for query in direct for page in query.context_reference} & set(retail.superseded)


def test_some_turn_on_a_version(of_retail: list[QueryLine]) -> None:
    changed = [query for query in of_retail if query.metadata.get("version_conflict") and query.query_type == "direct"]
    assert changed
    for query in changed:
        (both,) = query.metadata["superseded"]
        assert both["outdated_statement"] != both["current_statement"]


def test_kinds_are_mixed(of_retail: list[QueryLine]) -> None:
    kinds = Counter(query.metadata["made_of"] for query in of_retail if query.query_type == "direct")
    assert len(kinds) >= 4
    assert max(kinds.values()) <= 0.5 * kinds.total()


def test_negative_questions_say_what_is_nearest_and_quote_nothing(of_retail: list[QueryLine]) -> None:
    negative = [query for query in of_retail if query.query_type == "negative"]
    assert negative
    for query in negative:
        assert not query.evidence
        assert not query.context_reference
        assert query.metadata["nearest"][0]["text"]


def test_nothing_is_said_of_a_thing_only_where_no_passage_has_it() -> None:
    collection = DocumentCollection(documents())
    assert not nothing_says("Pine Lantern", terms("weight kg"), collection)
    assert nothing_says("Pine Lantern", terms("voltage socket"), collection)
    assert not nothing_says("Garden Hose", terms("voltage socket"), collection)


def test_siblings_are_swapped_whole_and_with_their_article() -> None:
    found = siblings(documents(), frozenset())
    assert found["Pine Lantern"] == ("Brass Lantern",)
    (said, thing, other), *_ = swapped("Who has a Pine Lantern?", found)
    assert (said, thing, other) == ("Who has a Brass Lantern?", "Brass Lantern", "Pine Lantern")
    assert list(swapped("Who has a Pine Lantern Deluxe?", found)) == []


def test_pages_that_name_a_year_are_told_from_those_that_live() -> None:
    years = {"rates.md": 2026, "rates-2024.md": 2024}
    pages = [Document(name, f"# Rates\n\nEffective 1 March {year}.\n", "Rates") for name, year in years.items()]
    assert superseded_pages(pages) == {"rates-2024.md": "rates.md"}
    assert superseded_pages(documents()) == {}


def test_questions_may_be_held_to_share_few_words(retail: DocumentCollection) -> None:
    found = make_questions(retail, {"direct": 10}, most_shared=0.75)
    assert found.dropped["shares too many words with its page"]
    assert all(row["metadata"]["overlap"] <= 0.75 for row in rows(found.drafts, retail))


# Things of one kind, by titles that are otherwise the same.


def of_titles(*titles: str) -> dict[str, tuple[str, ...]]:
    documents = [Document(f"p{number}.md", f"# {title}\n", title) for number, title in enumerate(titles)]
    return siblings(documents, ())


def test_what_titles_differ_by_is_of_one_kind() -> None:
    found = of_titles("Returning the Alder kettle", "Returning the Brisk toaster", "Warranty of the Lumo lamp")
    assert found == {"Alder kettle": ("Brisk toaster",), "Brisk toaster": ("Alder kettle",)}


def test_one_word_in_common_makes_no_kind() -> None:
    assert of_titles("Returning Kettles", "Returning Toasters") == {}


def test_what_is_no_short_name_is_no_thing() -> None:
    assert of_titles("How to return a kettle", "How to return a toaster") == {}


# Questions of planned facts: how statements are asked for, and what plans of every domain bear.

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
def made_of_plan(domain: str) -> tuple[DocumentCollection, GeneratedQuestions]:
    plan = planned(PlanRequest(domain, 30))
    documents = [
        Document(brief.page.filename, compose(brief, 0), brief.page.title or "", {"status": brief.page.status})
        for brief in briefs(plan)
    ]
    collection = DocumentCollection(documents, {page.filename: page for page in plan.pages})
    return collection, make_questions(collection, WANTED)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_plan_of_each_domain_bears_questions_of_all_kinds(domain: str) -> None:
    collection, found = made_of_plan(domain)
    assert not found.short
    for draft in found.drafts:
        assert all(each.quote in collection.by_id[each.filename].text for each in draft.evidence)
        assert draft.kind != "multi_hop" or len(draft.pages) == 2


def test_like_things_are_among_the_questions_of_two_pages() -> None:
    kinds = {draft.metadata.get("kind") for domain in DOMAINS for draft in made_of_plan(domain)[1].drafts}
    assert {"like things", "two parts"} <= kinds


def test_the_command_reads_the_plan_that_lies_in_the_folder(tmp_path: Path) -> None:
    plan, folder = tmp_path / "plan.json", tmp_path / "kb"
    assert main(["kb", "plan", "--domain", "employee handbook", "--pages", "12", "-o", str(plan)]) == 0
    assert main(["kb", "generate", str(plan), "-o", str(folder)]) == 0
    assert main(["kb", "queries", str(folder), "--direct", "10"]) == 0
    lines = (folder / "queries.jsonl").read_text().splitlines()
    assert {json.loads(line)["metadata"]["made_of"] for line in lines} & set(PLANNED_KINDS)


def test_planned_facts_have_their_value_as_answer() -> None:
    collection, found = made_of_plan("employee handbook")
    values = {fact.value for page in collection.planned._pages.values() for fact in page.facts or ()}
    asked = [draft for draft in found.drafts if draft.kind == "direct" and draft.made_of[0] in ("amount", "limit")]
    assert len(asked) >= 5
    assert {draft.answer for draft in asked} <= values
    assert not any("topic" in draft.metadata for draft in asked), "their statements name what they are about"


def test_what_nothing_answers_is_planned_of_no_page_of_its_thing() -> None:
    collection, found = made_of_plan("device manuals")
    for draft in (each for each in found.drafts if each.kind == "negative"):
        thing = collection.planned.things[draft.metadata["nearest_page"]]
        own = [name for name, of in collection.planned.things.items() if of == thing]
        asked = {
            fact.parts["asked"].casefold() for name in own for fact in collection.facts(name) if "id" in fact.parts
        }
        assert draft.plain.rstrip("?").casefold() not in asked


def test_the_same_questions_for_the_same_seed_and_others_for_another() -> None:
    collection, found = made_of_plan("retail support")
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


# What a text states, and how one asks for it.


def asked(text: str, names: frozenset[str] = frozenset()) -> list[tuple[str, str, str]]:
    facts = read_facts(Document("a.md", text, "A"), names)
    return [(fact.kind, question_for_fact(fact, Random(1)), fact.answer) for fact in facts]


STATED = """
If the seal is broken, we refund half.|condition|What happens if the seal is broken?|we refund half.
If your water is hard, clean it more often.|condition|What should I do if my water is hard?|
If you send back five items, you need two labels.|condition|What do I need if I send back five items?|
Batteries are covered for 12 months from delivery.|quantity|For how many months are batteries covered from delivery?|12 months
An answer comes within 2 working days of the call.|quantity|Within how many days of the call does an answer come?|2 working days
Bedrock supports three families of embedding models.|quantity||three families
A drawer for the desk costs €45 per piece.|quantity|How much does a drawer for the desk cost per piece?|€45
Our contract runs until 31 December 2027.|quantity|Until when does your contract run?|31 December 2027
To pass a context to a tool, use the decorator.|purpose||use the decorator.
Gift cards can't be returned in a store.|permission|Can gift cards be returned in a store?|
A harbour pass is a small card that opens the quay gate.|definition||a small card that opens the quay gate.
"""  # noqa: E501 - a table


@pytest.mark.parametrize("row", STATED.strip().splitlines())
def test_a_sentence_and_its_question(row: str) -> None:
    sentence, kind, question, answer = row.split("|")
    ((found, said, told),) = asked(sentence)
    assert found == kind
    assert said == (question or said)
    assert told == (answer or told)


@pytest.mark.parametrize(
    "sentence",
    [
        "If it is broken, we refund half of the price.",
        "See the returns page for more details on that.",
        "However, batteries are covered for 12 months.",
        "The value is returned by the function below.",
        "We looked at three ways to do this in the last section.",
    ],
)
def test_what_stands_on_its_surroundings_is_no_fact(sentence: str) -> None:
    assert asked(sentence) == []


def test_cells_are_asked_for_by_attribute_and_thing() -> None:
    table = "| Lantern | Weight | Default |\n|---|---|---|\n| Pine Lantern | 1.2 kg | – |\n"
    assert asked(table) == [("cell", "What is the weight of Pine Lantern?", "1.2 kg")]


def test_tables_with_the_attributes_in_rows() -> None:
    table = "| | Ridge 2 | Ridge 3 |\n|---|---|---|\n| Price | €229 | €289 |\n"
    assert [question for _, question, _ in asked(table)] == [
        "What is the price for Ridge 2?",
        "What is the price for Ridge 3?",
    ]


def test_money_where_two_things_meet_and_nothing_where_it_is_not_sure() -> None:
    table = "| Service | Zone 1 | Zone 2 |\n|---|---|---|\n| Standard | €4.90 | by booking |\n"
    assert asked(table) == [("cell", "How much is Standard for Zone 1?", "€4.90")]


def test_quotes_are_the_words_of_the_page() -> None:
    (document, *_) = documents()
    for fact in read_facts(document):
        assert document.text[fact.start : fact.end] == fact.quote
        assert fact.quote in RETURNS


def test_code_and_pointers_are_no_passages_to_ask_about() -> None:
    text = "```python\nIf x is y, do z now please.\n```\n\n!!! note\n\n- **One item.** Two [words](a.md) here.\n"
    assert [passage.text for passage in passages(Document("a.md", text, "A"))] == ["One item.", "Two words here."]


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("**bold** and `code_name`", "bold and code_name"),
        ("[`Retry`][pkg.Retry] and [more](x.md#y)", "Retry and more"),
        ("a *b* _c_ snake_case_name {#anchor}", "a b c snake_case_name"),
    ],
)
def test_what_a_reader_sees(markup: str, shown: str) -> None:
    assert seen(markup) == shown


def test_names_keep_their_capital() -> None:
    ((_, question, _),) = asked("Bedrock supports three families of models.", frozenset({"Bedrock"}))
    assert question == "How many families of models does Bedrock support?"


# Other words for a question: what must stay stays, and fewer words are shared with the page.


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the price for Pine Lantern?", "How much do I have to pay for Pine Lantern?"),
        ("How often are statuses refreshed?", "At what intervals are statuses refreshed?"),
        ("Can I cancel a parcel within 3 days?", "Can I call off a package within 3 days?"),
        ("How do I configure `retry_policy`?", "How do I set up `retry_policy`?"),
        ('What does "cancel parcel" do?', 'What does "cancel parcel" do?'),
        ("What does cancel_order.parcel return?", "What does cancel_order.parcel return?"),
        ("How long does the price match credit last?", "How long does the price match credit last?"),
    ],
)
def test_other_words(question: str, said: str) -> None:
    assert in_other_words(question, Random(3)) == said


def test_figures_stay() -> None:
    question = "What is the discount for orders above €1,500 within 30 days?"
    assert figures(in_other_words(question, Random(1))) == figures(question)


def test_every_entry_of_the_list_is_inflected_and_none_stands_for_itself() -> None:
    forms = read_forms()
    assert forms.words["cancelled"] == [("past", "called off")]
    for written, others in forms.words.items():
        assert all(said and said != written for _, said in others)


@pytest.mark.parametrize(
    ("form", "word", "made"),
    [
        (plural, "fee", "fees"),
        (plural, "country", "countries"),
        (third, "go", "goes"),
        (third, "carry", "carries"),
        (ing, "make", "making"),
        (ing, "put", "putting"),
        (past, "keep", "kept"),
        (past, "tailor", "tailored"),
        (past, "modify", "modified"),
    ],
)
def test_forms(form: object, word: str, made: str) -> None:
    assert callable(form)
    assert form(word) == made


@pytest.mark.parametrize(
    ("page", "reader"),
    [
        ("if you are sure, we send you your label", "if I am sure, you send me my label"),
        ("if one of you leaves", "if one of us leaves"),
        ("can you order it", "can I order it"),
        ("a thing of its own", "a thing of its own"),
    ],
)
def test_who_speaks(page: str, reader: str) -> None:
    assert asked_by_reader(page) == reader


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Gift cards are sent.", "gift cards are sent."),
        ("Pydantic AI reads it.", "Pydantic AI reads it."),
        ("Zone 1 is near.", "Zone 1 is near."),
        ("Bedrock reads it.", "Bedrock reads it."),
        ("retry_policy is set.", "retry_policy is set."),
    ],
)
def test_capitals(text: str, said: str) -> None:
    assert lower_first(text, {"Bedrock"}) == said


def test_a_topic_stands_in_front_or_behind() -> None:
    question = "For how many days is the invite valid?"
    assert with_topic(question, "household sharing", "About {about}: {asked}") == (
        "About household sharing: for how many days is the invite valid?"
    )
    assert with_topic(question, "household sharing", "{Asked} (I mean {about}.)") == (
        "For how many days is the invite valid? (I mean household sharing.)"
    )
