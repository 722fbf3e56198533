"""Expectations of one answer that no answer can keep at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.types import Expectation

_LIMITS = (("max_words", "min_words"), ("max_chars", "min_chars"))
_SINGLE = ("equals", "language", "decides", "finishes")
"""Kinds of which an answer has one value."""


def contradictions(expected: Sequence[Expectation]) -> Iterator[str]:
    """Yield pairs that no answer can keep at once."""
    yield from _both_ways(expected)
    plain: dict[str, list[Any]] = defaultdict(list)
    for each in expected:
        if not each.negated:
            plain[each.kind].append(each.wanted)
    if "declines" in plain and "answers" in plain:
        yield "declines and answers are demanded at once"
    for most, least in _LIMITS:
        if most in plain and least in plain and min(plain[most]) < max(plain[least]):
            yield f"{most} {min(plain[most])} is less than {least} {max(plain[least])}"
    yield from _of_one_value(plain)


def _both_ways(expected: Sequence[Expectation]) -> Iterator[str]:
    ways: dict[str, set[bool]] = {}
    for each in expected:
        demand = json.dumps([each.kind, each.wanted, dict(each.options)], sort_keys=True)
        seen = ways.setdefault(demand, set())
        if seen == {not each.negated}:
            yield f"{each.kind} is demanded and forbidden at once: {in_short(each.wanted)}"
        seen.add(each.negated)


def _of_one_value(plain: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for kind in _SINGLE:
        values = {" ".join(str(wanted).casefold().split()): wanted for wanted in plain.get(kind, ())}
        if len(values) > 1:
            first, second, *_ = map(in_short, values.values())
            yield f"{kind} is demanded as {first} and as {second}"


def in_short(value: object) -> str:
    """Return a value as JSON for a message, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"
