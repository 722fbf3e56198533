"""A scripted pipeline and judge with known variances, answered and judged again through the engine's own jobs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.threads import in_a_thread
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.judges.mock import MockOpinion
from rag_harness.evaluation.measures import parts_of
from rag_harness.evaluation.measures.opinion import JudgeQuestion, Material, Relevancy
from rag_harness.models.call_context import seed_shift
from rag_harness.records.experiment_names import repeat_fingerprint
from rag_harness.records.row import row_or_none
from rag_harness.records.scores import Author, ScoreLine, parse_score, row_digest
from rag_harness.runs.engine import LocalWorkplace
from rag_harness.runs.journal import JOURNALS
from rag_harness.runs.judging import RowJudge
from rag_harness.runs.repeats import JUDGE_SEEDS, Repeating
from rag_harness.runs.resume_store import adopt_journals
from rag_harness.runs.trial import Trial
from rag_harness.stats.agreement import variance_components

QUERY, PIPELINE, JUDGE = 0.08, 0.06, 0.04
HERE = LocalWorkplace(Settings(), lambda _: "")


def drawn(deviation: float, *of: object) -> float:
    return random.Random(repr(of)).gauss(0, deviation)


class Scripted:
    """A pipeline whose answer is a number: the query's own, and what its seed adds."""

    async def answer(self, query: Query) -> str:
        return str(drawn(QUERY, query.text) + drawn(PIPELINE, query.text, 7 + seed_shift.get()))


class Seeded:
    """A judge that reads that number, and errs by its own seed."""

    name, model, revision = "seeded", "seeded", "1"
    asks_model, deterministic, reads_conversation = False, False, True

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        return _Opinion(material, self.seed)


class _Opinion(MockOpinion):
    def __init__(self, material: Material, seed: int) -> None:
        super().__init__(material)
        self._seed = seed

    async def relevancy(self) -> Relevancy:
        said = self._material
        return Relevancy(float(said.answer) + drawn(JUDGE, said.question, self._seed))


def judging(repeat: int) -> RowJudge:
    first = JUDGE_SEEDS * (repeat - 1)
    return RowJudge(lambda: Seeded(first), lambda *_: [], 5.0, lambda turn: Seeded(first + turn))


async def judged(query: str, repeats: int, turns: int, kept: list[bytes]) -> list[list[float]]:
    """Return the values of one query by answer and judgement."""

    async def keep(line: bytes) -> None:
        kept.append(line)

    repeating = Repeating(HERE, judging, lambda *_: None, keep)
    trial, measures = Trial("mine", Case(Query(query, query))), parts_of(["answer_relevancy"])
    found: list[list[float]] = []
    for repeat in range(1, repeats + 1):
        row = await repeating.answer(trial, repeat, Experiment("mine", Scripted()), "print")
        assert row is not None
        lines = await repeating.judge(trial, repeat, row, measures, turns)
        found.append([value for line in lines if (score := parse_score(line)) and (value := score.value) is not None])
    return found


def test_components_of_a_scripted_run_are_within_10_per_cent() -> None:
    async def every() -> Sequence[list[list[float]]]:
        return [await judged(f"q{n}", 2, 1, []) for n in range(800)]

    found = variance_components(asyncio.run(every()))
    wanted = [deviation**2 for deviation in (QUERY, PIPELINE, JUDGE)]
    assert (found.query, found.pipeline, found.judge) == pytest.approx(wanted, rel=0.1)


def test_a_repeat_is_kept_before_it_is_judged_as_a_row_of_its_own() -> None:
    kept: list[bytes] = []
    asyncio.run(judged("q1", 3, 0, kept))
    rows = [row for row in map(row_or_none, kept) if row is not None]
    assert [row.experiment for row in rows] == ["mine+repeat1", "mine+repeat2", "mine+repeat3"]
    assert [row.fingerprint for row in rows] == [repeat_fingerprint("print", repeat) for repeat in (1, 2, 3)]
    assert len({row.llm_answer for row in rows}) == 3


def test_threads_of_a_repeat_ask_with_its_seed_and_the_next_trial_does_not() -> None:
    class Sync:
        def answer(self, query: Query) -> str:
            return str(seed_shift.get())

    async def both() -> list[str]:
        async def keep(_: bytes) -> None: ...

        repeating = Repeating(HERE, judging, lambda *_: None, keep)
        row = await repeating.answer(Trial("mine", Case(Query("q", "q"))), 3, Experiment("mine", Sync()), "print")
        assert row is not None
        return [row.llm_answer, await in_a_thread(lambda: str(seed_shift.get()))]

    assert asyncio.run(both()) == ["2", "0"]


def test_what_a_killed_run_left_of_repeats_is_taken_over_into_their_files(tmp_path: Path) -> None:
    kept: list[bytes] = []
    asyncio.run(judged("q1", 2, 0, kept))
    row = next(row for row in map(row_or_none, kept) if row is not None and row.experiment == "mine+repeat2")
    score = ScoreLine("answer_relevancy", 1, row.experiment, "q1", row_digest(row), "", Author("j", "m", "1"), 0.5)
    (tmp_path / JOURNALS).mkdir()
    for _ in range(2):
        (tmp_path / JOURNALS / "run-main.jsonl").write_bytes(row.line().encode() + score.line())
        adopt_journals(tmp_path)
    assert (tmp_path / "derived" / "mine+repeat2.jsonl").read_text() == row.line()
    assert (tmp_path / "derived" / "scores" / "mine+repeat2.jsonl").read_bytes() == score.line()
