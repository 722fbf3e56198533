"""A workplace whose cluster is made up: who is started in the place of whom, and what is left when one cannot start."""

from __future__ import annotations

import ast
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.runs.distributed import dispatch as workplace_module
from rag_harness.runs.distributed.dispatch import RayWorkplace
from rag_harness.runs.distributed.messages import Done, Opened, RunOpening, WorkerLostError


class Made:
    """A worker that does nothing; it is lost when it is told to be."""

    def __init__(self, nodes: Nodes, name: str, node: str) -> None:
        self.nodes, self.name, self.node = nodes, name, node
        self.opening: RunOpening | None = None
        self.is_killed, self.gone = False, asyncio.Event()
        self.peers: list[str] = []

    async def open(self, opening: RunOpening) -> Opened:
        self.opening = opening
        if self.node in self.nodes.full:
            raise PrerequisiteError("it has no CPU free")
        if self.node in self.nodes.slow:
            await self.gone.wait()
        self.nodes.saw_token.append((self.nodes.journals / opening.token).is_file())
        return Opened()

    @property
    def peer(self) -> str:
        return self.name

    async def meet(self, peers: list[str]) -> None:
        self.peers = peers

    async def finished(self, _: object) -> list[Done]:
        await self.gone.wait()
        raise WorkerLostError(self.name)

    async def close(self) -> None:
        self.gone.set()

    def kill(self) -> None:
        self.is_killed = True


class Nodes:
    """Three nodes."""

    def __init__(self, journals: Path) -> None:
        self.journals, self.there, self.full = journals, ["n1", "n2", "n3"], set[str]()
        self.slow = set[str]()
        self.made: list[Made] = []
        self.saw_token: list[bool] = []
        self.ended: list[str] = []

    def ledger(self, file: Path) -> Any:
        class Ledger:
            def end(_) -> None:  # noqa: N805
                self.ended.append("ledger")

        return Ledger()

    def plan(self, most: int) -> list[str]:
        return [self.there[number % 3] for number in range(min(most, 4))]

    def alive(self) -> list[str]:
        return self.there[::-1]

    def worker(self, name: str, node: str) -> Made:
        self.made.append(Made(self, name, node))
        return self.made[-1]

    def leave(self) -> None:
        self.killed_when_left = sorted(worker.node for worker in self.made if worker.is_killed)
        self.ended.append("cluster")


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    nodes = Nodes(tmp_path / "output" / "journal")
    monkeypatch.setattr(workplace_module, "_nodes", lambda _: nodes)
    return nodes


def _workplace(tmp_path: Path, **given: Any) -> RayWorkplace:
    settings = Settings(output=str(tmp_path / "output"), **given)
    nothing: Callable[..., Any] = lambda *_: ""  # noqa: E731
    return RayWorkplace(settings, "run7", nothing, nothing)


async def _lose(nodes: Nodes, index: int) -> Made:
    """Lose a worker, and return the one that was started for it."""
    before = len(nodes.made)
    nodes.made[index].gone.set()
    for _ in range(5000):
        if len(nodes.made) > before:
            break
        await asyncio.sleep(0.001)
    assert len(nodes.made) == before + 1
    return nodes.made[-1]


def test_a_lost_worker_is_replaced_where_its_journal_lies_else_where_workers_are_fewest(
    nodes: Nodes, tmp_path: Path
) -> None:
    async def go() -> None:
        workplace = _workplace(tmp_path)
        await workplace.open()
        assert [worker.node for worker in nodes.made] == ["n1", "n2", "n3", "n1"]
        assert [worker.peers for worker in nodes.made] == [[worker.name for worker in nodes.made]] * 4
        again = await _lose(nodes, 0)
        assert again.node == "n1"
        assert again.opening is not None
        assert again.opening.replaces == "run7-ray1"
        nodes.there = ["n3", "n1"]
        assert (await _lose(nodes, 1)).node == "n3"
        # Whoever is started later has to find out as well that it shares the folder; all know of it at the same number.
        await asyncio.sleep(0.01)
        alive = [worker for worker in nodes.made if not worker.gone.is_set()]
        now = [f"run7-ray{number}" for number in (5, 6, 3, 4)]
        assert [worker.peers for worker in alive] == [now] * 4
        assert nodes.saw_token == [True] * 6
        await workplace.aclose()
        assert not list(nodes.journals.iterdir())

    asyncio.run(go())


