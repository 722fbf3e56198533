"""Money: never more than the budget, and nothing refused that could still fit."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import BudgetError
from rag_harness.models.throttling import Budget
from tests.unit.virtual_time import run

_usd = st.floats(0, 1, allow_nan=False)


async def _spend(budget: Budget, calls: list[tuple[float, float, bool]]) -> list[str]:
    async def one(reserved: float, part: float, cancel: bool) -> str:
        waiting = asyncio.ensure_future(budget.reserve(reserved))
        await asyncio.sleep(part)
        if cancel and not waiting.done():
            waiting.cancel()
        try:
            await waiting
        except BudgetError:
            return "refused"
        except asyncio.CancelledError:
            return "cancelled"
        await asyncio.sleep(reserved + part)
        budget.settle(reserved, reserved * part)
        return "called"

    return await asyncio.gather(*(one(*call) for call in calls))


@settings(max_examples=120)
@given(st.floats(0.01, 3), st.lists(st.tuples(_usd, _usd, st.booleans()), max_size=20))
def test_what_is_spent_never_passes_the_budget(limit: float, calls: list[tuple[float, float, bool]]) -> None:
    budget = Budget(limit)
    ends = run(_spend(budget, calls))  # whoever is forgotten in line is a deadlock, which the loop reports
    cost = sum(reserved * part for (reserved, part, _), end in zip(calls, ends, strict=True) if end == "called")
    assert budget.spent <= limit + 1e-9
    assert budget.spent == pytest.approx(cost, abs=1e-9)
    for (reserved, _, _), end in zip(calls, ends, strict=True):
        # What was spent only grows: a call was refused for good only if it does not fit into what is left at the end.
        assert end != "refused" or budget.spent + reserved > limit - 1e-9


def test_a_call_waits_for_those_that_may_turn_out_cheaper() -> None:
    async def spend() -> float:
        budget = Budget(1.0)
        await budget.reserve(0.9)
        waiting = asyncio.ensure_future(budget.reserve(0.5))
        await asyncio.sleep(1)
        assert not waiting.done()
        budget.settle(0.9, 0.2)
        await waiting
        budget.settle(0.5, 0.5)
        return budget.spent

    assert run(spend()) == pytest.approx(0.7)


def test_a_call_that_can_never_fit_is_refused_at_once() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.9)
        budget.settle(0.9, 0.9)
        with pytest.raises(BudgetError, match=r"up to 0\.200000 USD, and 0\.900000 of 1\.000000 USD are spent"):
            await budget.reserve(0.2)
        await budget.reserve(0.1)

    run(spend())


def test_a_failed_call_costs_nothing() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        for _ in range(5):
            await budget.reserve(1.0)
            budget.settle(1.0, 0.0)
        assert budget.spent == 0

    run(spend())


def test_cancelled_in_the_breath_that_admits_it() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        await budget.reserve(1.0)
        gone = asyncio.ensure_future(budget.reserve(1.0))
        await asyncio.sleep(0)
        budget.settle(1.0, 0.0)
        gone.cancel()
        await asyncio.wait([gone])
        await budget.reserve(1.0)

    run(spend())
