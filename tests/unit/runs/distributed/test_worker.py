"""A worker in this process: what it keeps before it tells, what it hands over, and what it refuses to build."""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError, RagHarnessError
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.pipelines.experiments import experiment
from rag_harness.records.row import parse_row
from rag_harness.runs.distributed import worker as worker_module
from rag_harness.runs.distributed.messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    Done,
    Job,
    JudgedScores,
    RunOpening,
    TrialJob,
    WantedRows,
    carry,
)
from rag_harness.runs.distributed.worker import Worker
from rag_harness.runs.trial import Trial
from tests.unit.pipelines.mock_parts import parts_of, write_kb

PAGES = {"returns.md": "# Returns\n\nReturns are free for 30 days.\n"}
QUERIES = [Query(f"q{number}", "Are returns free?") for number in range(3)]
RUN = "run7"


class Two(Exception):  # noqa: N818 - a name of somebody's own
    """An error that pickles, and cannot be read again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class Mute(Exception):  # noqa: N818
    """An error that cannot be pickled, and whose message cannot be read."""

    def __init__(self) -> None:
        self.gate = Lock()

    def __str__(self) -> str:
        raise ValueError


class Mine:
    """A pipeline of somebody's own."""

    async def answer(self, query: Query) -> str:
        if query.query_id == "two":
            raise Two("one", "two")
        if query.query_id == "mute":
            raise Mute
        if query.query_id == "cancel":
            raise asyncio.CancelledError
        if query.query_id == "fail":
            pytest.fail("no answer")
        if query.query_id == "exit":
            sys.exit(3)
        return f"about {query.query_id}"


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have what this module defines pickled without Ray, and a disk of the node's own."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(cloudpickle=_Pickle))
    monkeypatch.setattr(worker_module, "gettempdir", lambda: str(tmp_path / "disk of the node"))


class _Pickle:
    dumps, loads = staticmethod(pickle.dumps), staticmethod(pickle.loads)

    @staticmethod
    def register_pickle_by_value(_: Any) -> None: ...

    @staticmethod
    def unregister_pickle_by_value(_: Any) -> None: ...


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


def _opening(root: Path, name: str = "ray1", is_shared: bool = True, **given: Any) -> RunOpening:
    settings = replace(parts_of(root).settings, output="output")
    journals = settings.path("output") / "journal"
    journals.mkdir(parents=True, exist_ok=True)
    if is_shared:
        (journals / f"{RUN}.shared").touch()
    ledger: Any = None  # nothing is counted
    return RunOpening(settings, 1, RUN, f"{RUN}-{name}", f"{RUN}.shared", ledger, **given)


def _carried(root: Path, name: str = "") -> Carried:
    parts = parts_of(root)
    made = experiment(name, parts) if name else Experiment("mine", Mine())
    return carry(made, is_registered=bool(name), queries=QUERIES, queries_digest="d", settings=parts.settings)


def _job(query: str, name: str = "mine") -> TrialJob:
    return TrialJob(Trial(name, Case(Query(query, "Are returns free?"), "direct", "", {})), "print")


async def _told(worker: Worker, jobs: Sequence[Job]) -> dict[int, Done]:
    found: dict[int, Done] = {}
    new = list(enumerate(jobs))
    while len(found) < len(jobs):
        found |= {done.number: done for done in await asyncio.wait_for(worker.finished(new), 20)}
        new = []
    return found


def _with(opening: RunOpening, work: Callable[[Worker], Awaitable[None]]) -> None:
    async def go() -> None:
        worker = Worker()
        await worker.open(opening)
        await work(worker)
        await worker.close()

    asyncio.run(go())


def _row_of(done: Done) -> Any:
    assert isinstance(done.result, AnsweredTrial)
    return done.result.outcome.row


