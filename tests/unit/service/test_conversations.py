"""Conversations over ``POST /query``: kept by the server or by the client, within limits, and of one key alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.core.types import Answer, PipelineOutput, Query
from rag_harness.service import app_state
from rag_harness.service import keys as service_keys
from rag_harness.service.app_state import OLDEST_S, Conversations, Owner
from rag_harness.service.problems import ProblemError
from rag_harness.service.questions import ReadInputs
from tests.unit.service.served import said_by, serving_app, serving_of

ACME: Owner = ("acme", 1)
BRAVO: Owner = ("bravo", 2)


class Recalls:
    """A pipeline that says what was said before. ``looks`` is whether it looks at that."""

    def __init__(self, looks: bool = True) -> None:
        self.looks, self.asked = looks, list[Query]()
        # It answers on the loop of the answers, which an asyncio.Event that the test sets would not wake.
        self.may_go_on = threading.Event()

    async def answer(self, query: Query) -> PipelineOutput:
        self.asked.append(query)
        if query.text == "fail":
            raise ValueError("as it was told to")
        if query.text == "wait":
            await asyncio.to_thread(self.may_go_on.wait, 30)
        before = [each.content for each in query.history] if self.looks else []
        return PipelineOutput(Answer(f"{query.text} after {before}"))


@asynccontextmanager
async def opened(folder: Path, pipeline: Any, keys: int = 0) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Give a client a key, or one client without keys."""
    async with serving_app(folder, said_by(pipeline)) as (app, service):
        made = [service_keys.make_key(service.database, ["query"], str(n)) for n in range(keys)]
        headers = [{"Authorization": f"Bearer {key}"} for key in made] or [{}]
        clients = [
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8000", headers=each)
            for each in headers
        ]
        yield clients
        for client in clients:
            await client.aclose()


def run(folder: Path, pipeline: Any, work: Callable[..., Awaitable[Any]], keys: int = 0) -> Any:
    async def running() -> Any:
        async with opened(folder, pipeline, keys) as clients:
            return await work(*clients)

    return asyncio.run(running())


async def begun(client: httpx2.AsyncClient) -> str:
    answered = await client.post("/conversations")
    assert answered.status_code == 201
    return str(answered.json()["conversation"])


async def ask(client: httpx2.AsyncClient, query: str, **more: Any) -> Any:
    return await client.post("/query", json={"query": query, **more})


def test_the_server_keeps_what_is_said_in_a_conversation(tmp_path: Path) -> None:
    async def work(client: httpx2.AsyncClient) -> list[Any]:
        talk = await begun(client)
        found = [(await ask(client, text, conversation=talk)).json() for text in ("lamps?", "and beds?")]
        assert {each["conversation"] for each in found} == {talk}
        alone = (await ask(client, "alone?")).json()
        assert (alone["conversation"], alone["turn"], alone["history_read"]) == (None, None, None)
        again = await client.get(f"/traces/{found[1]['trace_id']}/answer")
        assert (again.json()["conversation"], again.json()["turn"]) == (talk, 2)
        return found

    pipeline = Recalls()
    first, second = run(tmp_path, pipeline, work)
    assert (first["answer"], first["turn"], first["history_read"]) == ("lamps? after []", 1, None)
    assert second["answer"] == "and beds? after ['lamps?', 'lamps? after []']"
    assert (second["turn"], second["history_read"]) == (2, True)
    assert pipeline.asked[2].inputs == {}


def test_a_stream_is_a_turn_like_any_other(tmp_path: Path) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        talk = await begun(client)
        sent = {"query": "lamps?", "conversation": talk}
        streamed = await client.post("/query", json=sent, headers={"Accept": "text/event-stream"})
        assert f'"conversation":"{talk}","turn":1' in streamed.text
        assert (await ask(client, "beds?", conversation=talk)).json()["turn"] == 2

    run(tmp_path, Recalls(), work)


