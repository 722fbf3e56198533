"""What each kind of expectation finds in an answer, and what it says of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from rag_harness.core.errors import SettingsError
from rag_harness.core.text.comparison import without_emphasis
from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.rubrics import MOST_CRITERIA, Criterion, Rubric, read_rubrics, rubric_named
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationResult,
    Finding,
    Source,
    expectations_of,
    kept_share,
    kind_of,
    known_kinds,
    looked_at,
)
from tests.effort import bounded

# What each kind of expectation finds in an answer, and what it says of it.

SOURCES = (Source("returns.md", "You can return a lamp within 45 days."), Source("fees/post.md", "It costs €4.90."))
LAMP = AnswerSeen("You can return a lamp within 45 days [Source 1].", sources=SOURCES, cited=(1,))
NOT_TOLD = AnswerSeen("I don't know.", declined=True, sources=None)


def look(demand: dict[str, Any], answer: AnswerSeen | str = LAMP) -> ExpectationResult:
    expected, problems = expectations_of([demand])
    assert problems == []
    (found,) = looked_at(expected, AnswerSeen(answer) if isinstance(answer, str) else answer)
    return found


KEPT: list[tuple[dict[str, Any], AnswerSeen | str]] = [
    ({"contains": "45 days"}, LAMP),
    ({"contains": "45  DAYS"}, "Within 45\ndays."),
    ({"contains": "4"}, "4, and 5"),
    ({"contains": "refund"}, "Refunds take 5 days."),
    ({"contains": "45 days."}, "within 45 days [Source 1] ."),
    ({"contains_any": ["60 days", "45 days"]}, LAMP),
    ({"contains_all": ["lamp", "45 days"]}, LAMP),
    ({"equals": "45 days"}, " 45  Days [Source 1]"),
    ({"one_of": ["45 days", "six weeks"]}, "Six weeks"),
    ({"starts_with": "you can"}, LAMP),
    ({"ends_with": "45 days"}, "It is 45 days [Source 1]"),
    ({"regex": r"\b\d+ days\b"}, LAMP),
    ({"rouge_l": "You can return lamps within 45 days", "at_least": 0.8}, LAMP),
    ({"max_words": 8}, LAMP),
    ({"min_words": 8}, "You can return a lamp within 45 days [Source 1]"),
    ({"max_chars": 7}, "45 days [Source 1]"),
    ({"min_chars": 7}, "45 days"),
    ({"max_sentences": 2}, "It is 45 days. Refunds take five."),
    ({"links": True}, "See https://shop.example/returns."),
    ({"language": "de"}, "Sie können die Lampe innerhalb von 45 Tagen zurückgeben, und das ist kostenlos."),
    ({"is_json": True}, '```json\n{"days": 45}\n```'),
    ({"json": {"type": "object", "required": ["days"]}}, '{"days": 45}'),
    ({"number": 45}, LAMP),
    ({"number": 1400}, "It costs 1,400 in all"),
    ({"number": 1400.5, "unit": "€"}, "It costs €1.400,50."),
    ({"number": 4.9, "unit": "€"}, "4.90 €"),
    ({"number": 45, "within": 1}, "about 44.5 days"),
    ({"number": 1400}, "It costs 1 400.0 in all"),
    ({"number": 45}, "Since 2024 45 days"),
    ({"number": 5}, "5 10 15"),
    ({"number": -3}, "It was −3 degrees"),
    ({"date": "2024-03-01"}, "Since 1 March 2024 it costs more."),
    ({"date": "2024-03-01"}, "Since March 1st, 2024."),
    ({"date": "2024-03-01"}, "Seit 1.3.2024"),
    ({"cites": "returns.md"}, LAMP),
    ({"cites": "ret*.md"}, LAMP),
    ({"cites_any": ["other.md", "returns.md"]}, LAMP),
    ({"cites_all": ["returns.md"]}, LAMP),
    ({"cites_only": ["returns.md"]}, LAMP),
    ({"cited": True}, LAMP),
    ({"valid_citations": True}, LAMP),
    ({"retrieves": "fees/post.md"}, LAMP),
    ({"context_contains": "costs €4.90"}, LAMP),
    ({"declines": True}, NOT_TOLD),
    ({"answers": True}, LAMP),
    ({"decides": "warn"}, AnswerSeen("45 days", decision="warn")),
    ({"min_confidence": 0.8}, AnswerSeen("45 days", confidence=0.8)),
    ({"max_ms": 90}, AnswerSeen("45 days", ms=90)),
    ({"max_usd": 0.01}, AnswerSeen("45 days", usd=0.0)),
    ({"max_tokens": 9}, AnswerSeen("45 days", tokens=9)),
    ({"finishes": "stop"}, AnswerSeen("45 days", finish_reason="stop")),
]

BROKEN: list[tuple[dict[str, Any], AnswerSeen | str, str]] = [
    ({"contains": "54 days"}, LAMP, "the nearest is “45 days”"),
    ({"contains": "45 Days", "case": True}, LAMP, "the nearest is “45 days”"),
    ({"contains": "45 days"}, "", "the answer is empty"),
    ({"contains": "5 days"}, LAMP, "the nearest is “45 days”"),
    ({"contains": "4.90"}, "14.90", "the nearest is “14.90”"),
    ({"contains": "€4"}, "€4.90", "it says “€4.90”"),
    ({"contains_all": ["lamp", "chair"]}, LAMP, "“chair” is missing: it says “You can return a lamp within 45 days.”"),
    ({"equals": "45 days"}, LAMP, "it says “You can return a lamp within 45 days.”"),
    ({"starts_with": "lamp"}, LAMP, "it begins with “You can return a lamp within 45 days”"),
    ({"ends_with": "lamp"}, LAMP, "it ends with “can return a lamp within 45 days.”"),
    ({"regex": r"\d+ weeks"}, LAMP, "it says “You can return a lamp within 45 days.”"),
    ({"rouge_l": "It costs €4.90", "at_least": 0.1}, LAMP, "it is 0.00"),
    ({"max_words": 7}, LAMP, "it has 8 words"),
    ({"max_sentences": 1}, "It is 45 days. Refunds take five.", "it has 2 sentences"),
    ({"language": "de"}, "You can return the lamp within 45 days, and that is free of charge.", "it is in en"),
    ({"is_json": True}, LAMP, "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
    ({"json": {"properties": {"a": {"maximum": 40}}}}, '{"a": 45}', "$.a: 45 is greater than the maximum of 40"),
    ({"number": 54}, LAMP, "its numbers are 45"),
    ({"number": 45, "unit": "€"}, LAMP, "it has no numbers with € beside them"),
    ({"number": 145}, "1,450 or 14.5", "its numbers are 1,450, 14.5"),
    ({"number": 100}, "It costs 1 100", "its numbers are 1 100"),
    ({"date": "2024-03-01"}, "Since 3 January 2024.", "its dates are 3 January 2024"),
    ({"cites": "fees/post.md"}, LAMP, "it cites returns.md"),
    ({"cites_only": ["fees/post.md"]}, LAMP, "it cites returns.md"),
    ({"cites_only": ["returns.md"]}, AnswerSeen("45 days", sources=SOURCES), "it cites nothing"),
    ({"valid_citations": True}, AnswerSeen("45 days", sources=SOURCES, cited_wrongly=(7,)), "of 2 sources it cites 7"),
    ({"retrieves": "other.md"}, LAMP, "its prompt had returns.md, fees/post.md"),
    ({"context_contains": "60 days"}, LAMP, "none of its 2 sources has it"),
    ({"declines": True}, LAMP, "it says “You can return a lamp within 45 days [Source 1].”"),
    ({"answers": True}, NOT_TOLD, "it declines"),
    ({"decides": "pass"}, AnswerSeen("45 days", decision="abstain"), "it decided abstain"),
    ({"min_confidence": 0.8}, AnswerSeen("45 days", confidence=0.7), "its confidence is 0.70"),
    ({"max_ms": 90}, AnswerSeen("45 days", ms=1_234), "it took 1,234 ms"),
    ({"max_usd": 0.01}, AnswerSeen("45 days", usd=0.02), "it cost $0.020000"),
    ({"max_tokens": 9}, AnswerSeen("45 days", tokens=10), "it used 10 tokens"),
    ({"finishes": "stop"}, AnswerSeen("45 days", finish_reason="length"), "it stopped for the reason 'length'"),
]

UNCHECKED: list[tuple[dict[str, Any], AnswerSeen | str]] = [
    ({"cites": "a.md"}, NOT_TOLD),
    *(({kind: ["a.md"]}, NOT_TOLD) for kind in ("cites_any", "cites_all", "cites_only")),
    ({"cited": True}, NOT_TOLD),
    ({"retrieves": "a.md"}, NOT_TOLD),
    ({"context_contains": "a"}, NOT_TOLD),
    ({"language": "de"}, "45"),
    ({"decides": "pass"}, LAMP),
    ({"min_confidence": 0.8}, LAMP),
    ({"max_usd": 1}, LAMP),
    ({"max_tokens": 9}, LAMP),
    ({"finishes": "stop"}, LAMP),
    ({"contains": "a"}, "a" * 200_001),
]


def test_every_kind_is_tried_here() -> None:
    in_a_file_of_its_own = {"snapshot"}
    assert {next(iter(demand)) for demand, _ in KEPT} == {
        kind for kind in known_kinds() if kind_of(kind).asks == "nothing"
    } - in_a_file_of_its_own
    assert len(known_kinds()) >= 25


@pytest.mark.parametrize(("demand", "answer"), KEPT, ids=str)
def test_what_is_kept(demand: dict[str, Any], answer: AnswerSeen | str) -> None:
    assert look(demand, answer).kept is True
    assert look({"not": demand}, answer).kept is False


@pytest.mark.parametrize(("demand", "answer", "said"), BROKEN, ids=str)
def test_what_is_not_kept_and_what_stands_there(demand: dict[str, Any], answer: AnswerSeen | str, said: str) -> None:
    found = look(demand, answer)
    assert (found.kept, found.said) == (False, said)
    assert look({"not": demand}, answer).kept is True


@pytest.mark.parametrize(("demand", "answer"), UNCHECKED, ids=lambda each: str(each)[:60])
def test_what_cannot_be_checked_is_kept_in_neither_direction(demand: dict[str, Any], answer: AnswerSeen | str) -> None:
    for asked in (demand, {"not": demand}):
        found = look(asked, answer)
        assert found.kept is None
        assert found.said


@given(st.text(max_size=60), st.text(alphabet="ab \n", min_size=1, max_size=5).filter(str.strip), st.text(max_size=60))
def test_a_text_that_stands_in_an_answer_is_found_where_it_is(before: str, wanted: str, behind: str) -> None:
    found = look({"contains": wanted}, f"{before}{wanted}{behind}")
    assert found.kept
    place = f"{before}{wanted}{behind}"[found.start : found.end]
    assert without_emphasis(place).casefold().split() == wanted.split() or "[" in before + behind


@given(st.from_regex(r"[a-c]{0,30}x?[a-c]{0,30}", fullmatch=True))
def test_a_pattern_is_found_where_python_finds_one(text: str) -> None:
    found = look({"regex": "ax?b"}, text)
    assert found.kept is ("axb" in text or "ab" in text)
    assert not found.kept or text[found.start : found.end] in ("axb", "ab")


def test_a_dear_pattern_and_a_dear_schema_take_no_time() -> None:
    schema = {"properties": {"a": {"pattern": r"^(a+)+$"}}}
    with bounded(10):
        assert look({"regex": r"(a+)+$"}, "a" * 50_000 + "b").kept is False
        assert look({"json": schema}, '{"a": "' + "a" * 5_000 + 'b"}').kept is False


def test_deep_json_is_no_crash() -> None:
    assert look({"is_json": True}, "[" * 100_000).kept is False


# A JSON Schema is checked in steps whose number grows with the answer alone, and gives what jsonschema gives.

LONGEST = 200_000
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -0.0, 0.5, 1e300])
    | st.text("a1", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=8,
)


def found(schema: dict[str, Any], value: Any) -> Finding:
    return found_in(schema, json.dumps(value))


def found_in(schema: dict[str, Any], answer: str) -> Finding:
    return kind_of("json").look(AnswerSeen(answer), Expectation("json", schema))


def many(item: Any) -> list[Any]:
    """Return different items, so many that an answer is as long as one may be."""
    items = [item(n) for n in range(16_000)]
    while len(json.dumps(items)) > LONGEST:
        items = items[: len(items) * 9 // 10]
    return items


@pytest.mark.parametrize(
    "items",
    [
        many(lambda n: {"i": n}),
        many(lambda n: n if n % 2 else str(n)),
        many(lambda n: [n]),
        many(lambda n: n * (2**61 - 1)),
        many(lambda n: n + 0.5),
    ],
    ids=["objects", "mixed", "lists", "integers of one hash", "fractions"],
)
def test_as_many_items_as_an_answer_holds_are_told_apart(items: list[Any]) -> None:
    assert found({"uniqueItems": True}, items).does is True
    assert found({"uniqueItems": True}, [*items[:-1], items[0]]).does is False


@given(st.lists(values, max_size=5))
def test_items_are_unique_as_the_specification_says(items: list[Any]) -> None:
    schema = {"uniqueItems": True}
    assert found(schema, items).does is validator_for(schema)(schema).is_valid(items)


@given(st.lists(values, min_size=1, max_size=4), values)
def test_a_value_is_one_of_several_as_the_specification_says(allowed: list[Any], value: Any) -> None:
    for schema in ({"enum": allowed}, {"const": allowed[0]}):
        assert found(schema, value).does is any(
            _equal(each, value) for each in (allowed if "enum" in schema else allowed[:1])
        )


def _equal(one: Any, other: Any) -> bool:
    """Compare by the definition of JSON Schema: 1 is 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    return bool(one == other)