def test_rows_are_kept_in_the_shared_folder_before_they_are_told(root: Path) -> None:
    journal = root / "output" / "journal" / f"{RUN}-ray1.jsonl"

    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root))
        told = await _told(worker, [_job("q0"), _job("q1")])
        assert [_row_of(told[number]).llm_answer for number in (0, 1)] == ["about q0", "about q1"]
        assert {parse_row(line).query_id for line in journal.read_bytes().splitlines()} == {"q0", "q1"}

    _with(_opening(root), work)
    assert journal.is_file()  # the process of the tests takes it over


def test_messages_travel_where_the_folder_is_not_shared_and_nothing_stays_on_the_node(root: Path) -> None:
    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root, "e1"))
        [done] = (await _told(worker, [_job("q0", "e1")])).values()
        [prompt] = [call.prompt for stage in _row_of(done).stages for call in stage.calls]
        assert isinstance(done.result, AnsweredTrial)
        assert list(done.result.prompts) == [prompt]
        assert not list((root / "output" / "journal").glob("*.jsonl"))
        assert list((root / "disk of the node").rglob(f"{RUN}-ray1.jsonl"))

    _with(_opening(root, is_shared=False), work)
    assert not [file for file in (root / "disk of the node").rglob("*") if file.is_file()]


def test_nothing_stays_on_the_node_that_is_closed_as_soon_as_the_last_result_is_there(root: Path) -> None:
    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root))
        await worker.take([(0, _job("q0"))])
        await worker._has_done.wait()  # ``finished`` waits in the same task since Python 3.12
        worker._done.clear()

    _with(_opening(root, is_shared=False), work)
    assert not [file for file in (root / "disk of the node").rglob("*") if file.is_file()]


def test_what_lies_on_the_disk_of_a_node_is_handed_over_whole_and_then_removed(root: Path) -> None:
    async def go() -> None:
        dead, later = Worker(), Worker()
        await dead.open(_opening(root, is_shared=False))
        await dead.carry(_carried(root, "e1"))
        await _told(dead, [_job("q0", "e1")])
        dead._journal.close()  # as the end of its process does
        found = await later.open(_opening(root, "ray2", is_shared=False))
        journal, prompt = sorted(found.handed)
        assert journal == f"journal/{RUN}-ray1.jsonl"
        assert parse_row(found.handed[journal]).query_id == "q0"
        assert prompt.startswith("prompts/")
        await later.handed_over(list(found.handed))
        assert not list((root / "disk of the node").rglob(f"{RUN}-ray1.*"))
        await later.close()

    asyncio.run(go())


def test_a_row_that_was_kept_and_not_told_when_the_run_ends_is_handed_to_the_next(root: Path) -> None:
    async def go() -> None:
        stopped, later = Worker(), Worker()
        await stopped.open(_opening(root, is_shared=False))
        await stopped.carry(_carried(root))
        await stopped.take([(1, _job("q0"))])
        await asyncio.wait_for(stopped._has_done.wait(), 20)
        await stopped.close()
        [journal] = (await later.open(_opening(root, "ray2", is_shared=False))).handed.values()
        assert parse_row(journal).query_id == "q0"
        await later.close()

    asyncio.run(go())


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_worker_in_the_place_of_another_finds_the_rows_that_are_wanted(root: Path, is_shared: bool) -> None:
    async def go() -> None:
        for name in ("ray1", "ray2"):
            dead = Worker()
            await dead.open(_opening(root, name, is_shared))
            await dead.carry(_carried(root))
            await _told(dead, [_job("q0"), _job("q1")])
            dead._journal.close()
        wanted: WantedRows = frozenset({(_job("q1").trial.id, "print"), (_job("q9").trial.id, "print")})
        later = Worker()
        opened = await later.open(_opening(root, "ray3", is_shared, replaces=f"{RUN}-ray1", wanted=wanted))
        assert [parse_row(line).query_id for line in opened.left] == ["q1"]
        await later.close()

    asyncio.run(go())


