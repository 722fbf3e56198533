"""Expectations as they are written: what is wrong with them is said before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Expectation
from rag_harness.records.expectations import AnswerSeen, expectations_of, kept_share, looked_at

WRONG: list[tuple[Any, str]] = [
    ({"contains": "x"}, "a list of objects was expected"),
    ([3], "0: an object was expected"),
    ([{}], "0: it names no kind"),
    ([{"must": True}], "0: it names no kind"),
    ([{"contain": "x"}], "0: Unknown kind of expectation 'contain'. Did you mean 'contains'?"),
    ([{"javascript": "x"}], "0: Unknown kind of expectation 'javascript'. Known: answers, cited, "),
    ([{"not-contains": "x"}], """0: Unknown kind of expectation 'not-contains'. Write {"not": {"contains": "x"}}"""),
    ([{"not_max_words": 3}], """0: Unknown kind of expectation 'not_max_words'. Write {"not": {"max_words": 3}}"""),
    ([{"type": "contains", "value": "x"}], "0: Unknown kind of expectation 'type'. The kind is the key: {"),
    ([{"contains": ["a"]}], "0: contains: a text was expected; found ['a']. For several there is contains_any"),
    ([{"cites": ["a.md"]}], "0: cites: a text was expected; found ['a.md']. For several there is cites_any"),
    ([{"contains": ""}], "0: contains: a text was expected; found ''"),
    ([{"contains": "a"}, {"contains": 3}], "1: contains: a text was expected; found 3"),
    ([{"contains": "a" * 2_001}], "0: contains: longer than 2,000 characters"),
    ([{"contains_any": []}], "0: contains_any: a list of texts was expected"),
    ([{"contains": "a", "regex": "b"}], "0: two kinds in one object, contains and regex"),
    (
        [{"contains": "a", "cased": True}],
        "0: contains: Unknown option 'cased'. Did you mean 'case'? Known: case, must, weight",
    ),
    ([{"contains": "a", "case": 1}], "0: contains: case is 1. Write true or false"),
    ([{"declines": True, "case": True}], "0: declines: Unknown option 'case'. Known: must, weight"),
    ([{"declines": False}], '0: declines: write true, and for the opposite {"not": …}; found False'),
    ([{"contains": "a", "weight": -1}], "0: weight is -1. Write a number above 0"),
    ([{"contains": "a", "weight": 0}], "0: weight is 0. Write a number above 0"),
    ([{"contains": "a", "weight": True}], "0: weight is true. Write a number above 0"),
    ([{"contains": "a", "weight": float("inf")}], "0: weight is Infinity. Write a number above 0"),
    ([{"contains": "a", "must": "yes"}], '0: must is "yes". Write true or false'),
    ([{"contains": "a", "wieght": 2}], "0: contains: Unknown option 'wieght'. Did you mean 'weight'?"),
    ([{"number": 4, "unit": 5}], "0: number: unit is 5. Write a text"),
    ([{"number": 4, "within": "1"}], '0: number: within is "1". Write a number'),
    ([{"not": "a"}], "0: 'not' takes one object"),
    ([{"not": [{"contains": "a"}, {"contains": "b"}]}], "0: 'not' takes one object"),
    ([{"not": {"contains": "a"}, "contains": "b"}], "0: 'contains' stands beside 'not'. Put it inside"),
    ([{"not": {"not": {"contains": "a"}}}], "0: 'not' stands in 'not'. Take both away"),
    ([{"regex": "(a"}], "0: regex: '(a' is no regular expression of a linear engine: unclosed group"),
    ([{"regex": "(?=a)b"}], "look-around, including look-ahead and look-behind, is not supported"),
    ([{"json": {"type": "objekt"}}], "0: json: no JSON Schema: 'objekt' is not valid"),
    ([{"json": {"$ref": "https://other.example/a.json"}}], "0: json: the schema has a $ref to another file"),
    ([{"json": {"patternProperties": {"a": {}}}}], "0: json: patternProperties are not looked at"),
    ([{"json": {"properties": {"a": {"pattern": "(?=a)"}}}}], "0: json: '(?=a)' is no regular expression"),
    ([{"json": []}], "0: json: a JSON Schema was expected, an object; found []"),
    ([{"rouge_l": "a"}], "0: rouge_l: at_least is None"),
    ([{"rouge_l": "a", "at_least": 1.2}], "0: rouge_l: at_least is 1.2"),
    ([{"number": "45"}], "0: number: a number was expected; found '45'"),
    ([{"number": 45, "within": -1}], "0: number: a number of 0 or more was expected; found -1"),
    ([{"date": "1 March"}], "0: date: a date like 2024-03-01 was expected"),
    ([{"max_words": 8.5}], "0: max_words: a whole number was expected; found 8.5"),
    ([{"language": "klingon"}], "0: language: unknown language 'klingon'"),
    ([{"decides": "maybe"}], "0: decides: write one of pass, warn, abstain; found 'maybe'"),
    ([{"min_confidence": 2}], "0: min_confidence: a number up to 1 was expected; found 2"),
    ([{"contains": "a"}] * 101, "101 expectations; a case may have 100"),
    ([{"contains": "a"}, {"not": {"contains": "a"}}], 'contains is demanded and forbidden at once: "a"'),
    ([{"declines": True}, {"answers": True}], "declines and answers are demanded at once"),
    ([{"max_words": 3}, {"min_words": 9}], "max_words 3 is less than min_words 9"),
    ([{"max_words": 3}, {"max_words": 80}, {"min_words": 9}], "max_words 3 is less than min_words 9"),
    ([{"equals": "a"}, {"equals": "A "}, {"equals": "b"}], 'equals is demanded as "A " and as "b"'),
    ([{"decides": "pass"}, {"decides": "warn"}], 'decides is demanded as "pass" and as "warn"'),
]


@pytest.mark.parametrize(("raw", "said"), WRONG, ids=lambda each: str(each)[:50])
def test_what_is_wrong_is_said(raw: Any, said: str) -> None:
    _, problems = expectations_of(raw)
    assert said in problems[0], problems
    assert len(problems) == 1


def test_all_problems_are_said_at_once() -> None:
    assert len(expectations_of([{"contain": "x"}, {"contains": ""}, {"contains": "a"}])[1]) == 2


def test_what_is_written_is_read() -> None:
    raw = [{"not": {"contains": "a", "case": True}, "weight": 2, "must": True}, {"contains": "b"}]
    assert expectations_of(raw) == (
        (Expectation("contains", "a", {"case": True}, True, 2.0, True), Expectation("contains", "b")),
        [],
    )


def share(raw: list[dict[str, Any]], answer: str = "a b c") -> tuple[float | None, str]:
    expected, problems = expectations_of(raw)
    assert problems == []
    return kept_share(looked_at(expected, AnswerSeen(answer)))


def test_the_share_is_weighted() -> None:
    assert share([{"contains": "a"}, {"contains": "b"}]) == (1.0, "")
    assert share([{"contains": "a", "weight": 3}, {"contains": "z"}]) == (0.75, "contains “z”: it says “a b c”")


def test_one_that_must_be_kept_makes_it_nothing() -> None:
    raw = [{"contains": "a", "weight": 99}, {"contains": "z", "must": True}]
    assert share(raw) == (0.0, "must contains “z”: it says “a b c”")


def test_what_cannot_be_checked_leaves_no_figure() -> None:
    value, said = share([{"contains": "a"}, {"decides": "pass"}])
    assert (value, said) == (None, "an unchecked expectation: decides “pass”: the pipeline decides nothing")
    # Only the worst cases would have a figure if one that must be kept decided here.
    assert share([{"contains": "z", "must": True}, {"decides": "pass"}])[0] is None
