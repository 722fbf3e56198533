"""Long answers: every rule of the diagnosis that looks at one. They run where the run ends, and nobody ends them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.diagnosis.gold import GoldIndex, contradiction, gold_facts, may_contradict
from rag_harness.diagnosis.truncation import EndingHabits, cut_off
from rag_harness.evaluation.measures.correctness import rightness
from tests.effort import check_growth
from tests.long_answers import LONG_ANSWERS, WORST
from tests.unit.rows import make_row

DAYS = "You may return the tent within 33 days, not 34 or 35. Or 12, or €9.90, or 5."
CASE = Case(
    Query("q1", "How long?"),
    ground_truth="Zebras sleep 44 days under umbrellas, for €9.",
    qrels={"returns.md": 1},
    evidence=(Evidence("returns.md", DAYS),),
)
OTHER = Case(Query("q2", "Where?"), ground_truth="In the shop, within 45 days.", qrels={"shops.md": 1})
RULES: dict[str, Callable[[str], object]] = {
    "right": lambda text: rightness(CASE, text, False),
    "declines": declines,
    "may contradict": lambda text: may_contradict("How long?", CASE.ground_truth, text),
    "contradiction": lambda text: contradiction(CASE, text, [DAYS]),
    "gold": lambda text: gold_facts(CASE, make_row(llm_answer=text), None),
    "another's gold": lambda text: GoldIndex([CASE, OTHER]).other(CASE, text, rightness(CASE, text, False)),
    "cut off": lambda text: cut_off(make_row(llm_answer=text), [CASE.ground_truth, DAYS], EndingHabits()),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", WORST)
def test_a_rule_takes_time_as_the_answer_is_long(rule: str, name: str) -> None:
    check_growth(RULES[rule], LONG_ANSWERS[name][:50_000])


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_a_rule_takes_time_as_the_longest_answer_is_long(rule: str, name: str) -> None:
    check_growth(RULES[rule], LONG_ANSWERS[name])
