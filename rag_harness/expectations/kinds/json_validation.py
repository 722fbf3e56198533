"""Checks JSON against a JSON Schema in a number of steps that grows with the answer alone.

jsonschema compares each item with each other for ``uniqueItems``, and follows each reference of each branch, so that a
schema of some lines can double its work with each level. Here values are compared by their text, and steps are counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_harness.errors import RagHarnessError
from rag_harness.expectations.kinds.pattern import matches

if TYPE_CHECKING:
    from jsonschema import ValidationError

_LEAST_STEPS = 100_000
"""Steps that every answer may take."""
_STEPS_A_CHARACTER = 10
"""Steps that it may take beside that, for each character. An item of 12 characters with eight keywords takes 20."""
_CHARACTERS_A_STEP = 64
"""Characters of a message, or of an answer in it, that take as long as a step."""
_STEPS_A_PART = 5
"""Steps that it takes to look at a part of a list or an object: each is checked against a schema of its own."""
_WALKING = ("items", "additionalItems", "contains", "propertyNames", "additionalProperties")
"""Keywords that look at each part of a list or an object."""
_SEARCHING = ("unevaluatedItems", "unevaluatedProperties")
"""Keywords that look each part up in a list of those that are known."""
_Keyword: TypeAlias = "Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]"


class TooManyStepsError(RagHarnessError):
    """A schema takes too many steps for an answer."""


def first_error(schema: Mapping[str, Any], value: Any, characters: int) -> ValidationError | None:
    """Return the first thing that a schema does not allow in a value; None where it allows it.

    Args:
        schema: a JSON Schema whose patterns the linear engine takes.
        value: what was read from JSON.
        characters: how long the JSON is. The limit of the steps grows with it.

    Raises:
        TooManyStepsError: there are more steps than the limit.
        RecursionError: schema or value is nested too deep.
    """
    from jsonschema.validators import extend, validator_for

    plain, steps = validator_for(schema), _Steps(characters)
    comparing = _Comparing(steps)
    compared: dict[str, _Keyword] = {
        "pattern": _pattern,
        "uniqueItems": comparing.unique_items,
        "enum": comparing.enum,
        "const": comparing.const,
    }
    keywords = {**plain.VALIDATORS, **{name: each for name, each in compared.items() if name in plain.VALIDATORS}}
    counted = extend(plain, {name: steps.counted(name, keyword) for name, keyword in keywords.items()})
    return next(iter(counted(schema).iter_errors(value)), None)


class _Steps:
    """The steps of one check."""

    def __init__(self, characters: int) -> None:
        self._characters, self._most = characters, _LEAST_STEPS + _STEPS_A_CHARACTER * characters
        self._left = self._most

    def take(self, number: int) -> None:
        """Count steps.

        Raises:
            TooManyStepsError: none are left.
        """
        self._left -= number
        if self._left < 0:
            raise TooManyStepsError(
                f"the schema takes more than {self._most:,} steps for an answer of {self._characters:,} characters. "
                f"Write it with fewer branches and references"
            )

    def counted(self, name: str, keyword: _Keyword) -> _Keyword:
        """Return a keyword that counts its steps: the parts of its value, those that it walks, what it says."""

        def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
            self.take(1 + _parts(wanted) + _walked(name, value))
            for error in keyword(validator, wanted, value, schema) or ():
                self.take(1 + len(error.message) // _CHARACTERS_A_STEP)
                yield error

        return check


def _parts(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _walked(keyword: str, value: Any) -> int:
    parts = _STEPS_A_PART * _parts(value)
    if keyword in _SEARCHING:
        return parts + _parts(value) ** 2 // _CHARACTERS_A_STEP
    return parts if keyword in _WALKING else 0


def _pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not matches(wanted, value, case=True):
        yield ValidationError(f"{value!r:.80} does not match {wanted!r}")


class _Comparing:
    """The keywords that compare values: 1 is 1.0, true is not 1, and the order of an object's fields does not count.

    Values are compared by a text: texts have a hash that no answer can be made for.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._allowed: dict[int, frozenset[str]] = {}

    def unique_items(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        if wanted and isinstance(value, list):
            seen: set[str] = set()
            for place, item in enumerate(value):
                text = self._text(item)
                if text in seen:
                    yield ValidationError(f"item {place} stands there twice: {text:.80}")
                    return
                seen.add(text)

    def enum(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        # The list is part of the schema, so no other one has its identity during the check.
        if id(wanted) not in self._allowed:
            self._allowed[id(wanted)] = frozenset(map(self._text, wanted))
        if self._text(value) not in self._allowed[id(wanted)]:
            yield ValidationError(f"{value!r:.80} is not one of {wanted!r:.160}")

    def const(self, _: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema import ValidationError

        if self._text(value) != self._text(wanted):
            yield ValidationError(f"{value!r:.80} is not {wanted!r:.160}")

    def _text(self, value: Any) -> str:
        if isinstance(value, list):
            text = f"[{','.join(map(self._text, value))}]"
        elif isinstance(value, dict):
            text = f"{{{','.join(sorted(f'{json.dumps(name)}:{self._text(each)}' for name, each in value.items()))}}}"
        elif isinstance(value, float) and isfinite(value) and value.is_integer():
            text = hex(int(value))
        else:
            text = hex(value) if type(value) is int else json.dumps(value)
        self._steps.take(1 + len(text) // _CHARACTERS_A_STEP)
        return text
