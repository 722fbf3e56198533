"""Special requests for trials, sent to a worker in this process: the rows are the same as those of `Here`."""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import GOLDEN, Case, Chunk, Hit, Query
from rag_harness.models.calls import seed_shift
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.row import ExperimentResult, parse_row
from rag_harness.runs.distributed import dispatch as workplace_module
from rag_harness.runs.distributed import worker as worker_module
from rag_harness.runs.distributed.dispatch import RayWorkplace
from rag_harness.runs.distributed.messages import Carried, Done, Job, Opened, RunOpening, carry
from rag_harness.runs.distributed.worker import Worker, built
from rag_harness.runs.engine import LocalWorkplace
from rag_harness.runs.fingerprint import fingerprint_of
from rag_harness.runs.golden_suite import GoldenSuite
from rag_harness.runs.journal import adopt_journals
from rag_harness.runs.trial import FIRST, Trial, TrialRequest
from tests.unit.pipelines.mock_parts import parts_of, write_kb

PAGES = {
    "returns.md": "# Returns\n\nReturns are free for 30 days.\n",
    "delivery.md": "# Delivery\n\nDelivery takes 3 days.\n",
}
ENTRY = {"query": "are returns free", "expected_document_id": "returns.md", "justification": "j"}
CASE = Case(Query("q1", "Are returns free?"))
TEXT = "Returns cost 5 USD."
HITS = (Hit(Chunk("other.md#chunk_0", "other.md", TEXT, 0, len(TEXT)), 1.0, 1),)
TIMES = ("ms", "finished_at")


class Mine:
    """A pipeline of somebody's own: it says which turn asks, and fails when it is told to."""

    def answer(self, query: Query) -> str:
        if query.text == "fail":
            raise ValueError(query.text)
        return f"turn {seed_shift.get()}"


class Pickle:
    dumps, loads = staticmethod(pickle.dumps), staticmethod(pickle.loads)

    @staticmethod
    def register_pickle_by_value(_: Any) -> None: ...

    @staticmethod
    def unregister_pickle_by_value(_: Any) -> None: ...


class Node:
    """A worker in this process; what goes there and what comes back is pickled, as on its way to another."""

    def __init__(self, name: str, node: str) -> None:
        self.name, self.node, self.worker = name, node, Worker()
        self.carried: list[str] = []

    async def open(self, opening: RunOpening) -> Opened:
        return await self.worker.open(opening)

    async def carry(self, carried: Carried) -> None:
        self.carried.append(carried.name)
        await self.worker.carry(pickle.loads(pickle.dumps(carried)))

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        await self.worker.take(pickle.loads(pickle.dumps(jobs)))

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        done: list[Done] = pickle.loads(pickle.dumps(await self.worker.finished(pickle.loads(pickle.dumps(jobs)))))
        return done

    async def close(self) -> None:
        await self.worker.close()


class Nodes:
    """One node."""

    def __init__(self) -> None:
        self.made: list[Node] = []

    def ledger(self, _: Path) -> Any:
        return SimpleNamespace(end=lambda: None)

    def plan(self, _: int) -> list[str]:
        return ["n1"]

    def worker(self, name: str, node: str) -> Node:
        self.made.append(Node(name, node))
        return self.made[-1]

    def leave(self) -> None: ...


@pytest.fixture(autouse=True)
def nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Nodes:
    nodes = Nodes()
    monkeypatch.setattr(workplace_module, "_nodes", lambda _: nodes)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(cloudpickle=Pickle))
    monkeypatch.setattr(worker_module, "gettempdir", lambda: str(tmp_path / "disk of the node"))
    return nodes


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunParts:
    root = write_kb(tmp_path, PAGES, monkeypatch)
    (root / "golden.json").write_text(json.dumps([ENTRY]))
    return parts_of(root, golden="golden.json", k=1, output="output")


def _golden(parts: RunParts) -> GoldenSuite:
    def fingerprint(of: Experiment) -> str:
        return fingerprint_of(of, parts.settings, parts.data().queries_digest)

    return GoldenSuite(parts, lambda name: experiment(name, parts), fingerprint)


def _described(parts: RunParts, is_registered: bool, digest: str = "d") -> Callable[[Experiment], Carried]:
    return lambda made: carry(
        made, is_registered=is_registered, queries=[CASE.query], queries_digest=digest, settings=parts.settings
    )


def _elsewhere(
    parts: RunParts, describe: Callable[[Experiment], Carried], work: Callable[[RayWorkplace], Coroutine[Any, Any, Any]]
) -> Any:
    async def go() -> Any:
        workplace = RayWorkplace(parts.settings, "run7", describe, lambda *_: None)
        await workplace.open()
        try:
            return await asyncio.wait_for(work(workplace), 20)
        finally:
            await workplace.aclose()

    return asyncio.run(go())


def _here(parts: RunParts, made: Experiment, trial: Trial, asking: TrialRequest) -> ExperimentResult:
    outcome = asyncio.run(LocalWorkplace(parts.settings, lambda _: "").answer(trial, made, "print", asking))
    assert outcome.row is not None
    return outcome.row


