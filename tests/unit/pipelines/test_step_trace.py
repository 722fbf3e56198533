"""What an agent does becomes steps, in their order, and what the harness gives in place of a search is used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rag_harness.core.types import Answer, Chunk, Completion, Hit, Message, PipelineOutput, Usage
from rag_harness.pipelines.trace import GivenSearches, StepTrace, giving

PAGES = {"lamp": ["returns.md#0", "lamps.md#0"], "refund": ["returns.md#0", "refunds.md#0"], "moon": []}


def hits(*ids: str) -> list[Hit]:
    return [Hit(Chunk(each, each.partition("#")[0], each), 1.0, n) for n, each in enumerate(ids, 1)]


def look_up(query: str, k: int) -> list[Hit]:
    return hits(*PAGES[query][:k])


class Says:
    """A model that says one thing."""

    model = "scripted"

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        return Completion("45 days", self.model, Usage(10, 2, 1), 7.0)


async def an_agent() -> PipelineOutput:
    with StepTrace() as trace:
        await trace.search(look_up, "lamp", 5)
        found = await trace.search(look_up, "refund", 5, pages=["refunds.md"])
        price = await trace.tool("price", lambda sku: {"eur": len(sku)}, sku="T-18")
        trace.context = found
        said = await trace.complete(Says(), [Message("user", str(price))])
        return trace.output(Answer(said.text))


def test_each_search_and_each_tool_is_a_step_with_what_went_in_and_came_out() -> None:
    output = asyncio.run(an_agent())
    told = [(step.name, step.kind, step.input, step.output) for step in output.stages]
    assert told == [
        ("search", "retrieve", "lamp", None),
        ("search", "retrieve", {"query": "refund", "pages": ["refunds.md"]}, None),
        ("price", "tool", {"sku": "T-18"}, {"eur": 4}),
        ("generate", "generate", None, None),
    ]
    assert [[hit.chunk.chunk_id for hit in step.hits] for step in output.stages[:2]] == [PAGES["lamp"], PAGES["refund"]]
    assert (output.stages[3].ms, output.usage.calls, output.model) == (7.0, 1, "scripted")


def test_what_is_retrieved_is_the_union_in_the_order_in_which_it_was_found() -> None:
    output = asyncio.run(an_agent())
    assert [hit.chunk.chunk_id for hit in output.retrieved] == ["returns.md#0", "lamps.md#0", "refunds.md#0"]
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]


def test_given_hits_are_used_in_place_of_the_search_of_their_number() -> None:
    gold = tuple(hits("gold.md#0"))

    async def run() -> PipelineOutput:
        with giving(GivenSearches({2: gold})):
            return await an_agent()

    first, second, *_ = asyncio.run(run()).stages
    assert [hit.chunk.chunk_id for hit in first.hits] == PAGES["lamp"]
    assert (second.hits, second.detail["given"], "given" in first.detail) == (gold, True, False)
    # Outside of the block every search is made.
    assert not any("given" in step.detail for step in asyncio.run(an_agent()).stages)


def test_after_the_last_search_nothing_is_found() -> None:
    async def run() -> PipelineOutput:
        with giving(GivenSearches(last=1)):
            return await an_agent()

    first, second, *_ = asyncio.run(run()).stages
    assert (len(first.hits), second.hits) == (2, ())


def test_a_step_inside_a_step_counts_its_time_once() -> None:
    async def run() -> StepTrace:
        trace = StepTrace()
        with trace.step("plan", "decide"):
            await trace.tool("wait", asyncio.sleep, delay=0.05)
        return trace

    plan, wait = asyncio.run(run()).steps
    assert wait.ms >= 45
    assert plan.ms < 40


def test_an_error_stands_in_its_step_and_carries_how_far_the_trial_came() -> None:
    def breaks() -> None:
        raise OSError("no such page")

    async def run() -> None:
        with StepTrace() as trace:
            await trace.search(look_up, "lamp", 1)
            await trace.tool("page", breaks)

    with pytest.raises(OSError, match="no such page") as caught:
        asyncio.run(run())
    trace = caught.value.rag_trace  # type: ignore[attr-defined]
    assert trace.failed_stage == "page"
    assert trace.steps[1].detail == {"error": "OSError: no such page"}


def test_an_error_between_steps_carries_the_trace_too() -> None:
    async def run() -> None:
        with StepTrace() as trace:
            await trace.search(look_up, "moon", 1)
            raise ValueError("nothing was found")

    with pytest.raises(ValueError, match="nothing") as caught:
        asyncio.run(run())
    assert [step.input for step in caught.value.rag_trace.steps] == ["moon"]  # type: ignore[attr-defined]


def test_steps_at_once_keep_their_own_hits() -> None:
    async def run() -> StepTrace:
        trace = StepTrace()
        await asyncio.gather(trace.search(look_up, "lamp", 1), trace.search(look_up, "refund", 2))
        return trace

    trace = asyncio.run(run())
    assert [(step.detail["search"], step.input, len(step.hits)) for step in trace.steps] == [
        (1, "lamp", 1),
        (2, "refund", 2),
    ]


def test_a_note_goes_to_the_last_step_of_its_name() -> None:
    trace = StepTrace()
    for query in ("a", "b"):
        with trace.step("search", "retrieve", query):
            pass
    trace.note("search", fused=True)
    trace.note("plan", parts=2)
    assert [(step.name, step.detail) for step in trace.steps] == [
        ("search", {}),
        ("search", {"fused": True}),
        ("plan", {"parts": 2}),
    ]