def test_where_a_worker_cannot_start_nothing_is_left_open(nodes: Nodes, tmp_path: Path) -> None:
    nodes.full = {"n2"}

    async def go() -> None:
        with pytest.raises(PrerequisiteError, match="no CPU free"):
            await _workplace(tmp_path).open()

    asyncio.run(go())
    assert nodes.ended == ["ledger", "cluster"]
    assert not list(nodes.journals.iterdir())


def test_where_a_worker_cannot_start_those_that_still_do_are_ended_before_the_cluster_is_left(
    nodes: Nodes, tmp_path: Path
) -> None:
    nodes.full, nodes.slow = {"n2"}, {"n1", "n3"}

    async def go() -> None:
        with pytest.raises(PrerequisiteError, match="no CPU free"):
            await _workplace(tmp_path).open()
        assert nodes.killed_when_left == ["n1", "n1", "n2", "n3"]

    asyncio.run(go())


def test_a_worker_that_does_not_hear_of_the_others_holds_up_nobody(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(made: Made, _: list[str]) -> None:
        if made.name == "run7-ray2":
            await asyncio.sleep(3600)

    async def go() -> None:
        workplace = _workplace(tmp_path)
        await asyncio.wait_for(workplace.open(), 10)
        await workplace.aclose()

    monkeypatch.setattr(Made, "meet", never)
    monkeypatch.setattr(workplace_module, "MEET_WAIT", 0.01)
    asyncio.run(go())


def test_of_full_nodes_one_is_tried_and_what_was_asked_for_is_taken_back(nodes: Nodes, tmp_path: Path) -> None:
    async def go() -> None:
        workplace = _workplace(tmp_path)
        await workplace.open()
        nodes.full = {"n1", "n2", "n3"}
        again = await _lose(nodes, 2)
        await asyncio.sleep(0.05)
        assert len(nodes.made) == 5
        assert again.is_killed
        await workplace.aclose()

    asyncio.run(go())


def test_no_more_workers_start_than_a_service_may_be_asked_at_once(nodes: Nodes, tmp_path: Path) -> None:
    async def go() -> None:
        spec = EndpointSpec("a", "http://a/", concurrency=2)
        workplace = _workplace(tmp_path, concurrency=64, endpoints=(spec, EndpointSpec("b", "http://b/")))
        await workplace.open()
        assert len(nodes.made) == 2
        await workplace.aclose()

    asyncio.run(go())


def test_without_ray_the_run_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "rag_harness.runs.distributed.cluster", raising=False)
    with pytest.raises(PrerequisiteError, match=r"--rag-engine=ray needs Ray: pip install 'pytest-rag-harness\[ray\]'"):
        _workplace(Path("nowhere"))


def test_the_files_of_actors_import_ray_and_the_others_when_they_need_it() -> None:
    """A worker's module is read by the process of the tests too, and by runs without a cluster."""
    for file in Path(workplace_module.__file__).parent.glob("*.py"):
        at_import = ast.parse(file.read_text(encoding="utf-8")).body
        names = [alias.name for node in at_import if isinstance(node, ast.Import) for alias in node.names]
        names += [str(node.module) for node in at_import if isinstance(node, ast.ImportFrom)]
        of_ray = (".cluster", ".distributed.ingest")
        found = [name for name in names if name.partition(".")[0] == "ray" or name.endswith(of_ray)]
        assert bool(found) == (file.name in ("cluster.py", "ingest.py")), f"{file.name}: {found}"
