"""Record, then replay without a server: the same verdicts in whatever order, for whichever part is asked for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import RecordingMissError
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges import fused, ragas
from rag_harness.evaluation.measures.opinion import JudgeQuestion, Material, Support
from rag_harness.pipelines.parts import RunParts
from tests.unit.judges.rows import CP_F_AR, FAITHFULNESS, OPENING, REFUNDS, RETURNS, ROW
from tests.unit.judges.scripted import Asked, honest
from tests.unit.models.chat.test_openai import event, stream
from tests.unit.server import Reply, Server, refusal, serving

SHOES = "Worn shoes are not taken back."
E3 = replace(ROW, contexts=(RETURNS, OPENING, SHOES))
E4 = replace(ROW, contexts=(REFUNDS, SHOES, RETURNS), answer=f"{REFUNDS} {SHOES}")
Said = dict[str, Any]


@contextmanager
def judging(reply: Callable[[Asked], Any] = honest, schemas: bool = True) -> Iterator[Server]:
    def answer() -> Reply:
        request = server.requests[-1]
        form = request.get("response_format")
        if form and not schemas:
            return refusal(400, "response_format is not supported")
        system, user = (message["content"] for message in request["messages"])
        keys = (
            form["json_schema"]["schema"]["properties"]
            if form
            else re.findall(r'"(\w+)": [\[t]', system.rpartition("Reply as JSON: ")[2])
        )
        text = json.dumps(reply(Asked(system, user, tuple(keys))))
        return stream(event(text) + event(finish="stop") + b"data: [DONE]\n\n")

    with serving(stream()) as server:
        server.next = answer  # type: ignore[method-assign]
        yield server


def judge_rows(
    folder: Path,
    mode: Any,
    url: str,
    rows: Sequence[Material],
    asks: Sequence[JudgeQuestion] = CP_F_AR,
    judge_module: Any = fused,
) -> list[Said]:
    """Judge ``rows`` in turn in a run of their own; an error stands in the place of what it took."""
    settings = Settings(
        profile="judged",
        mode=mode,
        chat_model="a/judge",
        chat_base_url=url,
        embed_model="mock/hashed-words",
        rootdir=str(folder),
    )
    parts = RunParts(settings)

    async def judged() -> list[Said]:
        judge = judge_module.create(parts)
        said = [await _one(judge.opinion(row, asks), asks) for row in rows]
        await parts.endpoints.aclose()
        return said

    found = asyncio.run(judged())
    parts.flush()
    return found


async def _one(opinion: Any, asks: Sequence[JudgeQuestion]) -> Said:
    work = {ask: opinion.supported(*ask) if isinstance(ask, Support) else getattr(opinion, ask)() for ask in asks}
    found = await asyncio.gather(*work.values(), return_exceptions=True)
    return {str(ask): each for ask, each in zip(work, found, strict=True)}


def forgetful(asked: Asked) -> dict[str, Any]:
    """Give no verdict on the shoes, however often it is asked."""
    found = honest(asked)
    if asked.kind == "useful":
        passages = asked.numbered("passage")
        found["verdicts"] = [each for each in found["verdicts"] if passages[each["index"] - 1] != SHOES]
    return found


@pytest.mark.parametrize("reply", [honest, forgetful])
def test_experiments_that_overlap_replay_in_any_order_and_each_by_itself(reply: Any, tmp_path: Path) -> None:
    with judging(reply) as server:
        e3, e4 = judge_rows(tmp_path, "record", server.url, [E3, E4])
        asked = len(server.requests)
        assert judge_rows(tmp_path, "record", server.url, [E4, E3]) == [e4, e3]
        assert len(server.requests) == asked
    assert e4["usefulness"][1].value == (None if reply is forgetful else 0.0)
    url = server.url
    assert judge_rows(tmp_path, "replay", url, [E4, E3]) == [e4, e3]
    assert judge_rows(tmp_path, "replay", url, [E3]) == [e3]
    assert judge_rows(tmp_path, "replay", url, [E4]) == [e4]
    assert not (tmp_path / ".rag_cache" / "judged").exists()


def test_e4_asks_only_about_what_e3_did_not_retrieve(tmp_path: Path) -> None:
    seen: list[Asked] = []

    def noted(asked: Asked) -> dict[str, Any]:
        seen.append(asked)
        return honest(asked)

    with judging(noted) as server:
        judge_rows(tmp_path, "record", server.url, [E3, E4])
    chunks = [asked.numbered("passage") for asked in seen if asked.kind == "useful"]
    assert chunks == [[RETURNS, OPENING, SHOES], [REFUNDS]]


def test_what_was_recorded_with_more_measures_replays_with_fewer(tmp_path: Path) -> None:
    with judging() as server:
        recorded = judge_rows(tmp_path, "record", server.url, [E3])[0]
    for ask in CP_F_AR:
        assert judge_rows(tmp_path, "replay", server.url, [E3], [ask]) == [{str(ask): recorded[str(ask)]}]


def test_what_was_recorded_with_fewer_is_missed_alone(tmp_path: Path) -> None:
    with judging() as server:
        recorded = judge_rows(tmp_path, "record", server.url, [E3], [FAITHFULNESS])[0]
    replayed = judge_rows(tmp_path, "replay", server.url, [E3])[0]
    assert replayed[str(FAITHFULNESS)] == recorded[str(FAITHFULNESS)]
    assert isinstance(replayed["relevancy"], RecordingMissError)
    assert isinstance(replayed["usefulness"], RecordingMissError)


def test_ragas_is_recorded_and_replayed_with_its_ten_calls(tmp_path: Path) -> None:
    row = replace(E3, contexts=(RETURNS, OPENING, SHOES, REFUNDS, "A fifth."))
    with judging(ragas_like) as server:
        recorded = judge_rows(tmp_path, "record", server.url, [row], judge_module=ragas)
        assert len(server.requests) == 10
    assert judge_rows(tmp_path, "replay", server.url, [row], judge_module=ragas) == recorded
    assert recorded[0]["relevancy"].value is not None


def ragas_like(asked: Asked) -> dict[str, Any]:
    if "statements" in asked.keys:
        said = asked.numbered("statement")
        return {"statements": [{"statement": each, "reason": "", "verdict": 1} for each in said] or ["One claim."]}
    return {"reason": "", "verdict": 1} if "verdict" in asked.keys else {"question": "Is it?", "noncommittal": 0}


def test_a_server_without_schemas_is_asked_in_words_and_replays(tmp_path: Path) -> None:
    with judging() as server:
        wanted = judge_rows(tmp_path / "with", "record", server.url, [E3])
    with judging(schemas=False) as server:
        assert judge_rows(tmp_path / "without", "record", server.url, [E3]) == wanted
    assert judge_rows(tmp_path / "without", "replay", server.url, [E3]) == wanted
