"""Whether a goal was reached by a turn: by what its answer keeps, and by what earlier answers have kept."""

from __future__ import annotations

from rag_harness.core.types import Case, Expectation, Query, Scenario
from rag_harness.evaluation.measures.expectations import GoalReached
from tests.unit.rows import make_row

GOAL = Case(
    Query("s#2", "?"), scenario=Scenario("hi", reached=(Expectation("contains", "a"), Expectation("contains", "b")))
)


def reached(answer: str, *kept: int) -> tuple[float | None, str]:
    user = {"name": "user", "ms": 0, "detail": {"by": "x", "kept": list(kept)}}
    score = GoalReached().score(GOAL, make_row(llm_answer=answer, user=user))
    return score.value, score.reason


def test_each_of_it_is_kept_by_some_answer() -> None:
    assert reached("a and b") == (1.0, "")
    assert reached("b", 0) == (1.0, "")
    assert reached("b", 0, 1) == (1.0, "")
    assert reached("b") == (0.0, "no answer has kept contains “a”")
    assert reached("") == (0.0, "no answer has kept contains “a”; contains “b”")


def test_it_applies_where_a_scenario_says_when_its_goal_is_reached() -> None:
    assert GoalReached().applies(GOAL) == ""
    assert GoalReached().applies(Case(Query("q", "?"))) == "no simulated user asks it"
    assert (
        GoalReached().applies(Case(Query("s#1", "?"), scenario=Scenario("hi"))).startswith("its scenario does not say")
    )


def test_a_row_without_a_user_has_its_own_answer_alone() -> None:
    assert GoalReached().score(GOAL, make_row(llm_answer="a b")).value == 1.0
