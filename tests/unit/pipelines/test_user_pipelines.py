"""What pipelines of users return: forms of frameworks, steps of agents, and too many contexts."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import AnswerPaths
from rag_harness.core.types import (
    Answer,
    Case,
    Chunk,
    Completion,
    Document,
    Hit,
    Message,
    PipelineOutput,
    Query,
    Stage,
    Usage,
)
from rag_harness.pipelines.endpoint.answer import AnswerReader, Context, Placing
from rag_harness.pipelines.trace import GivenSearches, StepTrace, giving
from rag_harness.pipelines.user_pipelines import output_of
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import Trial, run_trial
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import as_json, serving

# What pipelines return in the forms of their frameworks is read alike; what is not understood is named.

SAID, TEXT, PAGE = "45 days", "Lamps can be returned within 45 days.", "returns.md"


class Model(BaseModel):
    answer: str
    contexts: list[str]


@dataclass
class Held:
    response: str
    sources: list[dict[str, str]] = field(default_factory=list)


def langchain(**more: Any) -> Any:
    return SimpleNamespace(page_content=TEXT, metadata={"source": PAGE}, **more)


NODE = SimpleNamespace(text=TEXT, id_="n7", metadata={"file_name": PAGE, "page_label": "3"})
HAYSTACK = SimpleNamespace(content=TEXT, meta={"file_path": PAGE}, id="d1", score=0.5)

NAMED: dict[str, Any] = {
    "a pair of text and mappings": (SAID, [{"text": TEXT, "source": PAGE}]),
    "a mapping": {"answer": SAID, "contexts": [{"content": TEXT, "document_id": PAGE}]},
    "a mapping with metadata": {"result": SAID, "source_documents": [{"text": TEXT, "metadata": {"path": PAGE}}]},
    "a dataclass": Held(SAID, [{"text": TEXT, "source": PAGE}]),
    "LangChain": {"answer": SAID, "context": [langchain()]},
    "LangChain, a message": {"answer": SimpleNamespace(content=SAID), "context": [langchain()]},
    "LangChain, with scores": (SAID, [(langchain(), 0.5)]),
    "LlamaIndex": SimpleNamespace(response=SAID, source_nodes=[SimpleNamespace(node=NODE, score=0.5)]),
    "Haystack": {"llm": {"replies": [SAID], "documents": [HAYSTACK]}},
    "Haystack, answers": {"answer_builder": {"answer": SimpleNamespace(data=SAID), "documents": [HAYSTACK]}},
    "hits": {"answer": SAID, "hits": [Hit(Chunk("a", PAGE, TEXT), 0.5, 1)]},
    "chunks": (SAID, [Chunk("a", PAGE, TEXT)]),
}


@pytest.mark.parametrize("form", NAMED)
def test_answer_context_and_page_are_read(form: str) -> None:
    output = output_of(NAMED[form], "mine")
    assert output.answer.text == SAID
    assert [(hit.chunk.doc_id, hit.chunk.text, hit.rank) for hit in output.context] == [(PAGE, TEXT, 1)]
    assert output.retrieved == output.context


@pytest.mark.parametrize(
    "returned",
    [Model(answer=SAID, contexts=[TEXT]), {"answer": SAID, "contexts": [TEXT]}, (SAID, [TEXT]), [SAID, (TEXT,)]],
)
def test_contexts_may_be_texts_alone(returned: Any) -> None:
    output = output_of(returned, "mine")
    assert (output.answer.text, [hit.chunk.text for hit in output.context]) == (SAID, [TEXT])


@pytest.mark.parametrize("returned", [SAID, Answer(SAID), PipelineOutput(Answer(SAID)), {"text": SAID}])
def test_an_answer_may_come_alone(returned: Any) -> None:
    output = output_of(returned, "mine")
    assert (output.answer.text, output.context) == (SAID, ())


def test_scores_and_ids_are_kept() -> None:
    node = SimpleNamespace(response=SAID, source_nodes=[SimpleNamespace(node=NODE, score=0.5)])
    (hit,) = output_of(node, "mine").context
    assert (hit.chunk.chunk_id, hit.score, hit.source) == ("n7", 0.5, "pipeline")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "mine returned NoneType"),
        (45, "mine returned int"),
        ({"reply_text": SAID}, "mine returned dict with reply_text"),
        ((SAID, 3), "mine returned tuple of str, int"),
        ((SAID, [object()]), "mine returned the context object"),
        ({"answer": SAID, "contexts": [{"body": TEXT}]}, "mine returned the context dict with body"),
        (SimpleNamespace(said=SAID), "mine returned SimpleNamespace with said"),
    ],
)
def test_what_is_not_understood_is_named_with_what_is(returned: Any, said: str) -> None:
    with pytest.raises(TypeError, match="Read as one: a pair of text and contexts") as caught:
        output_of(returned, "mine")
    assert str(caught.value).startswith(said)


# What an agent does becomes steps, in their order, and what the harness gives in place of a search is used.

PAGES = {"lamp": ["returns.md#0", "lamps.md#0"], "refund": ["returns.md#0", "refunds.md#0"], "moon": []}


def hits(*ids: str) -> list[Hit]:
    return [Hit(Chunk(each, each.partition("#")[0], each), 1.0, n) for n, each in enumerate(ids, 1)]


def look_up(query: str, k: int) -> list[Hit]:
    return hits(*PAGES[query][:k])


class Says:
    """A model that says one thing."""

    model = "scripted"

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        return Completion("45 days", self.model, Usage(10, 2, 1), 7.0)


async def an_agent() -> PipelineOutput:
    with StepTrace() as trace:
        await trace.search(look_up, "lamp", 5)
        found = await trace.search(look_up, "refund", 5, pages=["refunds.md"])
        price = await trace.tool("price", lambda sku: {"eur": len(sku)}, sku="T-18")
        trace.context = found
        said = await trace.complete(Says(), [Message("user", str(price))])
        return trace.output(Answer(said.text))


def test_each_search_and_each_tool_is_a_step_with_what_went_in_and_came_out() -> None:
    output = asyncio.run(an_agent())
    told = [(step.name, step.kind, step.input, step.output) for step in output.stages]
    assert told == [
        ("search", "retrieve", "lamp", None),
        ("search", "retrieve", {"query": "refund", "pages": ["refunds.md"]}, None),
        ("price", "tool", {"sku": "T-18"}, {"eur": 4}),
        ("generate", "generate", None, None),
    ]
    assert [[hit.chunk.chunk_id for hit in step.hits] for step in output.stages[:2]] == [PAGES["lamp"], PAGES["refund"]]
    assert (output.stages[3].ms, output.usage.calls, output.model) == (7.0, 1, "scripted")


def test_what_is_retrieved_is_the_union_in_the_order_in_which_it_was_found() -> None:
    output = asyncio.run(an_agent())
    assert [hit.chunk.chunk_id for hit in output.retrieved] == ["returns.md#0", "lamps.md#0", "refunds.md#0"]
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]


def test_given_hits_are_used_in_place_of_the_search_of_their_number() -> None:
    gold = tuple(hits("gold.md#0"))

    async def run() -> PipelineOutput:
        with giving(GivenSearches({2: gold})):
            return await an_agent()

    first, second, *_ = asyncio.run(run()).stages
    assert [hit.chunk.chunk_id for hit in first.hits] == PAGES["lamp"]
    assert (second.hits, second.detail["given"], "given" in first.detail) == (gold, True, False)
    # Outside of the block every search is made.
    assert not any("given" in step.detail for step in asyncio.run(an_agent()).stages)


def test_after_the_last_search_nothing_is_found() -> None:
    async def run() -> PipelineOutput:
        with giving(GivenSearches(last=1)):
            return await an_agent()

    first, second, *_ = asyncio.run(run()).stages
    assert (len(first.hits), second.hits) == (2, ())


def test_a_step_inside_a_step_counts_its_time_once() -> None:
    async def run() -> StepTrace:
        trace = StepTrace()
        with trace.step("plan", "decide"):
            await trace.tool("wait", asyncio.sleep, delay=0.05)
        return trace

    plan, wait = asyncio.run(run()).steps
    assert wait.ms >= 45
    assert plan.ms < 40


def test_an_error_stands_in_its_step_and_carries_how_far_the_trial_came() -> None:
    def breaks() -> None:
        raise OSError("no such page")

    async def run() -> None:
        with StepTrace() as trace:
            await trace.search(look_up, "lamp", 1)
            await trace.tool("page", breaks)

    with pytest.raises(OSError, match="no such page") as caught:
        asyncio.run(run())
    trace = caught.value.rag_trace  # type: ignore[attr-defined]
    assert trace.failed_stage == "page"
    assert trace.steps[1].detail == {"error": "OSError: no such page"}


def test_an_error_between_steps_carries_the_trace_too() -> None:
    async def run() -> None:
        with StepTrace() as trace:
            await trace.search(look_up, "moon", 1)
            raise ValueError("nothing was found")

    with pytest.raises(ValueError, match="nothing") as caught:
        asyncio.run(run())
    assert [step.input for step in caught.value.rag_trace.steps] == ["moon"]  # type: ignore[attr-defined]


def test_steps_at_once_keep_their_own_hits() -> None:
    async def run() -> StepTrace:
        trace = StepTrace()
        await asyncio.gather(trace.search(look_up, "lamp", 1), trace.search(look_up, "refund", 2))
        return trace

    trace = asyncio.run(run())
    assert [(step.detail["search"], step.input, len(step.hits)) for step in trace.steps] == [
        (1, "lamp", 1),
        (2, "refund", 2),
    ]


def test_a_note_goes_to_the_last_step_of_its_name() -> None:
    trace = StepTrace()
    for query in ("a", "b"):
        with trace.step("search", "retrieve", query):
            pass
    trace.note("search", fused=True)
    trace.note("plan", parts=2)
    assert [(step.name, step.detail) for step in trace.steps] == [
        ("search", {}),
        ("search", {"fused": True}),
        ("plan", {"parts": 2}),
    ]


# An answer with too many contexts is a failed trial, whoever returns them; others take little memory.

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


def many_hits(number: int) -> tuple[Hit, ...]:
    return tuple(Hit(Chunk(f"d{n}.md#{n}", f"d{n}.md", "words"), 1 / (n + 1), n + 1) for n in range(number))


@pytest.mark.parametrize(
    "returned",
    [
        ("So.", ["words"] * 31),
        {"answer": "So.", "contexts": ["words"] * 31},
        PipelineOutput(Answer("So."), context=many_hits(31)),
        PipelineOutput(Answer("So."), retrieved=many_hits(31)),
        PipelineOutput(Answer("So."), stages=(Stage("retrieve", 1.0, hits=many_hits(31)),)),
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
