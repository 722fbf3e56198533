"""What a text states, and how one asks for it."""

from __future__ import annotations

from random import Random

import pytest

from rag_harness.authoring.questions.facts import question_for_fact, read_facts
from rag_harness.authoring.questions.sentence_facts import passages, seen
from rag_harness.core.types import Document
from tests.unit.authoring.questions.shop import RETURNS, documents


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