def _doubled(depth: int) -> dict[str, Any]:
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": {**defs, f"d{depth}": {}}, "$ref": "#/$defs/d0"}


def _nested(depth: int) -> Any:
    return {"a": _nested(depth - 1)} if depth else {}


BRANCH = [{"properties": {"a": {"$ref": "#"}}, "required": [f"x{n}"]} for n in range(3)]
COSTLY: dict[str, tuple[dict[str, Any], Any]] = {
    "references that double": (_doubled(40), 1),
    "branches of a recursion": ({"anyOf": BRANCH}, _nested(60)),
    "branches of which one may hold": ({"oneOf": BRANCH}, _nested(60)),
    "many properties of many items": (
        {"items": {"properties": {f"a{n}": {} for n in range(1_500)}}},
        [{} for _ in range(50_000)],
    ),
    "many branches of many items": (
        {"items": {"anyOf": [{"required": [f"{n}" for n in range(2_500)]}]}},
        [{}] * 50_000,
    ),
    "a list that is walked by each branch": ({"allOf": [{"items": {}}] * 1_500}, [1] * 60_000),
    "a long answer in the message of each branch": ({"anyOf": [{"type": "object"}] * 900}, ["a" * 190_000]),
    "properties that nothing names": (
        {
            "unevaluatedProperties": False,
            "patternless": 1,
            "properties": {"b": {}},
            "anyOf": [{"additionalProperties": {}}],
        },
        {f"a{n}": 1 for n in range(15_000)},
    ),
    "references that double, unevaluated": ({**_doubled(40), "unevaluatedProperties": False}, {"a": 1}),
}


