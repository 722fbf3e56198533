"""Criteria that ask whether an answer states a fact, for a judge that only says which statements a text supports.

What else a criterion may ask of an answer, its tone or its form, such a judge cannot tell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rag_harness.expectations.facts import fact_of
from rag_harness.measures.judged import Judge, JudgeQuestion, Material
from rag_harness.measures.judged.criteria import MEETS_FROM, CriterionVerdict

NO_FACT = 'this judge tells only whether an answer states a fact: write "says that …", or name a judge with an LLM'


async def met_by_facts(
    judge: Judge, material: Material, criteria: Sequence[str], asks: Collection[JudgeQuestion]
) -> list[CriterionVerdict]:
    """Return the verdict on each criterion, by which facts the answer supports.

    Raises:
        RagHarnessError: the judge failed.
    """
    return [await _met(judge, material, each, asks) for each in criteria]


async def _met(judge: Judge, material: Material, criterion: str, asks: Collection[JudgeQuestion]) -> CriterionVerdict:
    found = fact_of(criterion)
    if found is None:
        return CriterionVerdict(criterion, None, reason=NO_FACT)
    fact, absent = found
    said = await judge.opinion(replace(material, quotes=(fact,)), asks).supported("nuggets", "answer")
    missing = next((each for each in said.each if each.value is None), None)
    if missing or not said.each:
        return CriterionVerdict(criterion, None, reason=missing.reason if missing else "the fact has no words")
    # A fact of several sentences is stated where each of them is.
    value = min(each.value for each in said.each if each.value is not None)
    why = said.each[0].reason or ("the answer says so" if value >= MEETS_FROM else "the answer does not say so")
    return CriterionVerdict(criterion, round(1 - value, 6) if absent else value, reason=why)
