"""An answer with too many contexts is a failed trial, whoever returns them; others take little memory."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import AnswerPaths
from rag_harness.core.types import Answer, Case, Chunk, Document, Hit, PipelineOutput, Query, Stage
from rag_harness.pipelines.endpoint.answer import AnswerReader, Context, Placing
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import Trial, run_trial
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import as_json, serving

SETTINGS = Settings(profile="mock", mode="replay", max_contexts=30)
READ = '[read]\ncontexts = "contexts"\n'


class Returning:
    """A pipeline that returns what it is given."""

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    async def answer(self, query: Query) -> Any:
        return self._returned


def row_of(returned: Any, settings: Settings = SETTINGS) -> ExperimentResult:
    trial = Trial("e", Case(Query("q", "Why?")))
    loop = asyncio.new_event_loop()
    try:
        row = loop.run_until_complete(run_trial(trial, Returning(returned), settings, "f")).row
    finally:
        loop.close()
    assert row is not None
    return row


def hits(number: int) -> tuple[Hit, ...]:
    return tuple(Hit(Chunk(f"d{n}.md#{n}", f"d{n}.md", "words"), 1 / (n + 1), n + 1) for n in range(number))


@pytest.mark.parametrize(
    "returned",
    [
        ("So.", ["words"] * 31),
        {"answer": "So.", "contexts": ["words"] * 31},
        PipelineOutput(Answer("So."), context=hits(31)),
        PipelineOutput(Answer("So."), retrieved=hits(31)),
        PipelineOutput(Answer("So."), stages=(Stage("retrieve", 1.0, hits=hits(31)),)),
    ],
)
def test_too_many_contexts_are_a_failed_trial_and_none_is_left_out(returned: Any) -> None:
    row = row_of(returned)
    assert row.error is not None
    assert row.error.type == "ModelOutputError"
    assert "returned 31 contexts, and 30 are taken at most" in row.error.message
    assert row.error.message.endswith("max_contexts in [tool.rag_harness.settings]")
    assert not row.retrieved_chunks


@pytest.mark.parametrize("more", [{}, {"max_contexts": 2, "candidates": 30}, {"max_contexts": 2, "top_k": 30}])
def test_as_many_as_a_run_asks_for_are_taken(more: dict[str, Any]) -> None:
    row = row_of(("So.", ["words"] * 30), Settings(**{"profile": "mock", "mode": "replay", "max_contexts": 30, **more}))
    assert (row.ok, len(row.retrieved_chunks)) == (True, 30)


def test_100_000_contexts_of_a_service_are_refused_at_once(tmp_path: Path) -> None:
    contexts = [f"text {number}" for number in range(100_000)]
    with serving(as_json({"answer": "So.", "contexts": contexts})) as server:
        service = Service(tmp_path, f'url = "{server.url}/query"\n{READ}')
        begun = time.process_time()
        with pytest.raises(ModelOutputError, match="my_service returned 100,000 contexts, and 1,000 are taken at most"):
            service.ask()
        assert time.process_time() - begun < 3


def test_a_service_may_return_as_many_as_the_option_says(tmp_path: Path) -> None:
    with serving(as_json({"answer": "So.", "contexts": ["a", "b"]})) as server:
        assert len(Service(tmp_path, f'url = "{server.url}/query"\n{READ}', max_contexts=2).ask().context) == 2
        with pytest.raises(ModelOutputError, match="returned 2 contexts, and 1 are taken"):
            Service(tmp_path, f'url = "{server.url}/query"\n{READ}', max_contexts=1, top_k=1, candidates=1).ask()


def test_the_documents_of_a_trace_have_the_same_limit() -> None:
    placing = Placing(lambda: (), "traced", "search", most=2)
    assert len(placing.place([Context("a"), Context("b")]).hits) == 2
    with pytest.raises(ModelOutputError, match="traced returned 3 contexts, and 2 are taken"):
        placing.place([Context("a")] * 3)


@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_context_takes_little_memory_beyond_its_text(letter: str) -> None:
    """At most 1 kB of each at any moment, and 0.6 kB in the row. A text that is no ASCII is not copied, either."""
    number = 1000
    texts = [f"{n} {letter * 100}" for n in range(number)]
    items = [{"text": text, "id": f"c{n}", "document": f"d{n % 50}.md", "score": 0.5} for n, text in enumerate(texts)]
    documents = [Document(f"d{n}.md", text, f"D{n}") for n, text in enumerate(texts[:50])]
    reader, placing = AnswerReader(AnswerPaths(contexts="contexts"), "s"), Placing(lambda: documents, "s")

    def ask(taken: list[dict[str, Any]]) -> ExperimentResult:
        placed = placing.place(reader.read({"answer": "So.", "contexts": taken}).contexts)
        output = PipelineOutput(Answer("So."), retrieved=placed.hits, context=placed.hits)
        return row_of(output, Settings(profile="mock", mode="replay"))

    assert ask(items[:1]).ok  # imports, indexes and caches
    tracemalloc.start()
    try:
        row = ask(items)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(row.retrieved_chunks) == len(row.candidates) == number
    assert kept / number < 600
    assert peak / number < 1000