@pytest.mark.parametrize(("schema", "answer"), COSTLY.values(), ids=COSTLY)
def test_what_would_take_hours_is_given_up_after_a_number_of_steps(schema: dict[str, Any], answer: Any) -> None:
    assert not kind_of("json").problem(Expectation("json", schema))
    said = found(schema, answer)
    assert said.does is not None or "steps" in said.said


def test_a_check_that_is_given_up_says_so() -> None:
    said = found(_doubled(40), 1)
    assert said.does is None
    assert said.said == (
        "the schema takes more than 100,010 steps for an answer of 1 characters. "
        "Write it with fewer branches and references"
    )


@pytest.mark.parametrize(
    ("schema", "answer"),
    [({"$ref": "#"}, 1), ({"properties": {"a": {"$ref": "#"}}}, _nested(400))],
    ids=["a schema that is itself", "an answer nested deep"],
)
def test_what_is_nested_too_deep_is_said(schema: dict[str, Any], answer: Any) -> None:
    said = found(schema, answer)
    assert (said.does, said.said) == (None, "answer and schema are nested too deep to be checked")


@pytest.mark.parametrize("number", ["1" + "0" * 4_000, "NaN", "1e999"])
def test_a_number_that_cannot_be_divided_is_a_reason(number: str) -> None:
    said = found_in({"multipleOf": 0.1}, number)
    assert said.does is None
    assert said.said.startswith("a number in it cannot be checked: ")


