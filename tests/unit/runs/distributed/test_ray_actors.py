"""Workers as actors: what is said of one that does not start, and what travels. No cluster is started."""

from __future__ import annotations

import asyncio
from itertools import count
from pickle import PicklingError
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.runs.distributed.messages import Carried, UnsentError

ray_actors = pytest.importorskip("rag_harness.runs.distributed.cluster", reason="no Ray", exc_type=ImportError)


def test_a_worker_that_ends_while_it_starts_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        def gone(*_: Any) -> None:
            raise ray_actors.RayActorError

        dying: Any = SimpleNamespace(open=SimpleNamespace(remote=gone))
        await ray_actors.RayWorker("run-ray1", "0123456789abcdef", dying, {}).open(None)

    with pytest.raises(PrerequisiteError, match="A Ray worker ended while it was starting: run-ray1"):
        asyncio.run(go())


def test_a_worker_that_finds_no_cpu_says_what_to_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        never: Any = SimpleNamespace(remote=lambda *_: asyncio.get_running_loop().create_future())
        await ray_actors.RayWorker("run-ray1", "0123456789abcdef", SimpleNamespace(open=never), {}).open(None)

    monkeypatch.setattr(ray_actors, "START_WAIT", 0.01)
    with pytest.raises(PrerequisiteError, match=r"run-ray1 on node 01234567 .* no CPU or GPU free.*ray_workers"):
        asyncio.run(go())


@pytest.mark.parametrize("error", [TypeError("cannot pickle"), PicklingError("too deep"), AttributeError("no state")])
def test_what_pickling_raises_is_no_fault_of_the_worker(error: Exception) -> None:
    async def go() -> None:
        def refuse(*_: Any) -> None:
            raise error

        worker: Any = SimpleNamespace(take=SimpleNamespace(remote=refuse))
        await ray_actors.RayWorker("run-ray1", "0123456789abcdef", worker, {}).take([])

    with pytest.raises(UnsentError, match=f"cannot be sent to a Ray worker: {error}"):
        asyncio.run(go())


def test_an_experiment_is_written_down_once_for_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count(1)
    monkeypatch.setattr(ray_actors.ray, "put", lambda _: f"reference {next(numbers)}")

    class Actor:
        def __init__(self) -> None:
            self.got: list[Any] = []
            self.carry = SimpleNamespace(remote=self._carry)

        async def _carry(self, given: Any) -> None:
            self.got.append(given)

    async def go() -> None:
        shared: dict[str, Any] = {}
        actors = [Actor(), Actor()]
        carried = Carried("e3", b"", "", (), "", {})
        await asyncio.gather(*(ray_actors.RayWorker("w", "n", actor, shared).carry(carried) for actor in actors))
        assert [actor.got for actor in actors] == [["reference 1"], ["reference 1"]]

    asyncio.run(go())
