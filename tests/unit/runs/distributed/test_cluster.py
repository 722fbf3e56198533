"""What is said of a cluster that is unfit, and what travels to its workers. No cluster is started."""

from __future__ import annotations

import asyncio
from itertools import count
from pickle import PicklingError
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.runs.distributed.messages import Carried, UnsentError

# Workers as actors: what is said of one that does not start, and what travels. No cluster is started.

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


# Messages to a user about a cluster that is unfit. No cluster is started.

ray_nodes = pytest.importorskip("rag_harness.runs.distributed.cluster", reason="no Ray", exc_type=ImportError)


@pytest.fixture
def said_by_ray(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Have Ray refuse to connect with what is put here."""
    errors: list[Exception] = []

    def init(**_: Any) -> None:
        raise errors[0]

    monkeypatch.setattr(ray_nodes, "_check_reachable", lambda _: None)
    monkeypatch.setattr(ray_nodes.ray, "init", init)
    return errors


def test_versions_that_differ_are_named_with_the_address(said_by_ray: list[Exception]) -> None:
    # The words of ray._private.utils.check_version_info.
    said_by_ray.append(
        RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.1\n")
    )
    with pytest.raises(PrerequisiteError) as refused:
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))
    said = str(refused.value)
    assert "the cluster at 10.0.0.1:6379 cannot be used" in said
    assert "Python: 3.12.1" in said


def test_an_address_without_a_cluster_says_how_to_start_one(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ConnectionError("Could not find any running Ray instance."))
    with pytest.raises(PrerequisiteError, match=r"no Ray cluster at auto.*`ray start --head`"):
        ray_nodes.RayNodes(Settings(ray_address="auto"))


def test_a_token_that_is_not_there_is_named_in_rays_words(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ray_nodes.ray.exceptions.AuthenticationError("no authentication token was found"))
    with pytest.raises(PrerequisiteError, match=r"the cluster at 10.0.0.1:6379 cannot be used: no authentication"):
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))


def test_a_cluster_that_does_not_answer_may_want_a_token(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379"))
    with pytest.raises(PrerequisiteError, match=r"RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/\.ray/auth_token"):
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))