def test_an_ordinary_schema_of_a_long_answer_is_checked() -> None:
    item = {
        "type": "object",
        "required": ["name", "days"],
        "properties": {"name": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 0}},
        "additionalProperties": False,
    }
    schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": 1}
    items = many(lambda n: {"name": f"lamp {n}", "days": n})
    assert found(schema, items).does is True
    assert found(schema, [*items, {"name": "x", "days": -1}]).does is False


# Expectations as they are written: what is wrong with them is said before anything is asked.

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
    ([{"not": {"contains": "a"}, "contains": "b"}], "0: 'contains' is beside 'not'. Put it inside"),
    ([{"not": {"not": {"contains": "a"}}}], "0: 'not' is in 'not'. Take both away"),
    ([{"regex": "(a"}], "0: regex: '(a' is not a regular expression of a linear engine: unclosed group"),
    ([{"regex": "(?=a)b"}], "look-around, including look-ahead and look-behind, is not supported"),
    ([{"json": {"type": "objekt"}}], "0: json: no JSON Schema: 'objekt' is not valid"),
    ([{"json": {"$ref": "https://other.example/a.json"}}], "0: json: the schema has a $ref to another file"),
    ([{"json": {"patternProperties": {"a": {}}}}], "0: json: patternProperties are not looked at"),
    ([{"json": {"properties": {"a": {"pattern": "(?=a)"}}}}], "0: json: '(?=a)' is not a regular expression"),
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


