"""A process sends repeated trials to the writer of the files: only new ones, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import Score, parts_of
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.frontends.pytest_plugin.conversations import OwnTurns
from rag_harness.frontends.pytest_plugin.judgements import Judgements
from rag_harness.frontends.pytest_plugin.repeats import Repeats
from rag_harness.frontends.pytest_plugin.session import RagSession
from rag_harness.frontends.pytest_plugin.trials import RunResources
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.manifest import repeat_fingerprint
from rag_harness.records.row import ExperimentResult, parse_row
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs.engine import LocalWorkplace
from rag_harness.runs.journal import JOURNALS, ResumeStore
from rag_harness.runs.trial import Trial
from rag_harness.tables.requested_measures import WantedMeasures
from tests.unit.rows import make_row

TRIAL = Trial("mine", Case(Query("q1", "How long?")))
MINE = Experiment("mine", SimpleNamespace(answer=lambda _: "30 days"))
ROW = make_row(experiment="mine+repeat2", query="How long?", fingerprint=repeat_fingerprint("print", 2))
SCORE = ScoreLine("faithfulness", 1, "mine+repeat2", "q1", row_digest(ROW), "", Author("j", "m", "1"), 0.5)


class Engine:
    """Runs a job when it is asked for."""

    def __init__(self) -> None:
        self.jobs: dict[Any, Callable[[], Any]] = {}

    def submit(self, key: Any, job: Callable[[], Any], first: bool = False) -> None:
        self.jobs.setdefault(key, job)

    def result(self, key: Any) -> Any:
        return asyncio.run(self.jobs[key]())

    def drop(self, key: Any) -> None:
        del self.jobs[key]

    def forget(self, key: Any) -> None:
        del self.jobs[key]


class Asked:
    """A session that notes of which experiment gold pages are wanted."""

    settings = Settings(repeats=2)
    parts: RunParts
    wanted = WantedMeasures(lambda: Settings(repeats=2), lambda _: [])
    identities = SimpleNamespace(fingerprint=lambda _: "print")

    def __init__(self) -> None:
        self.of: list[str] = []

    def gold_pages(self, experiment: str, _: Case) -> list[str]:
        self.of.append(experiment)
        return ["Return it within 30 days."]


HERE = LocalWorkplace(Asked.settings, lambda _: "")


def repeats(
    output: Path,
    kept: list[bytes],
    session: Asked | None = None,
    engine: Engine | None = None,
    workplace: Callable[[], Any] = lambda: HERE,
) -> Repeats:
    async def keep(line: bytes) -> None:
        kept.append(line)

    runs, stored = engine or Engine(), ResumeStore(output, "this-run", anew=False)
    stored.look_for_the_dead()
    known = cast("RagSession", session or Asked())
    kit = SimpleNamespace(
        engine=Lazy(lambda: runs),
        stored=Lazy(lambda: stored),
        journal=Lazy(lambda: SimpleNamespace(keep=keep)),
        workplace=Lazy(workplace),
    )
    kit_, judgements = cast("RunResources", kit), cast("Judgements", SimpleNamespace(turns_of=lambda _: 0))
    return Repeats(known, kit_, judgements, OwnTurns(known, kit_, judgements))


def rows(lines: Sequence[str]) -> list[ExperimentResult]:
    return [parse_row(line) for line in lines if not line.startswith('{"measure"')]


def test_a_new_answer_is_shipped_once(tmp_path: Path) -> None:
    kept: list[bytes] = []
    again = repeats(tmp_path, kept)
    assert again.after(TRIAL, MINE)
    shipped, _ = again.ship(TRIAL.id)
    assert [(row.experiment, row.llm_answer) for row in rows(shipped)] == [("mine+repeat2", "30 days")]
    assert [line.decode() for line in kept] == [*shipped]
    assert not again.after(TRIAL, MINE)  # a plugin runs the test again, say
    assert again.ship(TRIAL.id) == ((), ())


def test_what_a_dead_worker_of_this_run_has_left_is_shipped_and_not_run_again(tmp_path: Path) -> None:
    (tmp_path / JOURNALS).mkdir()
    (tmp_path / JOURNALS / "this-run-gw0.jsonl").write_bytes(ROW.line().encode() + SCORE.line())
    kept: list[bytes] = []
    again = repeats(tmp_path, kept)
    again.after(TRIAL, MINE)
    assert again.ship(TRIAL.id) == ((ROW.line(), SCORE.line().decode()), ())
    assert kept == []


def test_what_an_earlier_run_has_is_not_shipped(tmp_path: Path) -> None:
    file = result_path(tmp_path, "mine+repeat2")
    file.parent.mkdir()
    file.write_text(ROW.line())
    again = repeats(tmp_path, [], workplace=_nobody)
    assert again.after(TRIAL, MINE)
    assert again.ship(TRIAL.id) == ((), ())


def _nobody() -> Any:
    pytest.fail("a cluster would be opened for what is there")


@pytest.mark.parametrize(("judge", "seeds"), [("ragas", [200, 201]), ("embedded", [0, 201]), ("mock", [0, 201])])
def test_repeats_are_judged_elsewhere_too_with_seeds_of_their_own(tmp_path: Path, judge: str, seeds: list[int]) -> None:
    asked: list[int] = []

    async def ask(_: Material, measures: Sequence[JudgedMeasure], turn: int) -> dict[str, Score]:
        asked.append(turn)
        return {measure.name: Score(0.5) for measure in measures}

    session = Asked()
    settings = Settings(judge=judge, embed_model="mock/hashed-words")
    session.settings, session.parts = settings, RunParts(settings)
    judging = repeats(tmp_path, [], session, workplace=lambda: SimpleNamespace(ask=ask))._judging(3)
    judged = asyncio.run(judging.row(ROW, TRIAL.case, parts_of(["faithfulness"]), lambda *_: None, 1))
    assert judged.scores["faithfulness"].value == 0.5
    assert asked == seeds


def test_a_trial_whose_experiment_is_settled_is_not_answered_again(tmp_path: Path) -> None:
    engine = Engine()
    again = repeats(tmp_path, [], engine=engine)
    again.after(TRIAL, MINE)
    assert engine.jobs
    again.drop(TRIAL.id)
    assert not engine.jobs
    assert again.ship(TRIAL.id) == ((), ())


@pytest.mark.parametrize("derived", ["mine+repeat2", "mine+repeat10"])
def test_gold_pages_are_those_of_the_experiments_own_data(tmp_path: Path, derived: str) -> None:
    session = Asked()
    assert repeats(tmp_path, [], session)._gold_pages(derived, TRIAL.case) == ["Return it within 30 days."]
    assert session.of == ["mine"]
