"""Derived trials at a workplace that is not this process: what it is asked, and what is kept of what it answers."""

from __future__ import annotations

from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, cast

from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.diagnosis.reruns import DerivedRuns, DerivedTrial
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.trace import GivenSearches
from rag_harness.runs.engine import Engine, InlineLoop
from rag_harness.runs.trial import FIRST, Trial, TrialOutcome, TrialRequest
from tests.unit.diagnosis.made_up import CASES, PAGES, Pipeline, chunks_of, experiment, hits
from tests.unit.evaluation.measures.agents.trials import search
from tests.unit.rows import make_chunk, make_row

HITS = tuple(hits(chunks_of(PAGES[:1])))
ROW = make_row(experiment="x1", query_id="q0", fingerprint="aaaa")


class Elsewhere:
    """A workplace that notes what it is asked, and fails where hits are given."""

    is_here, ask = False, None

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, TrialRequest]] = []

    async def answer(
        self, trial: Trial, of: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        self.asked.append((trial.experiment, of.id, asking))
        failed: dict[str, Any] = {"status": "error", "error": {"stage": "generate", "type": "E", "message": "why"}}
        said = {"query": trial.case.query.text, **(failed if asking.hits else {})}
        return TrialOutcome(make_row(experiment=trial.experiment, query_id="q0", fingerprint=fingerprint, **said))

    async def aclose(self) -> None: ...


def _asks() -> list[DerivedTrial]:
    made = experiment(Pipeline(chunks_of(PAGES)))
    return [DerivedTrial(made, "+twice", CASES[0], ROW), DerivedTrial(made, "+gold_context", CASES[0], ROW, HITS)]


def test_a_workplace_is_asked_with_the_hits_and_the_name_of_the_experiment(tmp_path: Path) -> None:
    there, kept, asks = Elsewhere(), list[bytes](), _asks()

    async def keep(came: Any) -> None:
        kept.extend(came.new)

    loop: Any = InlineLoop(keep)
    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(lambda: there))
    found = runs.run(asks)
    runs.close()
    loop.close()
    names = [(derived, of, asking.hits) for derived, of, asking in there.asked]
    assert names == [("x1+twice", "x1", None), ("x1+gold_context", "x1", HITS)]
    answered = found[asks[0]]
    assert not isinstance(answered, str)
    assert kept == [answered.line().encode()]
    assert found[asks[1]] == "generate: E: why"
    assert not any(asking.keeps_failures for _, _, asking in there.asked)


def test_what_is_there_needs_no_workplace(tmp_path: Path) -> None:
    there, loop = Elsewhere(), InlineLoop[Any]()
    first = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(lambda: there))
    first.run(_asks()[:1])
    first.close()

    def nobody() -> Any:
        raise AssertionError("a cluster would be opened for what is there")

    again = DerivedRuns(tmp_path, Settings(), Lazy(nobody), Lazy(nobody))
    [found] = again.run(_asks()[:1]).values()
    again.close()
    loop.close()
    assert not isinstance(found, str)


def test_what_a_cluster_hands_over_when_it_is_opened_is_not_run_again(tmp_path: Path) -> None:
    loop, ask, there = InlineLoop[Any](), _asks()[0], Elsewhere()
    handed = make_row(experiment="x1+twice", query_id="q0", fingerprint=ask.fingerprint, query=CASES[0].query.text)

    def opened() -> Any:
        file = result_path(tmp_path, "x1+twice")
        file.parent.mkdir()
        file.write_text(handed.line())
        return there

    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(opened))
    assert runs.run([ask]) == {ask: handed}
    runs.close()
    loop.close()
    assert not there.asked


def test_a_stored_row_that_was_given_something_else_is_no_answer() -> None:
    same, given = _asks()
    assert (same.derived, given.derived) == ("x1+twice", "x1+gold_context")
    assert same.fingerprint != given.fingerprint
    assert same.is_answered_by(make_row(query=CASES[0].query.text))
    assert not same.is_answered_by(make_row(query="Another?"))
    chunks = [make_chunk(hit.chunk.chunk_id, text=hit.chunk.text) for hit in HITS]
    assert given.is_answered_by(make_row(retrieved_chunks=chunks))
    assert not given.is_answered_by(make_row(retrieved_chunks=chunks[:-1]))
    assert not given.is_answered_by(make_row(retrieved_chunks=[*chunks[:-1], chunks[-1] | {"text": "Other."}]))


def test_a_stored_row_with_other_searches_given_is_no_answer() -> None:
    made = experiment(Pipeline(chunks_of(PAGES)))
    asked = {"query": CASES[0].query.text}

    def searched(number: int, *ids: str, given: bool) -> dict[str, Any]:
        step = search("a", *ids)
        return {**step, "detail": {"search": number, **({"given": True} if given else {})}}

    def fits(searches: GivenSearches, *steps: dict[str, Any]) -> bool:
        ask = DerivedTrial(made, "+gold_search_1", CASES[0], ROW, searches=searches)
        return ask.is_answered_by(make_row(stages=list(steps), **asked))

    gold, stopped = GivenSearches({2: HITS}), GivenSearches(last=1)
    ids = [hit.chunk.chunk_id for hit in HITS]
    first = searched(1, "x#0", given=False)
    assert fits(gold, first, searched(2, *ids, given=True))
    assert not fits(gold, first, searched(2, *ids, given=False))
    assert not fits(gold, first, searched(2, "y#0", given=True))
    assert not fits(gold, searched(1, *ids, given=True), searched(2, *ids, given=True))
    assert fits(stopped, first, searched(2, given=True))
    assert not fits(stopped, first, searched(2, "y#0", given=False))


def test_what_is_there_is_run_again_where_it_is_to_be_overwritten(tmp_path: Path) -> None:
    there, loop = Elsewhere(), InlineLoop[Any]()
    for overwrite, asked in ((False, 1), (False, 1), (True, 2)):
        runs = DerivedRuns(tmp_path, Settings(overwrite=overwrite), Lazy(lambda: loop), Lazy(lambda: there))
        runs.run(_asks()[:1])
        runs.close()
        assert len(there.asked) == asked
    loop.close()


def test_an_engine_that_was_stopped_has_no_answer(tmp_path: Path) -> None:
    class Stopped:
        def submit(self, key: Any, job: Any) -> None: ...

        def result(self, key: Any) -> Any:
            raise CancelledError

        def forget(self, key: Any) -> None: ...

    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: cast("Engine", Stopped())), Lazy(Elsewhere))
    assert set(runs.run(_asks()).values()) == {"the run was stopped"}
