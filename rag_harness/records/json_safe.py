"""Values that JSON can hold, so that no row is lost to one bad character."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema, from_json

from rag_harness.core import json_text


def storable(value: Any) -> Any:
    """Return ``value`` in a form that JSON can hold.

    Lone surrogates, which some models send, become U+FFFD. NaN and infinity become null. A value of a type that JSON
    does not have becomes its ``str``.
    """
    if isinstance(value, str):
        return value if _has_whole_characters(value) else whole_characters(value)
    if isinstance(value, dict | Mapping):  # dict first: to ask an abstract class takes three times as long
        return {storable(str(key)): storable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, int) else storable(str(value))


def _has_whole_characters(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_characters(text: str) -> str:
    """Return a text with lone surrogates: two that belong together are one character, others U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_json(line: bytes | str) -> Any:
    """Parse a line. Lines of older releases may contain lone surrogates: a slower parser reads them.

    Raises:
        ValueError: the line is not JSON.
    """
    try:
        return from_json(line)
    except ValueError:
        return json_text.read_json(line)


def _text(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


class _OfPythonAlone:
    """Has only Python's values changed: pydantic's parser refuses JSON with lone surrogates before any validator."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        python = core_schema.no_info_before_validator_function(_text, text)
        return core_schema.json_or_python_schema(text, python)


class AsItIs:
    """Has a value of Python's taken as it is, not copied, where ``is_right`` says so; any other is validated."""

    def __init__(self, is_right: Callable[[Any], bool]) -> None:
        self._is_right = is_right

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        checked = handler(source)
        python = core_schema.no_info_wrap_validator_function(self._taken, checked)
        return core_schema.json_or_python_schema(checked, python)

    def _taken(self, value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Any:
        return value if self._is_right(value) else check(value)


def has_finite_floats(value: Any) -> bool:
    """Return whether ``value`` is a dict of finite floats by plain names."""
    if type(value) is not dict:
        return False
    names_are_plain = all(type(name) is str and name.isascii() for name in value)
    return names_are_plain and all(type(each) is float and isfinite(each) for each in value.values())


StorableText = Annotated[str, _OfPythonAlone()]
Metadata = Annotated[dict[str, Any], BeforeValidator(storable)]
