"""Questions of every kind for a small collection: sound, the same for a seed, spread over pages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rag_harness.authoring.questions.document_collection import DocumentCollection, superseded_pages
from rag_harness.authoring.questions.drafts import json_lines, rows
from rag_harness.authoring.questions.gap_questions import nothing_says, siblings, swapped
from rag_harness.authoring.questions.generator import GeneratedQuestions, make_questions
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Document
from rag_harness.data.documents import read_folder
from rag_harness.data.queries import QueryLine
from tests.unit.authoring.questions.shop import documents

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
