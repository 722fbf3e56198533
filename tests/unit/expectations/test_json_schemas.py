"""A JSON Schema is checked in steps whose number grows with the answer alone, and gives what jsonschema gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from rag_harness.core.types import Expectation
from rag_harness.records.expectations import AnswerSeen, Finding, kind_of

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