@pytest.mark.parametrize(("query", "said"), [("two", "Two: one and two"), ("mute", "Mute: its message cannot be read")])
def test_an_error_that_cannot_travel_is_told_by_its_words(root: Path, query: str, said: str) -> None:
    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root))
        [done] = (await _told(worker, [_job(query)])).values()
        again = pickle.loads(pickle.dumps(done))
        assert type(again.result.outcome.error) is RagHarnessError
        assert str(again.result.outcome.error) == said
        assert again.result.outcome.row.status == "error"

    _with(_opening(root), work)


@pytest.mark.parametrize(("query", "said"), [("cancel", "CancelledError"), ("fail", "Failed: no answer")])
def test_a_pipeline_that_cancels_itself_or_fails_its_test_lets_nobody_wait(root: Path, query: str, said: str) -> None:
    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root))
        [done] = (await _told(worker, [_job(query)])).values()
        assert said in str(done.error)

    _with(_opening(root), work)


def test_a_pipeline_that_exits_ends_its_trial_and_not_the_worker(root: Path) -> None:
    async def work(worker: Worker) -> None:
        await worker.carry(_carried(root))
        told = await _told(worker, [_job("exit"), _job("q0")])
        assert _row_of(told[0]).why == "pipeline: RuntimeError: Mine.answer asked Python to exit, with 3"
        assert _row_of(told[1]).llm_answer == "about q0"

    _with(_opening(root), work)


def test_a_worker_that_has_done_nothing_says_after_a_while_that_it_is_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "SILENT", 0.01)

    async def work(worker: Worker) -> None:
        assert await asyncio.wait_for(worker.finished([]), 20) == []
        await worker.carry(_carried(root))
        assert _row_of((await _told(worker, [_job("q0")]))[0]).llm_answer == "about q0"

    _with(_opening(root), work)


def test_an_answer_is_judged_and_what_that_took_is_told(root: Path) -> None:
    said = Material("Are returns free?", "Returns are free for 30 days.", ("Returns are free for 30 days.",))
    other = replace(said, answer="Returns cost 5 USD.")

    async def work(worker: Worker) -> None:
        jobs = [AskJob(material, ("faithfulness",), 0) for material in (said, other)]
        told = await _told(worker, jobs)
        asked = [done.result for _, done in sorted(told.items())]
        assert [each.scores["faithfulness"].value for each in asked if isinstance(each, JudgedScores)] == [1.0, 0.0]
        unknown = (await _told(worker, [AskJob(said, ("no_such_measure",), 0)]))[0]
        assert "no_such_measure" in str(unknown.error)

    _with(_opening(root), work)


def _refusal(here: Path, carried: Carried) -> str:
    async def work(worker: Worker) -> None:
        with pytest.raises(PrerequisiteError) as refused:
            await worker.carry(carried)
        said.append(str(pickle.loads(pickle.dumps(refused.value))))

    said: list[str] = []
    _with(_opening(here), work)
    return said[0]


def test_a_node_with_other_documents_is_refused_and_says_what_differs(root: Path) -> None:
    carried = _carried(root, "e2")
    (root / "kb" / "returns.md").write_text("# Returns\n\nReturns cost 5 USD.\n")
    said = _refusal(root, carried)
    assert "'e2' cannot be made ready on node " in said
    assert "ingredients.documents differ from what the process of the tests has" in said


def test_a_node_that_cannot_read_the_documents_says_so(root: Path) -> None:
    carried = _carried(root, "e2")
    (root / "kb").rename(root / "elsewhere")
    said = _refusal(root, carried)
    assert "'e2' cannot be made ready on node " in said
    assert str(root / "kb") in said


def test_a_node_without_a_module_of_the_pipeline_says_so(root: Path) -> None:
    carried = replace(_carried(root), pipeline=pickle.dumps(Mine()).replace(b"test_worker", b"test_absent"))
    assert "ModuleNotFoundError: No module named" in _refusal(root, carried)
