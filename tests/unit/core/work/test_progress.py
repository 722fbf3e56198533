"""Long work reports its progress to listeners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rag_harness.core import progress
from rag_harness.core.progress import LinesOfWork, ProgressText, listening, report
from rag_harness.models import array_store
from rag_harness.models.array_store import CachedEmbedder


def test_a_report_reaches_those_who_listen_and_nobody_else() -> None:
    heard: list[tuple[Any, ...]] = []
    report("before", 0, 1)
    with listening(lambda *said: heard.append(said)):
        report("embedding", 1, 2, "chunks")
    report("after", 0, 1)
    assert heard == [("embedding", 1, 2, "chunks")]


class Memory:
    def __init__(self) -> None:
        self.kept: dict[bytes, Any] = {}

    def get(self, keys: Any) -> list[Any]:
        return [self.kept.get(key) for key in keys]

    def put(self, items: Any) -> None:
        self.kept.update({key: np.atleast_2d(value) for key, value in items.items()})


class Model:
    model, revision, dimension, max_tokens = "m", "1", 2, 100

    def tokenizer(self) -> Any:
        return self

    def count(self, texts: list[str]) -> list[int]:
        return [1] * len(texts)

    def embed_documents(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 2), np.float32)

    embed_queries = embed_documents


def test_an_embedder_reports_each_part_it_has_computed_and_nothing_where_all_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(array_store, "_CHECKPOINT", 2)
    embedder, heard = CachedEmbedder(Model(), Memory()), []
    with listening(lambda *said: heard.append(said)):
        embedder.embed_documents(["a", "bb", "ccc"])
        embedder.embed_documents(["a", "bb", "ccc"])
        embedder.embed_queries(["q"])
    chunks = [("embedding", done, 3, "chunks") for done in (0, 2, 3)]
    assert heard == [*chunks, ("embedding", 0, 1, "queries"), ("embedding", 1, 1, "queries")]


def test_what_was_heard_says_how_long_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    work = ProgressText()
    assert work.text() == ""
    work.hear("embedding", 0, 1830, "chunks")
    assert work.text() == "embedding 1,830 chunks: starting"
    now = 110.0
    work.hear("embedding", 610, 1830, "chunks")
    assert work.text() == "embedding 610/1,830 chunks, 61/s, 0:20 left"
    now = 115.0
    assert work.text() == "embedding 610/1,830 chunks, 61/s, 0:15 left"
    work.hear("embedding", 1830, 1830, "chunks")
    assert work.text() == ""


def test_work_that_began_before_anybody_listened_is_timed_from_what_was_heard_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    work = ProgressText()
    work.hear("embedding", 500, 1000, "chunks")
    now = 10.0
    work.hear("embedding", 600, 1000, "chunks")
    assert work.text() == "embedding 600/1,000 chunks, 10/s, 0:40 left"


def test_work_is_timed_through_other_work_that_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    work = ProgressText()
    work.hear("sending", 0, 4000, "chunks")
    for done in (1000, 2000):
        work.hear("embedding", 0, 1000, "chunks")
        now += 10.0
        work.hear("embedding", 1000, 1000, "chunks")
        work.hear("sending", done, 4000, "chunks")
        assert work.text().startswith(f"sending {done:,}/4,000 chunks, 100/s, ")
    work.hear("sending", 0, 4000, "chunks")
    assert work.text() == "sending 4,000 chunks: starting"


def test_the_first_step_is_not_taken_for_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have loaded a model."""
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    work = ProgressText()
    work.hear("embedding", 0, 1000, "chunks")
    now = 60.0
    work.hear("embedding", 10, 1000, "chunks")
    assert work.text() == "embedding 10/1,000 chunks"
    now = 62.0
    work.hear("embedding", 30, 1000, "chunks")
    assert work.text() == "embedding 30/1,000 chunks, 10/s, 1:37 left"
    now = 65.0
    work.hear("embedding", 60, 1000, "chunks")
    assert work.text() == "embedding 60/1,000 chunks, 10/s, 1:34 left"


# Lines about long work: the first one soon, none twice, and the longer it takes the fewer.


class Clock:
    """Ends after the last text; ``pauses`` are the seconds that were waited."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.pauses, self.at = list(texts), list[float](), 0.0

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.at += seconds
        return len(self.pauses) > len(self.texts)

    def text(self) -> str:
        return self.texts[len(self.pauses) - 1]


def said(texts: Sequence[str]) -> tuple[list[tuple[float, str]], list[float]]:
    clock, found = Clock(texts), list[tuple[float, str]]()
    lines = LinesOfWork(clock.text, lambda text: found.append((clock.at, text)))
    lines._ended = clock  # type: ignore[assignment]
    lines._lines()
    return found, clock.pauses


def test_the_time_between_lines_doubles() -> None:
    found, pauses = said([f"embedding {n}/9" for n in range(9)])
    assert [at for at, _ in found] == [2, 4, 8, 16, 32, 62, 92, 122]
    assert pauses == [1, 1, 2, 4, 8, 16, 30, 30, 30, 30]


def test_no_line_is_said_twice() -> None:
    found, _ = said(["reading", *["embedding 9 chunks: starting"] * 50, "embedding 1/9"])
    assert [text for _, text in found] == ["embedding 9 chunks: starting", "embedding 1/9"]
    found, _ = said([f"embedding 1/9, 0:{n} left" for n in range(20, 9, -1)])
    assert len(found) == 1, "less time left is no news"


def test_short_work_is_not_said_and_later_work_is_said_soon() -> None:
    found, pauses = said(["", "short", "", "", "a", "b", "c", "", "d", "e"])
    assert [text for _, text in found] == ["b", "c", "e"]
    assert pauses[-2:] == [1, 2]


@pytest.mark.parametrize("text", ["", "work"])
def test_it_ends_with_the_block_at_once(text: str) -> None:
    with LinesOfWork(lambda: text, lambda _: None) as none:
        assert none is None
