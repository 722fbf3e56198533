"""A regular expression, by an engine whose time is linear in the text: that of pydantic, Rust's ``regex``.

Python's own engine can take hours for an answer of some hundred characters, and cannot be stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from pydantic_core import SchemaError, SchemaValidator, core_schema

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import text_problem
from rag_harness.expectations.kinds.text import instead
from rag_harness.types import Expectation


@lru_cache(maxsize=1024)
def _validator(pattern: str, case: bool) -> SchemaValidator:
    flags = "" if case else "(?i)"
    return SchemaValidator(core_schema.str_schema(pattern=flags + pattern, regex_engine="rust-regex"))


def _is_in(made: SchemaValidator, text: str) -> bool:
    return bool(made.isinstance_python(text))


def matches(pattern: str, text: str, case: bool) -> bool:
    """Return whether a pattern matches somewhere in a text."""
    return _is_in(_validator(pattern, case), text)


def pattern_problem(pattern: str, case: bool = True) -> str:
    """Return why a pattern cannot be used; empty where it can."""
    try:
        _validator(pattern, case)
    except SchemaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = next((line for line in reversed(lines) if line.startswith("error:")), lines[-1])
        return f"{pattern!r:.60} is no regular expression of a linear engine: {why.removeprefix('error: ')}"
    return ""


class Regex(ExpectationKind):
    """The regular expression matches somewhere in the answer. It knows neither look-around nor back-references."""

    of_words = True
    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted) or pattern_problem(demand.wanted, bool(demand.options.get("case")))

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        made, text = _validator(demand.wanted, bool(demand.options.get("case"))), answer.words
        if not _is_in(made, text):
            return Finding(False, instead(answer, demand.wanted))
        start, end = _place(made, text)
        return Finding(True, f"it says “{text[start:end][:160]}”", start, end)


def _place(made: SchemaValidator, text: str) -> tuple[int, int]:
    """Return a place of a match. The engine only tells whether there is one, so ends are found by halving.

    A pattern with an anchor can match the whole text and none of its parts. Then the place is the text.
    """
    end = _least(len(text), lambda length: _is_in(made, text[:length]))
    start = len(text[:end]) - _least(end, lambda length: _is_in(made, text[end - length : end]))
    return (start, end) if start < end and _is_in(made, text[start:end]) else (0, len(text))


def _least(most: int, holds: Any) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
