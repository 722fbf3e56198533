"""What decides the rows of an experiment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.concurrency import Lazy
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN
from rag_harness.models.recording.cassettes import OWN
from rag_harness.runs.fingerprint import Identities


@pytest.mark.parametrize(("name", "digest"), [("e3", "of e3"), (GOLDEN, "of the golden suite"), ("mine", "of mine")])
def test_the_golden_suite_has_questions_of_its_own(name: str, digest: str) -> None:
    parts: Any = SimpleNamespace(data=lambda data: SimpleNamespace(queries_digest=f"of {data}"))
    golden: Any = SimpleNamespace(digest="of the golden suite")
    experiment: Any = SimpleNamespace(id=name, data=name)
    identities = Identities(Lazy(Settings), Lazy(lambda: parts), Lazy(lambda: golden), lambda _: False)
    assert identities.queries_digest(experiment) == digest


@pytest.mark.parametrize(
    ("mode", "seconds", "may_be"), [("replay", 99, True), ("replay", 100, False), ("live", 99, False)]
)
def test_only_what_a_run_would_replay_and_was_recorded_later_is_another_answer(
    monkeypatch: pytest.MonkeyPatch, mode: Any, seconds: float, may_be: bool
) -> None:
    monkeypatch.setattr("rag_harness.models.recording.cassettes.last_written", lambda _: 100.0)
    nothing: Any = Lazy(object)
    identities = Identities(Lazy(lambda: Settings(mode=mode)), nothing, nothing, lambda _: False)
    assert identities.has_recorded_since("e3", seconds) is may_be
    assert identities.has_recorded_since("e3", 101) is False


@pytest.mark.parametrize(
    ("suite", "traced", "folder"), [("e3", (), "embedded"), ("e3", ("e3",), OWN), (GOLDEN, (), "embedded")]
)
def test_recordings_are_looked_for_where_a_suite_has_them(
    monkeypatch: pytest.MonkeyPatch, suite: str, traced: tuple[str, ...], folder: str
) -> None:
    looked: list[Path] = []

    def last_written(folder: Path) -> float:
        looked.append(folder)
        return 7.0

    monkeypatch.setattr("rag_harness.models.recording.cassettes.last_written", last_written)
    nothing: Any = Lazy(object)
    settings = Settings(rootdir="/suite")
    identities = Identities(Lazy(lambda: settings), nothing, nothing, traced.__contains__)
    assert [identities.recorded_last(suite) for _ in range(2)] == [7.0, 7.0]
    assert looked == [settings.folder("cassettes") / folder]
