"""What workers of a cluster hand over when they start: rows of an earlier run, which are then not paid for again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.frontends.pytest_plugin.trials import TrialRunner
from rag_harness.records.manifest import repeat_fingerprint
from rag_harness.runs import distributed
from rag_harness.runs.journal import JOURNALS
from rag_harness.runs.trial import Trial
from tests.unit.rows import make_row

ROW = make_row(experiment="mine", query_id="q1", query="?", fingerprint="print")
AGAIN = make_row(experiment="mine+repeat2", query_id="q1", query="?", fingerprint=repeat_fingerprint("print", 2))
MINE = Experiment("mine", SimpleNamespace(answer=str))


class Cluster:
    """Has kept rows, on the disk of a node."""

    is_here, ask = False, None

    def __init__(self, settings: Settings, *_: object) -> None:
        self._journals = Path(settings.output) / JOURNALS

    async def open(self) -> None:
        (self._journals / "earlier-run-ray1.jsonl").write_text(ROW.line() + AGAIN.line())

    async def answer(self, *_: object) -> Any:
        raise AssertionError("it was paid for already")

    async def aclose(self) -> None: ...


def _session(settings: Settings) -> Any:
    async def close_models() -> None: ...

    return SimpleNamespace(
        config=SimpleNamespace(getoption=lambda *_: False),
        settings=settings,
        share=settings,
        output=Path(settings.output),
        cases=SimpleNamespace(renewed=lambda trial, _: trial),
        identities=SimpleNamespace(fingerprint=lambda _: "print", is_renewed=lambda _: False),
        wanted=SimpleNamespace(judged_measures=lambda *_: []),
        close_models=close_models,
    )


@pytest.mark.parametrize("has_looked_before", [True, False])
def test_a_row_that_was_on_a_node_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_looked_before: bool
) -> None:
    monkeypatch.setattr(distributed, "RayWorkplace", Cluster)
    trials = TrialRunner(_session(Settings(engine="ray", output=str(tmp_path))))
    if has_looked_before:
        assert trials.stored(Trial("mine", Case(Query("q0", "?"))), MINE) is None
    assert not trials._submit_if_new(Trial("mine", Case(Query("q1", "?"))), MINE)
    assert trials.stored(Trial("mine", Case(Query("q1", "?"))), MINE) == (ROW, True)
    trials.equipment.close()
    assert (tmp_path / "mine.jsonl").read_text() == ROW.line()


def test_a_repeat_that_was_on_a_node_is_not_made_again_where_the_first_answer_was_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "RayWorkplace", Cluster)
    (tmp_path / "mine.jsonl").write_text(ROW.line())
    trials = TrialRunner(_session(Settings(engine="ray", output=str(tmp_path), repeats=2)))
    trial = Trial("mine", Case(Query("q1", "?")))
    assert trials._submit_if_new(trial, MINE)
    assert trials.answered_again(trial.id) == ((), ())
    trials.equipment.close()
    assert (tmp_path / "derived" / "mine+repeat2.jsonl").read_text() == AGAIN.line()
