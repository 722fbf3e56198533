"""An answer as events: in order, withdrawn where necessary, and ended when the client has left."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_harness.core.concurrency import in_a_thread
from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.settings.configurations import NORMAL
from rag_harness.core.types import Answer, Completion, Document, Hit, Message, PipelineOutput, Query, Usage
from rag_harness.models.calls import listening
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import Generator, read_answer
from rag_harness.pipelines.trace import Trace
from rag_harness.service.answer_stream import AnswerEvent, AnswerInJson, PlainText, Shows, events
from rag_harness.service.citations import cited
from rag_harness.studies import reliability
from rag_harness.studies.retail import Baseline
from tests.unit.pipelines.mock_parts import parts_of, write_kb
from tests.unit.service.shipped import shipped_parts
from tests.unit.service.streaming_model import streaming_model
from tests.unit.studies.reliability.test_reliability import ANSWER, PAGES, Finds, made

QUERY = Query("q", "How long may I return a lamp?")
SPLIT = ['{"answer"', ': "You can return a lamp', " within 45 days", ' [Source 1]."', "}"]


def document_of(doc_id: str) -> Document:
    text = next(page.chunk.text for page in PAGES if page.chunk.doc_id == doc_id)
    return Document(doc_id, text, doc_id)


def body(output: PipelineOutput) -> dict[str, Any]:
    last = next((each for each in reversed(output.decisions) if each.name == "decision"), None)
    said = output.answer
    return {
        "answer": said.text,
        "citations": [asdict(each) for each in cited(said.text, said.citations, output.context, document_of)],
        "confidence": output.confidence,
        "decision": last.outcome if last else "unchecked",
        "reasons": last.reason.split("; ") if last and last.reason else [],
        "trace_id": "t",
    }


SHOWS = Shows(body, lambda error: {"code": type(error).__name__})
Answering = Callable[[], Coroutine[Any, Any, PipelineOutput]]


class Streams:
    """A chat model that streams its pieces, one turn of the loop each; an exception among them is raised."""

    model = "test/chat"

    def __init__(self, *tries: Sequence[str | Exception]) -> None:
        self.tries = list(tries)

    async def complete(self, messages: Sequence[Message], response_format: object = None) -> Completion:
        for pieces in self.tries:
            listener = listening.get()
            if listener is not None:
                listener.begins()
            for piece in pieces:
                await asyncio.sleep(0)
                if isinstance(piece, Exception):
                    raise piece
                if listener is not None:
                    listener.hears(piece)
        said = "".join(piece for piece in self.tries[-1] if isinstance(piece, str))
        return Completion(said, self.model, Usage(9, 3, 1), 1.0)


class Searches:
    """Finds the same sources for any question, and answers from them."""

    def __init__(self, *tries: Sequence[str | Exception], context: Sequence[Hit] = PAGES[:2]) -> None:
        self.context = list(context)
        self.generator = Generator(Streams(*tries), Prompts("system", "{context} {question}"))

    async def answer(self, query: Query) -> PipelineOutput:
        return await self.generator.answer_from(query, self.context)


def told(answering: Answering, strict: bool = False) -> list[AnswerEvent]:
    async def all_of() -> list[AnswerEvent]:
        return [event async for event in events(answering, SHOWS, strict=strict)]

    return asyncio.run(all_of())


def asked(pipeline: Any) -> Answering:
    return lambda: pipeline.answer(QUERY)


def names(said: Sequence[AnswerEvent]) -> list[str]:
    return [event.name for event in said]


def text_of(said: Sequence[AnswerEvent]) -> str:
    """Return what a client shows in the end, who does as the events say."""
    shown = ""
    for event in said:
        if event.name == "token":
            shown += event.data["text"]
        elif event.name == "replace":
            shown = event.data["answer"]
    return shown


def test_an_answer_comes_in_its_order() -> None:
    said = told(asked(Searches(SPLIT)))
    assert names(said) == ["retrieval", "token", "token", "token", "citation", "verdict", "done"]
    where = {"source": 1, "document": "returns.md", "section": "", "page": None}
    text = "You can return a lamp within 45 days."
    assert said[0].data["sources"][0] == {**where, "score": 0.5, "text": text}
    assert [event.data["text"] for event in said[1:4]] == [
        "You can return a lamp",
        " within 45 days",
        " [Source 1].",
    ]
    quote = said[4].data
    assert document_of(quote["document"]).text[quote["start"] : quote["end"]] == quote["quote"]
    assert ANSWER[quote["answer_start"] : quote["answer_end"]] == "You can return a lamp within 45 days"
    assert said[5].data == {"decision": "unchecked", "confidence": None, "reasons": []}
    assert said[6].data["answer"] == text_of(said) == ANSWER
    assert said[6].data["citations"] == [quote]
    assert json.loads(json.dumps([asdict(event) for event in said])), "an event is not JSON"


def test_what_was_found_is_told_before_the_model_has_said_a_word() -> None:
    async def first() -> AnswerEvent:
        async with aclosing(events(asked(Searches(["x" * 9])), SHOWS)) as stream:
            return await anext(stream)

    assert asyncio.run(first()).name == "retrieval"


def test_strict_says_nothing_before_the_verdict() -> None:
    said = told(asked(Searches(SPLIT)), strict=True)
    assert names(said) == ["retrieval", "verdict", "token", "citation", "done"]
    assert said[2].data["text"] == ANSWER


def reliable(passed: float, warned: float) -> Any:
    thresholds = replace(NORMAL, passed=passed, warned=warned)
    return made(Finds(PAGES), cast("Any", Streams(SPLIT)), thresholds=thresholds)


def test_what_the_pipeline_withheld_is_taken_back_and_its_citations_are_not_told() -> None:
    said = told(asked(reliable(passed=1.0, warned=1.0)))
    assert names(said) == ["retrieval", "token", "token", "token", "replace", "verdict", "done"]
    assert said[4].data == {"answer": reliability.NOT_SURE}
    assert said[5].data["decision"] == "abstain"
    assert text_of(said) == reliability.NOT_SURE


def test_strict_never_says_what_the_pipeline_withheld() -> None:
    said = told(asked(reliable(passed=1.0, warned=1.0)), strict=True)
    assert names(said) == ["retrieval", "verdict", "token", "done"]
    assert "45" not in json.dumps([asdict(event) for event in said if event.name != "retrieval"])


def test_the_second_answer_that_is_asked_to_compare_is_shown_to_nobody() -> None:
    said = told(asked(reliable(passed=0.1, warned=0.0)))
    assert names(said) == ["retrieval", "token", "token", "token", "citation", "verdict", "done"]
    assert text_of(said) == ANSWER


def test_a_call_that_breaks_off_takes_its_words_back() -> None:
    said = told(asked(Searches(SPLIT[:2], SPLIT)))
    tokens = ["token"] * 3
    assert names(said) == ["retrieval", "token", "replace", *tokens, "citation", "verdict", "done"]
    assert said[2].data == {"answer": ""}
    assert text_of(said) == ANSWER


def test_a_failure_takes_back_what_was_said() -> None:
    said = told(asked(Searches([*SPLIT[:2], ModelCallError("/secret/path")])))
    assert [asdict(event) for event in said[1:]] == [
        {"name": "token", "data": {"text": "You can return a lamp"}},
        {"name": "replace", "data": {"answer": ""}},
        {"name": "error", "data": {"code": "ModelCallError"}},
    ]


def test_a_failure_before_anything_was_said_is_an_error_alone() -> None:
    async def fails() -> PipelineOutput:
        raise ValueError("no")

    assert [asdict(event) for event in told(fails)] == [{"name": "error", "data": {"code": "ValueError"}}]


def test_an_answer_that_cannot_be_shown_is_an_error() -> None:
    def broken(_: PipelineOutput) -> dict[str, Any]:
        raise OSError("disk")

    async def all_of() -> list[AnswerEvent]:
        return [event async for event in events(asked(Searches(SPLIT)), Shows(broken, SHOWS.failure))]

    assert names(asyncio.run(all_of()))[-2:] == ["replace", "error"]


def test_work_that_is_ended_from_outside_is_an_error() -> None:
    async def ends_itself() -> PipelineOutput:
        raise asyncio.CancelledError

    assert names(told(ends_itself)) == ["error"]


def test_what_the_pipeline_adds_behind_the_models_words_is_told() -> None:
    class Adds(Searches):
        async def answer(self, query: Query) -> PipelineOutput:
            output = await super().answer(query)
            return replace(output, answer=replace(output.answer, text=f"{output.answer.text}\n\nPlease check."))

    said = told(asked(Adds(SPLIT)))
    assert [event.data["text"] for event in said if event.name == "token"][-1] == "\n\nPlease check."


def test_a_pipeline_that_streams_nothing_is_told_whole() -> None:
    async def answers() -> PipelineOutput:
        return PipelineOutput(Answer(ANSWER, citations=(1,)), context=tuple(PAGES[:1]))

    assert names(told(answers)) == ["retrieval", "token", "citation", "verdict", "done"]


def test_a_pipeline_that_changes_its_sources_tells_the_last_ones() -> None:
    class Drops(Searches):
        async def answer(self, query: Query) -> PipelineOutput:
            return replace(await super().answer(query), context=())

    said = [event for event in told(asked(Drops(SPLIT))) if event.name == "retrieval"]
    assert [len(event.data["sources"]) for event in said] == [2, 0]


def test_an_answer_in_plain_words_is_told_as_it_comes() -> None:
    async def answers() -> PipelineOutput:
        trace = Trace()
        said = await trace.complete(Streams(["It is ", "45 days."]), [])
        return trace.output(Answer(said.text))

    assert names(told(answers)) == ["retrieval", "token", "token", "verdict", "done"]


def test_a_pipeline_in_a_thread_of_its_own_is_heard_in_order() -> None:
    async def answers() -> PipelineOutput:
        return await in_a_thread(lambda: asyncio.run(Searches(SPLIT).answer(QUERY)))

    said = told(answers)
    assert names(said) == ["retrieval", "token", "token", "token", "citation", "verdict", "done"]
    assert text_of(said) == ANSWER


def test_what_a_thread_says_is_told_while_it_goes_on() -> None:
    heard = threading.Event()

    async def answers() -> PipelineOutput:
        def work() -> PipelineOutput:
            time.sleep(0.05)  # the loop waits by now, and has to be woken
            output = asyncio.run(Searches(SPLIT).answer(QUERY))
            assert heard.wait(5), "nobody was told before the thread had ended"
            return output

        return await in_a_thread(work)

    async def listen() -> list[str]:
        said = list[str]()
        async for event in events(answers, SHOWS):
            said.append(event.name)
            if event.name == "token":
                heard.set()
        return said

    assert asyncio.run(listen())[-1] == "done"


class Waits:
    """A pipeline that waits until it is cancelled, and says so."""

    cancelled = False

    async def answer(self, query: Query) -> PipelineOutput:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # it has something to put away
            self.cancelled = True
            raise
        raise AssertionError("nobody waits for a minute")


def test_whoever_is_cancelled_while_waiting_cancels_the_work_and_waits_for_its_end() -> None:
    async def leave() -> None:
        async def listen() -> None:
            async for _ in events(asked(pipeline), SHOWS):
                pass

        client = asyncio.ensure_future(listen())
        await asyncio.sleep(0.02)
        client.cancel()
        with suppress(asyncio.CancelledError):
            await client

    pipeline = Waits()
    asyncio.run(leave())
    assert pipeline.cancelled


def test_a_stream_that_is_never_begun_leaves_nothing_behind() -> None:
    async def leave() -> None:
        await events(asked(Waits()), SHOWS).aclose()

    asyncio.run(leave())


def test_when_the_client_leaves_at_the_first_token_the_model_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_kb(tmp_path, {"a.md": "# A\n\nText.\n"}, monkeypatch)

    async def leave() -> tuple[int, int, int]:
        async with streaming_model(every=0.05) as model:
            named = {"chat_model": "a/model", "chat_base_url": model.url, "chat_api_key": "k"}
            parts = parts_of(root, profile="openrouter", mode="live", **named)
            e1 = experiment("e1", parts)
            assert isinstance(e1.pipeline, Baseline)
            async with aclosing(events(asked(e1.pipeline), SHOWS)) as stream:
                async for event in stream:
                    if event.name == "token":
                        break
            at_leaving, until = model.words, time.monotonic() + 10
            while model.writing and time.monotonic() < until:
                await asyncio.sleep(0.01)
            soon, writing = model.words, model.writing
            await asyncio.sleep(0.15)  # time for three words
            await parts.endpoints.aclose()
            assert model.words == soon, "the server still writes"
            return at_leaving, soon, writing

    at_leaving, soon, writing = asyncio.run(leave())
    assert 1 <= at_leaving <= 3
    assert soon - at_leaving <= 2
    assert writing == 0


@dataclass(frozen=True)
class Shipped:
    """What experiment r6 says to some questions of the shipped study, each with its answer that is not streamed."""

    pipeline: Any
    shown: Callable[[PipelineOutput], dict[str, Any]]
    whole: Sequence[tuple[Query, dict[str, Any]]]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    parts = shipped_parts(tmp_path_factory.mktemp("shipped"))
    queries = [case.query for case in parts.data().cases][120:160]
    by_id = {document.doc_id: document for document in parts.data().documents}
    r6 = experiment("r6", parts)
    assert r6.prepare is not None
    r6.prepare(queries)

    def shown(output: PipelineOutput) -> dict[str, Any]:
        said = output.answer
        found = cited(said.text, said.citations, output.context, by_id.__getitem__)
        return {**body(replace(output, context=())), "citations": [asdict(each) for each in found]}

    async def all_of() -> list[tuple[Query, dict[str, Any]]]:
        return [(query, shown(await r6.pipeline.answer(query))) for query in queries]

    return Shipped(r6.pipeline, shown, asyncio.run(all_of()))


@pytest.mark.long
@pytest.mark.parametrize("strict", [False, True])
def test_the_shipped_answers_streamed_are_the_shipped_answers(strict: bool, shipped: Shipped) -> None:
    async def streamed(query: Query) -> list[AnswerEvent]:
        stream = events(lambda: shipped.pipeline.answer(query), Shows(shipped.shown, SHOWS.failure), strict=strict)
        return [event async for event in stream]

    async def all_of() -> list[tuple[dict[str, Any], list[AnswerEvent]]]:
        return [(whole, await streamed(query)) for query, whole in shipped.whole]

    replaced = 0
    for whole, said in asyncio.run(all_of()):
        assert text_of(said) == whole["answer"]
        assert [event.data for event in said if event.name == "citation"] == whole["citations"]
        [verdict] = [event.data for event in said if event.name == "verdict"]
        assert verdict == {name: whole[name] for name in verdict}
        assert names(said)[-1] == "done"
        replaced += "replace" in names(said)
    assert (replaced > 0) is not strict, "r6 withholds some of its answers"


# The answer in a model's JSON is read as it grows, whichever way the JSON is cut into pieces.

# Halves of characters among them: models write them as escapes, and streams cut them in two.
TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud83d\ude00", "\ud83d", "\ude00", 'a"\\\n'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("answer"), inner, max_size=3),
    max_leaves=8,
)
OTHERS = st.dictionaries(TEXTS.filter(lambda key: key != "answer"), VALUES, max_size=3)


@st.composite
def replies(draw: st.DrawFn) -> str:
    members = list(draw(OTHERS).items())
    members.insert(draw(st.integers(0, len(members))), ("answer", draw(TEXTS)))
    written = json.dumps(
        dict(members), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2, "\t"]))
    )
    fence = draw(st.sampled_from(["{}", "```json\n{}\n```", "  ```JSON\n\n{}```\n", "```\n{}\n```", "\n {} \n"]))
    return fence.replace("{}", written)


def cut(text: str, places: list[int]) -> list[str]:
    borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(borders)]


def read(pieces: list[str]) -> str:
    reader = AnswerInJson()
    return "".join(map(reader.feed, pieces))


def answer_of(reply: str) -> str:
    whole = reply.strip().removeprefix("```json").removeprefix("```JSON").removeprefix("```").removesuffix("```")
    return str(json.loads(whole, strict=False)["answer"])


@given(replies(), st.lists(st.integers(0, 10**6), max_size=30))
def test_any_cut_of_any_json_gives_its_answer(reply: str, places: list[int]) -> None:
    said = answer_of(reply)
    expected = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if any("\ud800" <= char <= "\udfff" for char in said):
        try:
            expected = read_answer(reply, 0, reasoning=False).text
        except ModelOutputError:
            return
    assert read(cut(reply, places)) == expected
    assert read(list(reply)) == expected


@given(st.text(st.sampled_from('{}[]",:\\u0a`jsonwer \n1\ud83d')) | st.text(), st.lists(st.integers(0, 99), max_size=9))
@example('{"answer": "\\ud8', [])
@example('{"answer": "\\uzzzz"}', [3])
@example('{"answer"', [])
@example("}", [])
@example('{"a": }, "answer": "x"}', [])
def test_what_is_no_json_raises_nothing(text: str, places: list[int]) -> None:
    assert isinstance(read(cut(text, places)), str)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"reasoning_steps": ["answer", '"answer": "no"'], "answer": "yes"}, "yes"),
        ({"inner": {"answer": "no", "list": [{"answer": "no"}]}, "answer": "yes"}, "yes"),
        ({"answer": {"answer": "no"}}, ""),
        ({"answer": ["no"]}, ""),
        ({"answer": 29}, ""),
        ({"answer": None}, ""),
        ({"Answer": "no"}, ""),
        (["answer", "no"], ""),
        ({}, ""),
        ("answer", ""),
    ],
)
def test_nothing_of_other_keys_is_shown(reply: Any, said: str) -> None:
    assert read(list(json.dumps(reply))) == said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"\\u0061nswer": "yes"}', "yes"),
        ('{"answer": "yes"', "yes"),
        ('{"answer": "ye', "ye"),
        ('{"answer": "yes"} and so on {"answer": "no"}', "yes"),
        ('Here you are: {"answer": "no"}', ""),
        ('<think>{"answer": "no"}</think>{"answer": "no"}', ""),
        ("It costs 29.", ""),
        ("[" * 10_000 + '{"answer": "no"}', ""),
        ('{"deep": ' + "[" * 10_000 + "]" * 10_000 + ', "answer": "yes"}', "yes"),
        (" " * 10_000 + '{"answer": "yes"}', "yes"),
    ],
    ids=["key escaped", "open", "cut off", "twice", "prose", "thought", "no JSON", "a list", "deep", "blanks"],
)
def test_what_is_read_of_other_replies(reply: str, said: str) -> None:
    assert read(list(reply)) == read([reply]) == said


def test_the_answer_is_there_as_soon_as_it_is_written() -> None:
    reader = AnswerInJson()
    pieces = ['{"answer": "It', " costs\\", "n\\u20ac", "29 \\ud83d", "\\ude00.", '"}']
    assert [reader.feed(piece) for piece in pieces] == ["It", " costs", "\n€", "29 ", "😀.", ""]


def test_halves_of_a_character_wait_for_each_other_and_no_longer_than_the_answer() -> None:
    reader = AnswerInJson()
    assert [reader.feed(piece) for piece in ('{"answer": "a\ud83d', "\ude00b\\ud83d", '"}')] == ["a", "😀b", "\ufffd"]


def test_a_plain_answer_is_read_as_it_comes() -> None:
    reader = PlainText()
    assert [reader.feed(piece) for piece in ('{"a', "\ud83d", "\ude00")] == ['{"a', "", "😀"]
