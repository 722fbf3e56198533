"""Kinds that need a model: a criterion in words, for a judge, and a text that the answer resembles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rag_harness.expectations.kind import AnswerSeen, AsksFor, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import text_problem
from rag_harness.types import Expectation

WORDS_OF_DEMAND = 150
"""The most words of a criterion, and of a text that an answer resembles."""


class Rubric(ExpectationKind):
    """Meets the criterion, as a judge finds."""

    asks: ClassVar[AsksFor] = "criterion"

    def problem(self, demand: Expectation) -> str:
        return words_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(None, "no judge was asked")


class Similar(ExpectationKind):
    """Resembles the text: the cosine of their vectors is ``at_least`` so much."""

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"at_least": (int, float)}
    asks: ClassVar[AsksFor] = "similarity"

    def problem(self, demand: Expectation) -> str:
        at_least = demand.options.get("at_least")
        if at_least is None or not 0 < at_least <= 1:
            return f"at_least is {at_least}. Write a number above 0 and up to 1: cosines differ between embedders"
        return words_problem(demand.wanted, "A long text resembles many")

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(None, "no embedder was asked")


def words_problem(text: object, why: str = "A rubric is one criterion") -> str:
    """Return what is wrong with a text of few words; empty where nothing is."""
    if problem := text_problem(text):
        return problem
    count = len(str(text).split())
    if count <= WORDS_OF_DEMAND:
        return ""
    return f"{count:,} words; at most {WORDS_OF_DEMAND}. {why}: shorten it, or make several"