# Files of rubrics: what they say, which version they are, and what is wrong with them.

TONE = """
about = "How an answer sounds"
experiments = ["e3"]
criteria = ["does not blame the customer", {text = "names the next step", weight = 2, must = true}]

[[scales]]
text = "how easily it is understood"
levels = ["not", "on a second reading", "at first reading"]
"""


def read(folder: Path, text: str, name: str = "tone") -> Rubric:
    (folder / f"{name}.toml").write_text(text)
    return read_rubrics(folder)[name]


def test_a_rubric_has_criteria_and_scales(tmp_path: Path) -> None:
    rubric = read(tmp_path, TONE)
    assert rubric.criteria == (
        Criterion("does not blame the customer"),
        Criterion("names the next step", weight=2, must=True),
        Criterion("how easily it is understood", ("not", "on a second reading", "at first reading")),
    )
    assert (rubric.experiments, rubric.about) == (("e3",), "How an answer sounds")
    assert len(rubric.asked) == 2 + 2


def test_no_folder_is_no_rubric(tmp_path: Path) -> None:
    assert read_rubrics(tmp_path / "none") == {}


def test_its_version_is_that_of_what_is_asked_and_of_nothing_else(tmp_path: Path) -> None:
    first = read(tmp_path, TONE).version
    assert 0 < first < 2**31
    same = [TONE.replace("How an answer sounds", "Sound"), TONE.replace('["e3"]', "[]"), f"# more\n{TONE}"]
    assert {read(tmp_path, each).version for each in same} == {first}
    others = [
        TONE.replace("blame", "accuse"),
        TONE.replace("weight = 2", "weight = 3"),
        TONE.replace(", must = true", ""),
        TONE.replace('"not", ', ""),
        TONE.replace('"at first reading"', '"at once"'),
    ]
    assert len({first, *(read(tmp_path, each).version for each in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about = ?", "cannot be read: .*line 1"),
        ('criterion = ["x"]', "Unknown key 'criterion'. Did you mean 'criteria'"),
        ("", "it has no criterion"),
        ('criteria = "polite"', "criteria is 'polite': a list was expected"),
        ("criteria = [1]", r"criteria\[0\]: a text was expected"),
        ('criteria = [" "]', r"criteria\[0\]: a text was expected"),
        ('criteria = [{text = "x", wieght = 2}]', r"criteria\[0\]: Unknown key 'wieght'. Did you mean 'weight'"),
        ('criteria = [{text = "x", weight = 0}]', "weight is 0. Write a number above 0"),
        ('criteria = [{text = "x", weight = -1}]', "weight is -1. Write a number above 0"),
        ('criteria = [{text = "x", weight = nan}]', "weight is nan"),
        ('criteria = [{text = "x", weight = true}]', "weight is True"),
        ('criteria = [{text = "x", must = 1}]', "must is 1. Write true or false"),
        ('criteria = ["x", "y", "x"]', "'x' is there twice"),
        (f'criteria = ["{"word " * 151}"]', "151 words; at most 150"),
        (f"criteria = {[str(n) for n in range(MOST_CRITERIA + 1)]}", f"{MOST_CRITERIA + 1} criteria; at most"),
        ('scales = [{text = "x", levels = ["a"]}]', "levels are 2 to 7 texts"),
        ('scales = [{text = "x", levels = ["a", "a"]}]', "two levels have one name"),
        ('scales = ["x"]', r"scales\[0\] is 'x': expected a table"),
        ('criteria = ["x"]\nexperiments = [3]', "experiments is"),
        ('criteria = ["x"]\nexperiments = "e3"', "a list was expected"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"tone\.toml.*{said}"):
        read(tmp_path, text)


def test_a_file_whose_name_is_no_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a rubric's name"):
        read(tmp_path, TONE, "my tone")


def test_a_name_that_is_no_rubric(tmp_path: Path) -> None:
    rubrics = {"tone": read(tmp_path, TONE)}
    with pytest.raises(SettingsError, match=re.escape("Unknown rubric 'tune'. Did you mean 'tone'?")):
        rubric_named("tune", rubrics, tmp_path)
    with pytest.raises(SettingsError, match="There is no rubric 'tune'"):
        rubric_named("tune", {}, tmp_path)