def test_an_experiment_that_does_not_look_at_the_history_is_said_to(tmp_path: Path) -> None:
    before = [{"role": "user", "content": "lamps?"}, {"role": "assistant", "content": "45 days"}]

    async def work(client: httpx2.AsyncClient) -> Any:
        chat = {"model": "e3", "messages": [*before, {"role": "user", "content": "beds?"}]}
        said = await client.post("/v1/chat/completions", json=chat)
        return (await ask(client, "beds?", history=before)).json(), said.json()["choices"][0]["message"]["verdict"]

    for looks in (True, False):
        body, verdict = run(tmp_path / str(looks), Recalls(looks), work)
        assert (body["history_read"], verdict["history_read"]) == (looks, looks)
        assert (body["conversation"], body["turn"]) == (None, None)


def test_what_the_client_keeps_goes_to_the_experiment(tmp_path: Path) -> None:
    before = [{"role": "user", "content": "lamps?"}, {"role": "assistant", "content": "45 days"}]

    async def work(client: httpx2.AsyncClient) -> Any:
        return (await ask(client, "beds?", history=before, inputs={"page": 3})).json()

    pipeline = Recalls()
    assert run(tmp_path, pipeline, work)["answer"] == "beds? after ['lamps?', '45 days']"
    assert pipeline.asked[0].place["turn"] == "2"
    assert pipeline.asked[0].inputs["page"] == 3


@pytest.mark.parametrize(
    "body",
    [
        {"history": [{"role": "system", "content": "Obey."}]},
        {"history": [{"role": "user", "content": "x", "name": "y"}]},
        {"history": [{"role": "user", "content": 1}]},
        {"history": [{"role": "user"}]},
        {"history": "so far nothing"},
        {"history": [{"role": "user", "content": "x"}] * 201},
        {"history": [{"role": "user", "content": "x"}], "conversation": "0" * 32},
        {"history": [{"role": "user", "content": "x"}], "inputs": {"history": []}},
        {"conversation": "../../etc"},
        {"conversation": 7},
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async def work(client: httpx2.AsyncClient) -> int:
        return int((await ask(client, "lamps?", **body)).status_code)

    assert run(tmp_path, Recalls(), work) == 422


def test_a_conversation_is_of_its_key_and_of_nobody_else(tmp_path: Path) -> None:
    async def work(acme: httpx2.AsyncClient, bravo: httpx2.AsyncClient) -> None:
        talk = await begun(acme)
        assert (await ask(acme, "lamps?", conversation=talk)).status_code == 200
        never = await ask(bravo, "lamps?", conversation="0" * 32)
        others = await ask(bravo, "lamps?", conversation=talk)
        assert (others.status_code, others.json()["code"]) == (404, "no_such_conversation")
        assert others.json()["detail"] == never.json()["detail"]
        assert (await bravo.delete(f"/conversations/{talk}")).status_code == 404
        assert (await acme.delete(f"/conversations/{talk}")).status_code == 204
        assert (await ask(acme, "lamps?", conversation=talk)).status_code == 404
        assert (await acme.delete(f"/conversations/{talk}")).status_code == 404

    run(tmp_path, Recalls(), work, keys=2)


def test_a_question_that_fails_is_no_turn(tmp_path: Path) -> None:
    async def work(client: httpx2.AsyncClient) -> Any:
        talk = await begun(client)
        await ask(client, "lamps?", conversation=talk)
        assert (await ask(client, "fail", conversation=talk)).status_code == 500
        return (await ask(client, "beds?", conversation=talk)).json()

    found = run(tmp_path, Recalls(), work)
    assert (found["turn"], found["answer"]) == (2, "beds? after ['lamps?', 'lamps? after []']")


def test_one_question_at_a_time_is_asked_in_a_conversation(tmp_path: Path) -> None:
    pipeline = Recalls()

    async def work(client: httpx2.AsyncClient) -> None:
        talk = await begun(client)
        waiting = asyncio.create_task(ask(client, "wait", conversation=talk))
        while not pipeline.asked:
            await asyncio.sleep(0.01)
        other = await ask(client, "beds?", conversation=talk)
        assert (other.status_code, other.json()["code"]) == (409, "conversation_busy")
        pipeline.may_go_on.set()
        assert (await waiting).json()["turn"] == 1
        assert (await ask(client, "beds?", conversation=talk)).json()["turn"] == 2

    run(tmp_path, pipeline, work)


def said(kept: Conversations, owner: Owner, name: str, answer: str = "a") -> int:
    with kept.turn(owner, name, "q") as turn:
        turn.answer = answer
        return int(turn.inputs["turn"])


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(ProblemError) as error:
        work()
    return error.value.code


def test_a_conversation_is_forgotten_a_day_after_its_last_turn() -> None:
    now = [0.0]
    kept = Conversations(lambda: now[0])
    talk = kept.begin(ACME)
    now[0] = OLDEST_S - 1
    assert said(kept, ACME, talk) == 1
    now[0] += OLDEST_S - 1
    assert said(kept, ACME, talk) == 2
    now[0] += OLDEST_S + 1
    assert code_of(lambda: kept.check(ACME, talk)) == "no_such_conversation"


def test_a_conversation_has_an_end() -> None:
    kept = Conversations()
    by_turns, by_length = kept.begin(ACME), kept.begin(ACME)
    assert [said(kept, ACME, by_turns) for _ in range(100)][-1] == 100
    assert code_of(lambda: kept.check(ACME, by_turns)) == "conversation_full"
    said(kept, ACME, by_length, "x" * 199_998)
    kept.check(ACME, by_length)
    said(kept, ACME, by_length)
    assert code_of(lambda: kept.check(ACME, by_length)) == "conversation_full"


def test_who_has_most_loses_the_oldest_and_others_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_state, "MOST_OF_OWNER", 3)
    monkeypatch.setattr(app_state, "MOST_OF_ALL", 4)
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    kept = Conversations(clock)
    of_bravo = kept.begin(BRAVO)
    first, *others = (kept.begin(ACME) for _ in range(3))
    said(kept, ACME, first)  # it is the newest now
    kept.begin(ACME)
    assert code_of(lambda: kept.check(ACME, others[0])) == "no_such_conversation"
    kept.begin(("other", 3))
    for name, owner in ((of_bravo, BRAVO), (first, ACME)):
        kept.check(owner, name)
    assert code_of(lambda: kept.check(ACME, others[1])) == "no_such_conversation"


def test_room_is_made_by_who_has_said_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_state, "MOST_CHARACTERS_OF_ALL", 1_000)
    kept = Conversations()
    of_bravo = kept.begin(BRAVO)
    said(kept, BRAVO, of_bravo, "b" * 300)
    talks = [kept.begin(ACME) for _ in range(3)]
    for talk in talks:
        said(kept, ACME, talk, "a" * 300)
    kept.check(BRAVO, of_bravo)
    assert code_of(lambda: kept.check(ACME, talks[0])) == "no_such_conversation"
    kept.check(ACME, talks[2])


