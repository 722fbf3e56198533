"""An app is asked below a root span of its own: its spans, texts and times come to its trial."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from rag_harness.core.concurrency import Deadline
from rag_harness.core.errors import ModelOutputError, PrerequisiteError, TraceError
from rag_harness.core.types import Answer, Call, Document, PipelineOutput, Query, Stage, Usage
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.playback import AppCalls
from rag_harness.models.recording.scrubbing import CleanedRequest
from rag_harness.pipelines.endpoint.answer import Placing
from rag_harness.pipelines.otel import in_process
from rag_harness.pipelines.otel.in_process import _attached as attached
from rag_harness.pipelines.otel.in_process import new_provider
from rag_harness.pipelines.otel.steps import read_trace
from rag_harness.pipelines.traced_app import TracedPipeline, as_recorded, output_of_trace
from tests.unit.pipelines.otel.spans import genai, reranker, search

# An app is asked below a root span of its own, and each of its spans comes to its trial; what is lost is an error.

TEXT = "You can return a lamp within 45 days"
ASKED = Query("q1", "return a lamp")


class App:
    """Searches, and answers with what it found; ``work`` is how the search is called."""

    def __init__(self, provider: Any, work: Callable[[Callable[[], str]], str] = lambda search: search()) -> None:
        self.tracer = provider.get_tracer("app")
        self._work = work

    def __call__(self, question: str) -> str:
        with self.tracer.start_as_current_span("app", attributes={"openinference.span.kind": "CHAIN"}):
            return self._work(lambda: self.search(question))

    def search(self, question: str, documents: int = 1) -> str:
        with self.tracer.start_as_current_span("search") as span:
            span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": question})
            for n in range(documents):
                span.set_attribute(f"retrieval.documents.{n}.document.id", f"{question}-{n}")
                span.set_attribute(f"retrieval.documents.{n}.document.content", f"{TEXT} {question} {n}")
            return TEXT


def asked(app: Any, provider: Any, query: Query = ASKED, **given: Any) -> PipelineOutput:
    return asyncio.run(TracedPipeline(app, provider, "mine", **given).answer(query))


@pytest.fixture
def provider() -> TracerProvider:
    return new_provider()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "LATE_SECONDS", 0.2)


def test_the_spans_become_the_output(provider: TracerProvider) -> None:
    output = asked(App(provider), provider)
    assert output.answer.text == TEXT
    (step,) = output.stages
    assert (step.kind, step.name, step.input) == ("retrieve", "search", "return a lamp")
    assert [hit.chunk.text for hit in output.retrieved] == [f"{TEXT} return a lamp 0"]
    assert [hit.chunk.text for hit in step.hits] == [f"{TEXT} return a lamp 0"]
    assert len(output.trace_id) == 32
    assert output.total_ms is not None
    assert output.total_ms >= step.ms


def test_documents_are_found_by_their_text(provider: TracerProvider) -> None:
    page = Document("returns.md", f"# Returns\n\n{TEXT} return a lamp 0\n", "Returns")
    placing = Placing(lambda: [page], "mine", "search")
    output = asked(App(provider), provider, placing=placing)
    assert [hit.chunk.doc_id for hit in output.retrieved] == ["returns.md"]


def test_an_async_app_and_one_with_a_method_are_asked_as_they_are(provider: TracerProvider) -> None:
    app = App(provider)

    async def ask(question: str) -> dict[str, str]:
        return {"answer": await asyncio.to_thread(app, question)}

    class Shop:
        def answer(self, query: Query) -> PipelineOutput:
            return PipelineOutput(Answer(app(query.text), citations=(1,)), confidence=0.5)

    assert len(asked(ask, provider).retrieved) == 1
    output = asked(Shop(), provider)
    assert (output.answer.citations, output.confidence, len(output.retrieved)) == ((1,), 0.5, 1)


def test_64_trials_at_once_get_their_own_spans(provider: TracerProvider) -> None:
    app = App(provider)

    async def slow(question: str) -> str:
        await asyncio.sleep(0.001 * (hash(question) % 7))
        return await asyncio.to_thread(app, question)

    async def all_of_them() -> list[PipelineOutput]:
        pipeline = TracedPipeline(slow, provider, "mine")
        return list(await asyncio.gather(*(pipeline.answer(Query(f"q{n}", f"number {n}")) for n in range(64))))

    for n, output in enumerate(asyncio.run(all_of_them())):
        assert [step.input for step in output.stages] == [f"number {n}"]
        assert [hit.chunk.text for hit in output.retrieved] == [f"{TEXT} number {n} 0"]


def _in_a_pool(search: Callable[[], str]) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(search).result()


def _in_a_pool_with_context(search: Callable[[], str]) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, search).result()


def test_a_bare_pool_loses_the_trial_and_the_error_says_how_to_keep_it(provider: TracerProvider) -> None:
    with pytest.raises(TraceError) as raised:
        asked(App(provider, _in_a_pool), provider)
    assert "contextvars.copy_context().run" in str(raised.value)
    assert raised.value.raw == TEXT
    assert len(asked(App(provider, _in_a_pool_with_context), provider).retrieved) == 1


def test_more_attributes_than_the_sdk_keeps_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", raising=False)
    usual, ours = TracerProvider(), new_provider()
    for provider in (usual, ours):
        app = App(provider)
        app._work = lambda _, app=app: app.search("lamp", documents=80)  # type: ignore[misc]
        if provider is usual:
            with pytest.raises(TraceError, match="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"):
                asked(app, provider)
        else:
            assert len(asked(app, provider).retrieved) == 80


def test_texts_that_are_cut_are_an_error() -> None:
    provider = TracerProvider(span_limits=SpanLimits(max_span_attribute_length=10))
    with pytest.raises(TraceError, match="was cut at 10 characters"):
        asked(App(provider), provider)


@pytest.mark.parametrize("where", ["list", "event"])
def test_texts_that_are_cut_within_lists_and_events_are_an_error(where: str) -> None:
    provider = TracerProvider(span_limits=SpanLimits(max_span_attribute_length=10, max_attribute_length=10))

    def answer(question: str) -> str:
        with provider.get_tracer("app").start_as_current_span("model") as span:
            if where == "list":
                span.set_attribute("llm.prompts", ["short", f"{TEXT} and more"])
            else:
                span.add_event("gen_ai.user.message", {"content": f"{TEXT} and more"})
        return "45 days"

    with pytest.raises(TraceError, match="was cut at 10 characters"):
        asked(answer, provider)


def test_no_span_is_an_error_that_says_where_to_instrument(provider: TracerProvider) -> None:
    with pytest.raises(TraceError, match="No span came from the app"):
        asked(lambda _: "45 days", provider)
    other = new_provider()
    with pytest.raises(TraceError, match="No span came from the app"):
        asked(App(other), provider)


@pytest.mark.parametrize(
    "provider", [trace.NoOpTracerProvider(), TracerProvider(sampler=ALWAYS_OFF)], ids=["none", "sampled away"]
)
def test_without_a_provider_that_records_nothing_is_asked(provider: Any) -> None:
    was_asked: list[str] = []
    with pytest.raises(PrerequisiteError, match="Nothing was asked"):
        asked(was_asked.append, provider)
    assert was_asked == []


def test_a_span_that_ends_late_is_waited_for(provider: TracerProvider) -> None:
    app = App(provider)

    def answer(question: str) -> str:
        late = contextvars.copy_context()

        def search() -> None:
            with app.tracer.start_as_current_span("search") as span:
                began.set()
                span.set_attribute("openinference.span.kind", "RETRIEVER")
                go_on.wait(5)
                span.set_attributes({"retrieval.documents.0.document.content": question})

        began, go_on = threading.Event(), threading.Event()
        threading.Thread(target=late.run, args=(search,)).start()
        began.wait(5)
        threading.Timer(0.1, go_on.set).start()
        return TEXT

    assert len(asked(answer, provider).retrieved) == 1


@pytest.mark.usefixtures("impatient")
def test_a_span_that_never_ends_is_an_error(provider: TracerProvider) -> None:
    tracer = provider.get_tracer("app")

    def answer(_: str) -> str:
        tracer.start_span("search", attributes={"openinference.span.kind": "RETRIEVER"})
        return TEXT

    with pytest.raises(TraceError, match="had not ended") as raised:
        asked(answer, provider)
    assert raised.value.raw == TEXT


def test_the_row_of_an_app_that_raises_shows_how_far_it_came(provider: TracerProvider) -> None:
    def broken(search: Callable[[], str]) -> str:
        search()
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model") as raised:
        asked(App(provider, broken), provider)
    assert [step.name for step in raised.value.rag_trace.output(Answer("")).stages] == ["search"]  # type: ignore[attr-defined]


def test_spans_of_one_trial_hold_nothing_of_the_caller_s(provider: TracerProvider) -> None:
    # A suite may trace its own tests; their spans stay theirs.
    with provider.get_tracer("suite").start_as_current_span("a test") as around:
        output = asked(App(provider), provider)
    assert output.trace_id != f"{around.get_span_context().trace_id:032x}"


def test_what_cannot_be_asked_is_named(provider: TracerProvider) -> None:
    with pytest.raises(PrerequisiteError, match="rag_traced"):
        TracedPipeline(object())
    with pytest.raises(ModelOutputError, match="no text is found"):
        asked(lambda question: {"rows": App(provider)(question), "more": 1}, provider)


class Worker:
    """A thread that searches for whoever asks, in the context that it was begun in, or in that of who asks."""

    def __init__(self, app: App, with_context: bool = False) -> None:
        self.app, self._with_context = app, with_context
        self._work: queue.Queue[Any] = queue.Queue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=lambda: context.run(self._run), name="searcher", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (asked := self._work.get()) is not None:
            question, context, done = asked
            search = self.app.search
            done.set_result(context.run(search, question) if self._with_context else search(question))

    def __call__(self, question: str) -> str:
        self.start()
        done: Future[str] = Future()
        self._work.put((question, contextvars.copy_context(), done))
        return done.result(5)

    def stop(self) -> None:
        self._work.put(None)


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_a_trial_has_started_gives_no_span_to_another(provider: TracerProvider) -> None:
    worker = Worker(App(provider))
    pipeline = TracedPipeline(lambda question: App(provider, lambda _: worker(question))(question), provider, "mine")

    async def both() -> list[Any]:
        asked = (pipeline.answer(Query(f"q{n}", f"number {n}")) for n in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    for found in (asyncio.run(both()), asyncio.run(both())):
        assert all(isinstance(each, TraceError) for each in found)
        assert any("copy_context()" in str(each) for each in found)
    worker.stop()


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_takes_up_the_context_of_each_question_is_fine(provider: TracerProvider) -> None:
    worker = Worker(App(provider), with_context=True)
    worker.start()
    for question in ("a", "b"):
        app = App(provider, lambda _, question=question: worker(question))  # type: ignore[misc]
        output = asked(app, provider, Query("q", question))
        assert [step.input for step in output.stages] == [question]
    worker.stop()


@pytest.mark.usefixtures("impatient")
def test_a_task_that_a_trial_has_started_gives_no_span_to_another(provider: TracerProvider) -> None:
    app = App(provider)

    async def both() -> list[Any]:
        work: asyncio.Queue[Any] = asyncio.Queue()
        tasks: list[asyncio.Task[None]] = []

        async def run() -> None:
            while True:
                question, done = await work.get()
                done.set_result(app.search(question))

        async def ask(question: str) -> str:
            tasks.extend([] if tasks else [asyncio.create_task(run(), name="searcher")])
            done = asyncio.get_running_loop().create_future()
            await work.put((question, done))
            return str(await done)

        pipeline = TracedPipeline(ask, provider, "mine")
        found = await asyncio.gather(*(pipeline.answer(Query(q, q)) for q in "ab"), return_exceptions=True)
        tasks[0].cancel()
        return list(found)

    assert all(isinstance(each, TraceError) for each in asyncio.run(both()))


def _on_the_loop_of_trials(work: Callable[[], Any]) -> Any:
    done: Future[Any] = Future()
    threading.Thread(target=lambda: done.set_result(work()), name="rag-trials").start()
    return done.result(10)


@pytest.mark.parametrize("is_judge", [True, False])
def test_on_the_loop_of_trials_what_belongs_to_no_trial_is_lost_unless_it_has_a_deadline_of_its_own(
    is_judge: bool, provider: TracerProvider
) -> None:
    app = App(provider)

    async def both() -> Any:
        asks, asked_for = asyncio.Event(), asyncio.Event()

        async def beside() -> None:
            await asks.wait()
            app.search("beside")
            asked_for.set()

        async def ask(question: str) -> str:
            asks.set()
            await asked_for.wait()
            return app(question)

        # It has begun before the trial, as a worker of the app has, or a judge of another row.
        judge = asyncio.create_task(Deadline(5).bound(beside()) if is_judge else beside())
        await asyncio.sleep(0)
        found = (await asyncio.gather(TracedPipeline(ask, provider, "mine").answer(ASKED), return_exceptions=True))[0]
        await judge
        return found

    found = _on_the_loop_of_trials(lambda: asyncio.run(both()))
    assert isinstance(found, PipelineOutput if is_judge else TraceError), found


def test_only_so_many_trials_that_are_over_are_kept(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "_MOST_OVER", 3)
    for _ in range(5):
        asked(App(provider), provider)
    (spans,) = (found for known, found in attached.items() if known is provider)
    assert len(spans._over) == 3


# No judge gets an empty text: what a trace names by its id alone has the words of the page, or is an error.

PAGE = "You can return a lamp within 45 days of its delivery"
KNOWN = Placing(lambda: [Document("returns.md", PAGE, "Returns")], "mine", "search")
HIDDEN = "__REDACTED__"


def output(spans: list[object], placing: Placing = KNOWN) -> PipelineOutput:
    return output_of_trace(read_trace(spans, "x"), placing, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["returns.md", "returns", "kb/returns.md", "returns.md#chunk_0"])
def test_a_document_that_is_hidden_has_the_words_of_its_page(key: str) -> None:
    told = output([search("s", {key: HIDDEN})])
    assert [(hit.chunk.doc_id, hit.chunk.text) for hit in told.context] == [("returns.md", PAGE)]
    assert told.stages[0].detail["pages_as_texts"] == 1
    # What the chunk itself says is unknown, and its quotes with it.
    assert [hit.chunk.text for hit in told.retrieved] == [""]


def test_words_that_another_span_tells_count() -> None:
    told = output([search("s", {"a": HIDDEN}, at=(0, 2)), reranker("r", {"a": "other words"}, at=(3, 4))])
    assert [hit.chunk.text for hit in told.context] == ["other words"]
    assert "pages_as_texts" not in told.stages[0].detail


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (search("s", {"gone.md": HIDDEN}), "'gone.md' .* has no words .*OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS"),
        (genai("s", "retrieval", gen_ai__retrieval__documents=[{"id": "7"}]), "'7' .*CAPTURE_MESSAGE_CONTENT=true"),
    ],
)
def test_words_that_nobody_knows_are_an_error(span: object, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        output([span])


def test_what_was_found_and_not_given_needs_no_words() -> None:
    told = output([search("s", {"gone.md": HIDDEN, "b": PAGE}, at=(0, 2)), reranker("r", {"b": PAGE}, at=(3, 4))])
    assert [hit.chunk.text for hit in told.context] == [PAGE]
    assert len(told.retrieved) == 2


# Rows of replayed answers have the recordings' date, and their times where it is known whose they are.

CHAT = CleanedRequest("POST", "http://127.0.0.1/v1/chat/completions", {"model": "m", "messages": []})
VECTORS = CleanedRequest("POST", "http://127.0.0.1/v1/embeddings", {"model": "e", "input": "lamp"})
TOLD = PipelineOutput(
    Answer("x"),
    stages=(
        Stage("search", 5.0),
        Stage("rewrite", 2.0, (Call("rewrite", "m", Usage(1, 1, 1), 2.0),)),
        Stage("model", 3.0, (Call("answer", "m", Usage(1, 1, 1), 3.0),)),
    ),
    total_ms=11.0,
)


def recorded(ms: float, day: int, seconds: str = "00") -> Recorded:
    date = f"2026-11-{day:02}T00:00:{seconds}+00:00" if day else ""
    return Recorded(200, "application/json", b"{}", ms, None, recorded_at=date)


def test_each_step_takes_the_recorded_time_of_its_call() -> None:
    calls = AppCalls()
    calls.replay(VECTORS, recorded(7, 3))
    calls.replay(CHAT, recorded(100, 2))
    calls.replay(CHAT, recorded(1000, 4))
    found = as_recorded(TOLD, calls)
    assert [stage.ms for stage in found.stages] == [5, 102, 1003]
    assert [call.ms for call in found.calls] == [102, 1003]
    assert found.total_ms == 1111
    assert {(call.recorded, call.recorded_at) for call in found.calls} == {(True, "2026-11-02T00:00:00+00:00")}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ((3000, 2, "10.000"), (3000, 2, "10.000"), 3000),
        ((3000, 2, "10.000"), (3000, 2, "11.500"), 4500),
        ((400, 2, "10.000"), (400, 2, "10.400"), 800),
        ((400, 2, "10.000"), (400, 3, "10.000"), 800),
        # Of whole seconds, no more than a second is unknown.
        ((3000, 2, "10"), (3000, 2, "10"), 4000),
        ((300, 2, "10"), (300, 2, "10"), 600),
        ((3000, 0, ""), (3000, 2, "10.000"), 6000),
    ],
)
def test_calls_that_were_recorded_at_the_same_time_take_it_once(first: Any, second: Any, together: float) -> None:
    calls = AppCalls()
    for each in (first, second):
        calls.replay(CHAT, recorded(*each))
    found = as_recorded(TOLD, calls)
    assert [call.ms for call in found.calls] == [2 + first[0], 3 + second[0]]
    assert found.total_ms == pytest.approx(11 + together)


def test_times_of_unknown_owners_are_left_out() -> None:
    calls = AppCalls()
    calls.replay(CHAT, recorded(100, 2))
    found = as_recorded(TOLD, calls)
    assert [stage.ms for stage in found.stages] == [5, 2, 3]
    assert found.total_ms == 11
    assert all(call.recorded for call in found.calls)


@pytest.mark.parametrize("made", [True, False])
def test_an_answer_of_which_a_part_was_called_is_not_recorded(made: bool) -> None:
    calls = AppCalls()
    if made:
        calls.replay(CHAT, recorded(100, 2))
        calls.call()
    assert as_recorded(TOLD, calls) == TOLD
