"""Reads expectations from JSON, and says what is wrong with them before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

from rag_harness.errors import unknown
from rag_harness.expectations.kind import ExpectationKind
from rag_harness.registry import registered, resolve
from rag_harness.types import Expectation

GROUP = "expectations"
MOST_EXPECTED = 100
"""The most expectations of a case."""
_LONGEST = 20_000
"""The most characters of one expectation, as JSON."""
_BESIDE = ("weight", "must")


def known_kinds() -> list[str]:
    """Return the registered kinds."""
    return sorted(registered(GROUP))


@cache
def kind_of(name: str) -> ExpectationKind:
    """Return the kind of a registered name."""
    made: ExpectationKind = resolve(GROUP, name)()
    return made


def tells_by_words(expectation: Expectation) -> bool:
    """Whether an expectation is about the words alone, so that a right answer written by a person keeps to it, too."""
    return kind_of(expectation.kind).of_words


def needs_model(expectation: Expectation) -> bool:
    """Whether a judge or an embedder has to be asked about an expectation: its row alone does not tell."""
    return kind_of(expectation.kind).asks != "nothing"


def expectations_of(raw: object) -> tuple[tuple[Expectation, ...], list[str]]:
    """Return the expectations that ``raw`` lists, and what is wrong with it, a sentence each.

    Args:
        raw: a list of objects: the kind with what is wanted, or ``not`` with such an object; ``weight`` and ``must``.
    """
    if not isinstance(raw, list):
        return (), [f'a list of objects was expected, e.g. [{{"contains": "45 days"}}]; found {_short(raw)}']
    if len(raw) > MOST_EXPECTED:
        return (), [f"{len(raw):,} expectations; a case may have {MOST_EXPECTED}"]
    found: list[Expectation] = []
    problems: list[str] = []
    for number, each in enumerate(raw):
        read = _one(each)
        if isinstance(read, str):
            problems.append(f"{number}: {read}")
        else:
            found.append(read)
    return tuple(found), problems + ([] if problems else [*contradictions(found)])


def as_json(expectation: Expectation) -> dict[str, Any]:
    """Return the object that states an expectation."""
    demand: dict[str, Any] = {expectation.kind: expectation.wanted, **expectation.options}
    said: dict[str, Any] = {"not": demand} if expectation.negated else demand
    weight = {"weight": expectation.weight} if expectation.weight != 1 else {}
    return {**said, **weight, **({"must": True} if expectation.must else {})}


def _one(raw: object) -> Expectation | str:
    if not isinstance(raw, dict):
        return f'an object was expected, e.g. {{"contains": "45 days"}}; found {_short(raw)}'
    if len(json.dumps(raw, default=str)) > _LONGEST:
        return f"longer than {_LONGEST:,} characters. Shorten it, or make several of it"
    beside = {name: raw[name] for name in _BESIDE if name in raw}
    demand = {name: value for name, value in raw.items() if name not in _BESIDE}
    negated = "not" in demand
    if negated:
        inner, more = demand.pop("not"), list(demand)
        if more:
            return f"{more[0]!r} stands beside 'not'. Put it inside"
        if not isinstance(inner, dict):
            return f'\'not\' takes an object, e.g. {{"not": {{"contains": "refund"}}}}; found {_short(inner)}'
        demand = inner
    return _beside(beside) or _demand(demand, negated, beside)


def _beside(beside: Mapping[str, Any]) -> str:
    weight, must = beside.get("weight", 1), beside.get("must", False)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        return f"weight is {_short(weight)}. Write a number above 0"
    return "" if isinstance(must, bool) else f"must is {_short(must)}. Write true or false"


def _demand(demand: Mapping[str, Any], negated: bool, beside: Mapping[str, Any]) -> Expectation | str:
    named = [name for name in demand if name in registered(GROUP)]
    if len(named) > 1:
        return f"two kinds in one object, {named[0]} and {named[1]}. Make two of it"
    if not named:
        other = next(iter(demand), "")
        return unknown("kind of expectation", other, known_kinds()).rstrip(".") if demand else "it names no kind"
    name = named[0]
    kind, options = kind_of(name), {key: value for key, value in demand.items() if key != name}
    for key, value in options.items():
        if key not in kind.options:
            takes = f"It takes {', '.join(kind.options)}" if kind.options else "It takes no options"
            return f"{name}: unknown option {key!r}. {takes}"
        if isinstance(value, bool) != (kind.options[key] is bool) or not isinstance(value, kind.options[key]):
            return f"{name}: {key} is {_short(value)}"
    weight, must = float(beside.get("weight", 1)), bool(beside.get("must", False))
    read = Expectation(name, demand[name], options, negated, weight, must)
    problem = kind.problem(read)
    return f"{name}: {problem}" if problem else read


_LIMITS = (("max_words", "min_words"), ("max_chars", "min_chars"))


def contradictions(found: Sequence[Expectation]) -> Iterator[str]:
    """Yield pairs that no answer can keep to at once."""
    ways: dict[str, set[bool]] = {}
    for each in found:
        demand = json.dumps([each.kind, each.wanted, dict(each.options)], sort_keys=True)
        seen = ways.setdefault(demand, set())
        if seen == {not each.negated}:
            yield f"{each.kind} is demanded and forbidden at once: {_short(each.wanted)}"
        seen.add(each.negated)
    plain = {each.kind: each.wanted for each in found if not each.negated}
    if "declines" in plain and "answers" in plain:
        yield "declines and answers are demanded at once"
    for most, least in _LIMITS:
        if most in plain and least in plain and plain[most] < plain[least]:
            yield f"{most} {plain[most]} is less than {least} {plain[least]}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"