def _plain(row: ExperimentResult) -> Any:
    return _timeless(json.loads(row.line()))


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if not name.endswith((*TIMES, "prompt"))}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def _journalled(parts: RunParts) -> list[ExperimentResult]:
    [journal] = (parts.settings.path("output") / "journal").glob("*.jsonl")
    return [parse_row(line) for line in journal.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("name", "asking"),
    [
        ("e3", FIRST),
        ("e3+repeat2", TrialRequest(turn=1)),
        ("e3+gold_context", TrialRequest(hits=HITS, keeps_failures=False)),
    ],
)
def test_a_row_is_the_local_one_and_in_the_journal_of_its_node(
    parts: RunParts, nodes: Nodes, name: str, asking: TrialRequest
) -> None:
    made, trial = experiment("e3", parts), Trial(name, CASE)
    described = _described(parts, is_registered=True)
    outcome = _elsewhere(parts, described, lambda there: there.answer(trial, made, "print", asking))
    assert _plain(outcome.row) == _plain(_here(parts, made, trial, asking))
    assert _journalled(parts) == [outcome.row]
    assert nodes.made[0].carried == ["e3"]
    if asking.hits:
        assert [chunk.text for chunk in outcome.row.retrieved_chunks] == [TEXT]


def test_answers_again_have_seeds_of_their_own_and_what_failed_is_kept_where_it_is_a_result(parts: RunParts) -> None:
    made, failing = Experiment("mine", Mine()), Case(Query("q2", "fail"))

    async def work(there: RayWorkplace) -> list[str]:
        asked = [
            there.answer(Trial(f"mine+repeat{turn + 1}", CASE), made, "p", TrialRequest(turn)) for turn in range(3)
        ]
        failed = [
            there.answer(Trial("mine+twice", failing), made, "p", TrialRequest(keeps_failures=False)),
            there.answer(Trial("mine+repeat2", failing), made, "p", TrialRequest(turn=1)),
        ]
        rows = [outcome.row for outcome in await asyncio.gather(*asked, *failed)]
        assert [row.status for row in rows if row is not None] == [*["ok"] * 3, *["error"] * 2]
        return [row.llm_answer for row in rows[:3] if row is not None]

    answers = _elsewhere(parts, _described(parts, is_registered=False), work)
    assert answers == ["turn 0", "turn 1", "turn 2"]
    kept = sorted(str(row.trial) for row in _journalled(parts))
    assert kept == ["mine+repeat1-q1", "mine+repeat2-q1", "mine+repeat2-q2", "mine+repeat3-q1"]


def test_hits_that_an_experiment_cannot_answer_from_are_a_named_failure(parts: RunParts) -> None:
    described = _described(parts, is_registered=False)
    given, mine = TrialRequest(hits=HITS), Experiment("mine", Mine())
    outcome = _elsewhere(parts, described, lambda there: there.answer(Trial("mine+x", CASE), mine, "p", given))
    assert "Experiment 'mine' was given 1 hits to answer from, and does not say how" in outcome.row.why


def test_what_a_killed_run_left_on_a_node_is_taken_over_into_derived_files(parts: RunParts) -> None:
    names, made = ("e3+repeat2", "e3+gold_context"), experiment("e3", parts)

    async def work(there: RayWorkplace) -> None:
        for name in names:
            await there.answer(Trial(name, CASE), made, "print", TrialRequest(turn=1, hits=HITS))

    _elsewhere(parts, _described(parts, is_registered=True), work)
    output = parts.settings.path("output")
    assert adopt_journals(output).rows == 2
    for name in names:
        lines = (output / "derived" / f"{name}.jsonl").read_bytes().splitlines()
        assert [parse_row(line).experiment for line in lines] == [name]


def test_the_golden_suite_is_built_on_the_node_and_ranks_as_here(parts: RunParts, nodes: Nodes) -> None:
    suite = _golden(parts)
    trial = Trial(GOLDEN, suite.case("g001"))
    described = _described(parts, is_registered=False, digest=suite.digest)
    outcome = _elsewhere(parts, described, lambda there: there.answer(trial, suite.experiment, "print"))
    assert outcome.row.ranking[0] == "returns.md"
    assert _plain(outcome.row) == _plain(_here(parts, suite.experiment, trial, FIRST))
    assert nodes.made[0].carried == [GOLDEN]


@pytest.mark.parametrize(
    ("file", "text", "differs"),
    [
        ("golden.json", json.dumps([{**ENTRY, "expected_document_id": "delivery.md"}]), "queries"),
        ("kb/returns.md", "# Returns\n\nReturns cost 5 USD.\n", "ingredients.documents"),
    ],
)
def test_a_node_with_other_entries_or_documents_is_refused(parts: RunParts, file: str, text: str, differs: str) -> None:
    suite = _golden(parts)
    trial, carried = Trial(GOLDEN, suite.case("g001")), _described(parts, False, suite.digest)(suite.experiment)
    parts.settings.path(file).write_text(text)
    with pytest.raises(PrerequisiteError, match=f"{differs}.* differ from what the process of the tests has"):
        _elsewhere(parts, lambda _: carried, lambda there: there.answer(trial, suite.experiment, "print"))


def test_the_retrieve_step_of_an_experiment_is_compared_too(parts: RunParts) -> None:
    step = parts_of(Path(parts.settings.rootdir), golden="golden.json", k=1, output="output", retriever="e2")
    (step.settings.path("kb") / "queries.jsonl").write_text('{"query_id": "q1", "query": "Are returns free?"}\n')
    suite = _golden(step)
    trial, described = Trial(GOLDEN, suite.case("g001")), _described(step, False, suite.digest)
    outcome = _elsewhere(step, described, lambda there: there.answer(trial, suite.experiment, "print"))
    assert outcome.row.ranking[0] == "returns.md"


def test_what_nobody_recorded_is_said_by_the_trials_that_need_it(
    parts: RunParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(_: Sequence[Query]) -> None:
        raise RecordingMissError("nobody recorded it")

    made = Experiment("e3", Mine(), prepare=prepare)
    monkeypatch.setattr(worker_module, "experiment", lambda *_: made)
    assert built(_described(parts, is_registered=True)(made), parts, parts.settings) is made