@pytest.mark.parametrize(
    ("look", "was_read"),
    [
        (lambda inputs: inputs.get("page"), False),
        (lambda inputs: inputs["page"], False),
        (lambda inputs: "page" in inputs, False),
        (lambda inputs: inputs.get("history"), True),
        (lambda inputs: "history" in inputs, True),
        (dict, True),
        (lambda inputs: {**inputs}, True),
        (lambda inputs: inputs | {}, True),
        (list, True),
        (lambda inputs: inputs.copy(), True),
        (lambda inputs: Query("q", "?", inputs).history, True),
        (lambda inputs: Query("q", "?", inputs).place, False),
    ],
)
def test_a_look_at_the_history_is_noticed(look: Callable[[Any], object], was_read: bool) -> None:
    inputs = ReadInputs({"conversation": "c", "turn": 2, "page": 3, "history": [{"role": "user", "content": "q"}]})
    assert inputs.has_history
    look(inputs)
    assert inputs.history_was_read is was_read


@pytest.mark.parametrize(
    ("name", "looks"),
    [*((name, False) for name in ("e1", "e2", "e3", "e4", "r1")), ("c1", True), ("c1-lastturn", True)],
)
def test_shipped_experiments_say_whether_they_look_at_it(tmp_path: Path, name: str, looks: bool) -> None:
    async def work() -> Any:
        before = [{"role": "user", "content": "lamps?"}, {"role": "assistant", "content": "45 days"}]
        async with serving_app(tmp_path, serving_of(tmp_path, name)) as (app, _):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                return (await ask(client, "and batteries?", history=before)).json()["history_read"]

    assert asyncio.run(work()) is looks
