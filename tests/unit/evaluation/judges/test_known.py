"""A verdict on a chunk is asked for once: by experiments at once, one after the other, and by later runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.fused import FusedJudge, create
from rag_harness.evaluation.measures.opinion import Usefulness
from rag_harness.models.array_store import ArrayStore
from tests.unit import virtual_time
from tests.unit.evaluation.judges.rows import OPENING, REFUNDS, RETURNS, ROW
from tests.unit.evaluation.judges.scripted import Chat, Parts, as_parts

E3 = replace(ROW, contexts=(RETURNS, OPENING))
E4 = replace(ROW, contexts=(REFUNDS, OPENING, RETURNS, REFUNDS))


async def useful(judge: FusedJudge, *rows: Any) -> list[Sequence[Usefulness]]:
    return await asyncio.gather(*(judge.opinion(row, ["usefulness"]).usefulness() for row in rows))


def values(said: Sequence[Usefulness]) -> list[float | None]:
    return [each.value for each in said]


def test_two_experiments_at_once_ask_about_each_chunk_once() -> None:
    chat = Chat(seconds=1.0)
    e3, e4 = virtual_time.run(useful(create(as_parts(Parts(chat))), E3, E4))
    assert [asked.numbered("passage") for asked in chat.asked] == [[RETURNS, OPENING], [REFUNDS]]
    assert (values(e3), values(e4)) == ([1.0, 0.0], [1.0, 0.0, 1.0, 1.0])


def test_a_later_run_asks_about_none_and_another_question_about_all(tmp_path: Path) -> None:
    stores = [ArrayStore([], tmp_path) for _ in range(3)]
    first, later, other = Chat(), Chat(), Chat()
    asyncio.run(useful(create(as_parts(Parts(first, kept=stores[0]))), E4))
    stores[0].flush()
    found = asyncio.run(useful(create(as_parts(Parts(later, kept=stores[1]))), E3))
    asyncio.run(useful(create(as_parts(Parts(other, kept=stores[2]))), replace(E3, question="When?")))
    assert (len(first.asked), len(later.asked), len(other.asked)) == (1, 0, 1)
    assert values(found[0]) == [1.0, 0.0]


@pytest.mark.parametrize("change", [{"question": "When?"}, {"ground_truth": REFUNDS}, {"contexts": (f"{RETURNS} ",)}])
def test_what_belongs_to_the_key(change: dict[str, Any]) -> None:
    chat = Chat()
    judge = create(as_parts(Parts(chat)))
    asyncio.run(useful(judge, replace(E3, contexts=(RETURNS,))))
    asyncio.run(useful(judge, replace(E3, **{"contexts": (RETURNS,), **change})))
    assert len(chat.asked) == 2


def test_verdicts_belong_to_one_model_and_its_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_harness.evaluation.judges import client as judge_chat

    parts = Parts()
    asyncio.run(useful(create(as_parts(parts)), E3))
    monkeypatch.setattr(judge_chat, "prompt", lambda name: f"another {name}")
    asyncio.run(useful(create(as_parts(parts)), E3))
    (kind, model, revision), (_, _, other) = parts.opened
    assert (kind, model) == ("judged", "scripted/judge")
    assert revision != other


@pytest.mark.parametrize(("mode", "asked_later"), [("record", 0), ("live", 1)])
def test_a_verdict_that_could_not_be_had_stays_so_in_a_run_and_in_a_recording(mode: str, asked_later: int) -> None:
    kept = ArrayStore([])
    chat = Chat(useful=[{"verdicts": []}] * 2)
    settings = Settings(mode=mode)
    judge = create(as_parts(Parts(chat, settings, kept=kept)))
    found = asyncio.run(useful(judge, E3, E3)) + asyncio.run(useful(judge, E3))
    assert {each.reason for said in found for each in said} == {"the judge gave no verdict for it"}
    assert len(chat.asked) == 2
    assert values(asyncio.run(useful(judge, E4))[0]) == [1.0, None, None, 1.0]
    assert chat.asked[-1].numbered("passage") == [REFUNDS]
    later = Chat()
    again = asyncio.run(useful(create(as_parts(Parts(later, settings, kept=kept))), E3))
    assert len(later.asked) == asked_later
    assert values(again[0]) == ([None, None] if mode == "record" else [1.0, 0.0])
    assert mode == "live" or again[0][0].reason == "the judge gave no verdict for it"


def test_who_waits_for_a_call_that_fails_hears_of_it_and_the_next_asks_again() -> None:
    chat = Chat(seconds=1.0, useful=[ModelCallError("down")])
    judge = create(as_parts(Parts(chat)))

    async def judged() -> tuple[list[Any], list[Any]]:
        opinions = [judge.opinion(E3, ["usefulness"]).usefulness() for _ in range(2)]
        failed = await asyncio.gather(*opinions, return_exceptions=True)
        return failed, await useful(judge, E3)

    failed, found = virtual_time.run(judged())
    assert [str(error) for error in failed] == ["down", "down"]
    assert values(found[0]) == [1.0, 0.0]


def test_a_row_that_is_cancelled_does_not_take_the_call_from_others() -> None:
    chat = Chat(seconds=1.0)
    judge = create(as_parts(Parts(chat)))

    async def judged() -> list[Sequence[Usefulness]]:
        first = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert values(virtual_time.run(judged())[0]) == [1.0, 0.0]
    assert len(chat.asked) == 1


def test_waiting_for_another_rows_call_is_not_ones_own_time() -> None:
    from rag_harness.core.concurrency import Deadline

    chat = Chat(seconds=5.0)
    judge = create(as_parts(Parts(chat)))

    async def judged() -> list[Sequence[Usefulness]]:
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(1.0)
        found = await Deadline(2.0, clock=loop.time).bound(useful(judge, E3))
        await first
        return found

    assert values(virtual_time.run(judged())[0]) == [1.0, 0.0]
