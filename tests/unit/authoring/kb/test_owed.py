"""What a question demands of its answers, set against its own gold and the documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rag_harness.authoring.kb.query_checks import wrongly_expected
from rag_harness.records.expectations import expectations_of, kind_of, known_kinds

DOCUMENTS = {"returns.md": "# Returns\n\nSend items back within\n45 days.", "club.md": "# Club\n\nA fee of €12."}
TRUTH = "Send it back within 45 days, by 3 June 2026 at the latest."


def said(
    *expect: dict[str, Any], truth: str = TRUTH, answerable: bool = True, documents: Mapping[str, str] = DOCUMENTS
) -> list[str]:
    found, problems = expectations_of(list(expect))
    assert problems == []
    return list(wrongly_expected(found, truth, answerable, documents))


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"contains": "30 days"}, "contains “30 days”: the ground truth does not keep to it: the nearest is “45 days,”."),
    ({"contains_any": ["30 days"]}, "contains_any [\"30 days\"]: the ground truth does not keep to it: the nearest is"),
    ({"contains_all": ["45", "x9"]}, "contains_all [\"45\", \"x9\"]: the ground truth does not keep to it: “x9” is"),
    ({"equals": "45 days"}, "equals “45 days”: the ground truth does not keep to it: it says “Send it back"),
    ({"one_of": ["45 days"]}, "one_of [\"45 days\"]: the ground truth does not keep to it: it says “Send it back"),
    ({"starts_with": "Yes"}, "starts_with “Yes”: the ground truth does not keep to it: it begins with “Send it"),
    ({"ends_with": "days."}, "ends_with “days.”: the ground truth does not keep to it: it ends with “"),
    ({"regex": "4[6-9]"}, "regex “4[6-9]”: the ground truth does not keep to it: it says “Send it back"),
    ({"not": {"regex": "4[5-9]"}}, "not regex “4[5-9]”: the ground truth does not keep to it: it says “45”."),
    ({"number": 30, "unit": "days"}, "number 30, unit “days”: the ground truth does not keep to it: its numbers with"),
    ({"date": "2026-06-04"}, "date “2026-06-04”: the ground truth does not keep to it: its dates are 3 June 2026."),
    ({"max_words": 3}, "max_words 3: the ground truth does not keep to it: it has 13 words."),
    ({"min_words": 30}, "min_words 30: the ground truth does not keep to it: it has 13 words."),
    ({"max_chars": 9}, "max_chars 9: the ground truth does not keep to it: it has 58 characters."),
    ({"cites": "return.md"}, "cites “return.md”: no document is called 'return.md'. Mend the name."),
    ({"not": {"cites": "old.md"}}, "not cites “old.md”: no document is called 'old.md'. Mend the name."),
    ({"cites_all": ["club.md", "x*.md"]}, "cites_all [\"club.md\", \"x*.md\"]: no document is called 'x*.md'."),
    ({"retrieves": "gone.md"}, "retrieves “gone.md”: no document is called 'gone.md'. Mend the name."),
    ({"context_contains": "fee of €13"}, "context_contains “fee of €13”: no document has these words."),
    ({"declines": True}, "declines: the question has an answer, its ground truth. Mend one of the two."),
    ({"not": {"answers": True}}, "not answers: the question has an answer, its ground truth."),
]  # fmt: skip


@pytest.mark.parametrize(("expectation", "message"), BROKEN, ids=lambda each: str(each)[:40])
def test_an_expectation_that_no_right_answer_keeps(expectation: dict[str, Any], message: str) -> None:
    (found,) = said(expectation)
    assert found.startswith(message)
    assert found.endswith(".")


@pytest.mark.parametrize(
    "expectation",
    [
        {"contains": "45 days"},
        {"not": {"contains": "refund"}},
        {"number": 45, "unit": "days"},
        {"date": "2026-06-03"},
        {"max_words": 13},
        {"cites": "returns.md"},
        {"cites_only": ["ret*.md"]},
        {"not": {"cites": "club.md"}},
        {"context_contains": "within 45 days"},
        {"answers": True},
        {"not": {"declines": True}},
        # Of the form that a pipeline gives to its answers, which a person who writes the truth need not give it.
        {"is_json": True},
        {"links": True},
        {"language": "de"},
        # Of what stands beside the answer: a ground truth has none of it.
        {"cited": True},
        {"max_ms": 1},
        {"finishes": "stop"},
    ],
    ids=str,
)
def test_an_expectation_that_a_right_answer_can_keep(expectation: dict[str, Any]) -> None:
    assert said(expectation) == []


def test_a_question_that_no_document_answers_is_declined() -> None:
    for each in ({"answers": True}, {"not": {"declines": True}}):
        (found,) = said(each, truth="Nothing is said of it.", answerable=False)
        assert found.endswith("no document answers the question, so a right answer declines. Mend one of the two.")
    assert said({"declines": True}, truth="Nothing is said of it.", answerable=False) == []


def test_without_a_ground_truth_words_are_not_looked_at() -> None:
    assert said({"contains": "30 days"}, {"declines": True}, truth=" ") == []


def test_words_that_a_document_has_may_be_forbidden_in_a_prompt() -> None:
    assert said({"not": {"context_contains": "fee of €12"}}) == []


def test_words_are_not_missed_where_a_document_could_not_be_read() -> None:
    assert said({"context_contains": "a cake"}, documents={"a.md": "tea", "b.pdf": ""}) == []
    assert len(said({"context_contains": "a cake"}, documents={"a.md": "tea"})) == 1


def test_which_kinds_are_set_against_the_ground_truth() -> None:
    assert [kind for kind in known_kinds() if kind_of(kind).of_words] == [
        "contains", "contains_all", "contains_any", "date", "ends_with", "equals", "max_chars", "max_sentences",
        "max_words", "min_chars", "min_words", "number", "one_of", "regex", "rouge_l", "starts_with",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("demand", "truth", "why"),
    [
        ({"rubric": "says that a lamp can be returned within 60 days"}, "A lamp can be returned within 45 days.", "60"),
        ({"rubric": "must not say that a lamp can be returned"}, "A lamp can be returned within 45 days.", "itself"),
        ({"not": {"rubric": "says that a lamp can be returned"}}, "A lamp can be returned within 45 days.", "itself"),
        ({"rubric": "says that a lamp can be returned within 45 days"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "says that the sender pays for the parcel"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "must not say that refunds take a month"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "is polite about 60 days"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "says that a lamp can be returned within 60 days"}, "", ""),
    ],
)
def test_a_rubric_that_the_ground_truth_fails_is_named(demand: dict[str, Any], truth: str, why: str) -> None:
    found = said(demand, truth=truth)
    assert [why in each for each in found] == [True] * bool(why), found
