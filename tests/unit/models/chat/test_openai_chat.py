"""The chat adapter against a server that misbehaves or refuses parameters."""

from __future__ import annotations

import asyncio
import json
import traceback
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, RagHarnessError
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Completion, Message
from rag_harness.models import openai_chat
from rag_harness.models.http_transport import AiohttpTransport
from rag_harness.models.openai_chat import OpenAIChat, SentParameters
from rag_harness.models.refused_parameters import known_without, refused_parameters, shaped
from rag_harness.pipelines.parts import RunParts
from tests.unit.server import Reply, Server, as_json, refusal, serving

# The chat adapter against a server that misbehaves.

KEY = "sk-secret-0123456789"
MODEL = "test/model"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}


def event(content: str | None = None, finish: str | None = None, usage: tuple[int, int] | None = None) -> bytes:
    choices = [] if usage else [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)} if usage else None
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "served/model"}
    return b"data: " + json.dumps({**chunk, "choices": choices, "usage": counted}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
GOOD = event("It costs ") + event("€29.") + event(finish="stop") + event(usage=(11, 7)) + DONE


def stream(body: bytes = GOOD, **options: Any) -> Reply:
    return Reply(body=body, kind="text/event-stream", **options)


class Waits(list[float]):
    """Takes the place of ``asyncio.sleep``."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def ask(
    server: Server,
    waits: Waits,
    schema: dict[str, Any] | None = None,
    times: int = 1,
    timeout: float = 60,
    later: float | None = None,
) -> Completion:
    """Ask; a try has ``timeout`` seconds, and one after a wait ``later`` where that is given."""
    from openai import AsyncOpenAI

    async def session() -> Completion:
        async def wait(seconds: float) -> None:
            await waits(seconds)
            chat.timeout = later or timeout

        http = httpx2.AsyncClient(transport=AiohttpTransport())
        client = AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0, timeout=None, http_client=http)
        sampling = SentParameters(temperature=0.5, seed=3, max_tokens=64)
        chat = OpenAIChat(lambda: client, MODEL, sampling, timeout, wait=wait)
        try:
            said = [await chat.complete([Message("user", "How much?")], schema) for _ in range(times)]
            return said[-1]
        finally:
            await chat.aclose()

    return asyncio.run(session())


def test_streams_text_usage_and_times() -> None:
    with serving(stream()) as server:
        completion = ask(server, waits := Waits(), SCHEMA)
    assert (completion.text, completion.model) == ("It costs €29.", "served/model")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens, completion.usage.calls) == (11, 7, 1)
    assert completion.ttft_ms is not None
    assert 0 < completion.ttft_ms <= completion.total_ms
    assert (completion.retries, completion.waited_ms, waits) == (0, 0.0, [])
    sent = server.requests[0]
    assert (sent["model"], sent["temperature"], sent["seed"], sent["max_tokens"]) == (MODEL, 0.5, 3, 64)
    assert sent["messages"] == [{"role": "user", "content": "How much?"}]
    assert sent["response_format"] == SCHEMA
    assert sent["stream_options"] == {"include_usage": True}


def test_an_answer_that_has_come_whole_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that waits for the end of a stream is three turns of the loop, in which a kill loses the answer."""

    async def waited(*_: object) -> None:
        raise AssertionError("the end has come")

    monkeypatch.setattr(openai_chat, "_LONGEST_END", None)
    monkeypatch.setattr(asyncio, "wait_for", waited)
    with serving(stream()) as server:
        assert ask(server, Waits()).text == "It costs €29."


def test_retry_after_is_honoured() -> None:
    with serving(refusal(429, "slow down", retry_after="7"), stream()) as server:
        completion = ask(server, waits := Waits())
    assert waits == [7.0]
    assert (completion.retries, completion.waited_ms) == (1, 7000.0)


def test_retry_after_may_be_a_date_and_one_that_is_over_counts_for_nothing() -> None:
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=5), usegmt=True)
    long_ago = "Wed, 21 Oct 2015 07:28:00 GMT"
    refused = (refusal(429, "slow", retry_after=long_ago), refusal(429, "slow", retry_after=soon))
    with serving(*refused, stream()) as server:
        ask(server, waits := Waits())
    assert 0.75 <= waits[0] <= 1.25
    assert 2 <= waits[1] <= 5


def test_500_twice_then_fine() -> None:
    with serving(refusal(500, "oops"), refusal(500, "oops"), stream()) as server:
        completion = ask(server, waits := Waits())
    assert completion.text == "It costs €29."
    assert completion.retries == 2
    assert completion.waited_ms == pytest.approx(sum(waits) * 1000)
    assert [0.75 <= wait / base <= 1.25 for wait, base in zip(waits, (1, 2), strict=True)] == [True, True]


def test_gives_up_after_three_retries() -> None:
    with serving(refusal(503, "overloaded")) as server, pytest.raises(ModelCallError, match=r"overloaded.*4 tries"):
        ask(server, waits := Waits())
    assert len(server.requests) == 4
    assert [0.75 <= wait / base <= 1.25 for wait, base in zip(waits, (1, 2, 4), strict=True)] == [True] * 3


def test_retry_after_an_hour_ends_at_once() -> None:
    with (
        serving(refusal(429, "quota", retry_after="3600")) as server,
        pytest.raises(ModelCallError, match="asks to wait 3600 s, longer than the 60 s"),
    ):
        ask(server, waits := Waits())
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize(
    "reply",
    [
        refusal(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
        refusal(402, f"No credit for {KEY}"),
        refusal(403, f"Forbidden: {KEY}"),
        refusal(404, f"The model does not exist, {KEY}", "model_not_found"),
        refusal(400, f"{MODEL} is not a valid model ID ({KEY})"),
        refusal(429, f"You exceeded your current quota, {KEY}", "insufficient_quota"),
        refusal(200, f"User not found, {KEY}", "401"),
    ],
    ids=["401", "402", "403", "404", "400 unknown model", "no quota", "401 in a body"],
)
def test_hopeless_calls_stop_the_run_and_hide_the_key(reply: Reply) -> None:
    with serving(reply) as server, pytest.raises(CriticalError) as caught:
        ask(server, waits := Waits())
    # A 403 may be about one question: a neutral one is asked before the run ends.
    assert (len(server.requests), waits) == (2 if reply.status == 403 else 1, [])
    assert (MODEL in str(caught.value)) == ("answers 401" not in str(caught.value))
    assert server.url in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("status", [400, 422, 500])
def test_key_is_hidden_in_other_failures(status: int) -> None:
    with serving(refusal(status, f"context too long for {KEY}")) as server, pytest.raises(ModelCallError) as caught:
        ask(server, Waits())
    assert "context too long for …" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("status", [400, 422])
def test_refused_request_is_not_repeated(status: int) -> None:
    with serving(refusal(status, "context too long")) as server, pytest.raises(ModelCallError, match="was refused"):
        ask(server, waits := Waits())
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize("status", [400, 422])
def test_model_without_schemas_is_asked_without(status: int) -> None:
    with serving(refusal(status, "'response_format' is not supported"), stream()) as server:
        completion = ask(server, waits := Waits(), SCHEMA, times=2)
    assert ["response_format" in sent for sent in server.requests] == [True, False, False]
    assert (completion.retries, waits) == (0, [])


def test_refusal_of_the_request_without_schema_ends() -> None:
    with serving(refusal(400, "response_format")) as server, pytest.raises(ModelCallError, match="was refused"):
        ask(server, Waits(), SCHEMA)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "broken",
    [
        stream(event("It costs "), reset=True, length=10_000),
        stream(event("It costs "), length=10_000),
        stream(event("It costs "), length=-1),
        stream(GOOD[:20], length=-1),
        stream(b"data: {\n\n"),
        stream(event("It costs ") + b'data: {"error": {"message": "upstream died", "code": 502}}\n\n'),
        Reply(body=b'{"choices": [', length=500),
        Reply(body=b'{"choices": ['),
        refusal(200, "upstream is overloaded", "502"),
        as_json([]),
        as_json({"error": "overloaded"}),
    ],
    ids=[
        "reset",
        "shorter than promised",
        "closed early",
        "half an event",
        "half an event's JSON",
        "error in the stream",
        "half a JSON, promised more",
        "half a JSON",
        "error with 200",
        "list",
        "error as a string",
    ],
)
def test_broken_answer_is_asked_for_again(broken: Reply) -> None:
    with serving(broken, stream()) as server:
        completion = ask(server, waits := Waits())
    assert completion.text == "It costs €29."
    assert (completion.retries, len(waits)) == (1, 1)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (refusal(200, "upstream is overloaded"), "upstream is overloaded"),
        (as_json({"choices": []}), "a stream was asked for"),
        (stream(event("It costs "), length=-1), "broke off"),
    ],
    ids=["error with 200", "not a stream", "closed early"],
)
def test_message_of_a_broken_answer(broken: Reply, said: str) -> None:
    with serving(broken) as server, pytest.raises(ModelCallError, match=said):
        ask(server, Waits())
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "slow",
    [Reply(hangs=True), stream(), stream(length=-1), refusal(500, "x" * 100, retry_after="1")],
    ids=["hangs", "one byte after the other", "the same without a length", "500 that drips"],
)
def test_a_call_is_bounded_as_a_whole(slow: Reply) -> None:
    with (
        serving(replace(slow, drip=0.01)) as server,
        pytest.raises(ModelCallError, match=r"no whole answer within 0\.04 s.*after 4 tries"),
    ):
        ask(server, waits := Waits(), timeout=0.04)
    assert len(waits) == 3
    assert len(server.requests) <= 4  # on a busy machine, the time is over before one has come


def test_a_slow_call_is_asked_again() -> None:
    with serving(Reply(hangs=True), stream()) as server:
        completion = ask(server, Waits(), timeout=0.4, later=60)
    assert (completion.text, completion.retries) == ("It costs €29.", 1)


def test_nobody_listens() -> None:
    with serving(stream()) as server:
        pass
    with pytest.raises(ModelCallError, match="4 tries"):
        ask(server, waits := Waits())
    assert len(waits) == 3


@pytest.mark.parametrize(
    "body",
    [event(finish="stop") + DONE, event(usage=(3, 0)) + DONE, event("", "length") + DONE],
    ids=["no text", "empty choices", "cut off"],
)
def test_no_text(body: bytes) -> None:
    with serving(stream(body)) as server, pytest.raises(ModelOutputError, match="without any text"):
        ask(server, waits := Waits())
    assert (len(server.requests), waits) == (1, [])


def test_created_from_settings(tmp_path: Path) -> None:
    settings = load_settings({"profile": "openrouter", "mode": "live", "chat_model": "openai:gpt-x"}, rootdir=tmp_path)

    async def session(settings: Any) -> Completion:
        endpoints = RunParts(settings).endpoints
        try:
            return await endpoints.chat().complete([Message("user", "Context:\n\nQuestion: x")])
        finally:
            await endpoints.aclose()

    with serving(stream()) as server:
        asyncio.run(session(replace(settings, chat_base_url=server.url)))
    assert server.requests[0]["model"] == "gpt-x"
    embedded = replace(settings, chat_base_url="embedded://", chat_model="embedded/extractive")
    assert asyncio.run(session(embedded)).text == "I don't know."


def test_an_answer_that_is_too_long_is_cut_off_and_asked_once() -> None:
    body = event("word " * 1_000) * 41 + event(finish="stop") + DONE
    said = "205,000 characters, and 200,000 are taken"
    with serving(stream(body)) as server, pytest.raises(ModelOutputError, match=said):
        ask(server, Waits())
    assert len(server.requests) == 1


DATE = "Wed, 21 Oct 2099 07:28:00 GMT"


@pytest.mark.parametrize("wait", ["1e9", "99999999", "9" * 400, "1e400", "nan", "-5", "soon", DATE])
def test_an_absurd_retry_after_is_neither_waited_for_nor_an_end(wait: str) -> None:
    with serving(refusal(429, "slow", retry_after=wait)) as server, pytest.raises(ModelCallError, match="slow"):
        ask(server, waits := Waits())
    assert all(0 <= each <= 60 for each in waits)
    assert len(server.requests) in (1, 4)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_body_without_an_end_is_cut_off_and_not_asked_for_again(status: int) -> None:
    for kind in ("application/json", "text/event-stream"):
        with serving(Reply(status, b" " * 21_000_000, kind=kind)) as server, pytest.raises(RagHarnessError) as failed:
            ask(server, Waits())
        assert "more than 20 MB" in str(failed.value)
        assert len(server.requests) == 1


REFUSES_TWO = (
    refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    refusal(400, "Unsupported value: 'temperature' and 'seed' do not support this."),
)


def test_a_model_is_asked_in_its_own_words_and_each_later_call_at_once() -> None:
    with serving(*REFUSES_TWO, stream()) as server:
        completion = ask(server, waits := Waits(), times=2)
    assert waits == []
    assert completion.asked_without == ("max_tokens", "seed", "temperature")
    assert [sorted(sent.keys() & {"max_tokens", "max_completion_tokens", "seed"}) for sent in server.requests] == [
        ["max_tokens", "seed"],
        ["max_completion_tokens", "seed"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]


def test_a_model_that_refuses_everything_ends_after_a_bounded_number_of_tries() -> None:
    with serving(refusal(400, f"Unsupported: {', '.join(PARAMETERS)}")) as server, pytest.raises(ModelCallError):
        ask(server, Waits(), SCHEMA)
    assert len(server.requests) <= 1 + 6


PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature", "seed", "stream_options", "response_format")


def test_one_question_that_is_flagged_is_no_bad_key() -> None:
    with (
        serving(refusal(403, "this input was flagged by moderation"), stream()) as server,
        pytest.raises(ModelCallError, match=r"this question was refused: .*this input was flagged"),
    ):
        ask(server, Waits())
    assert [sent["messages"][-1]["content"] for sent in server.requests] == ["How much?", "Reply with the word OK."]


def test_a_server_that_has_answered_needs_no_neutral_question() -> None:
    with (
        serving(stream(), refusal(403, "flagged"), stream()) as server,
        pytest.raises(ModelCallError, match="flagged"),
    ):
        ask(server, Waits(), times=2)
    assert len(server.requests) == 2


WHOLE = {
    "model": "served/model",
    "choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": "It costs €29."}]}}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 7, "cost": 0.5, "prompt_tokens_details": {"cached_tokens": 4}},
}


def test_a_server_that_does_not_stream_is_understood() -> None:
    with serving(as_json(WHOLE)) as server:
        completion = ask(server, Waits())
    assert (completion.text, completion.model, completion.usage.usd) == ("It costs €29.", "served/model", 0.5)
    assert (completion.usage.prompt_tokens, completion.usage.cached_tokens) == (11, 4)


def chunk(**delta: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def test_what_a_model_thinks_is_apart_from_its_answer() -> None:
    body = chunk(reasoning_content="Maybe ") + chunk(reasoning="99?") + chunk(content="<think>No.</think>") + GOOD
    with serving(stream(body)) as server:
        completion = ask(server, Waits())
    assert (completion.text, completion.reasoning) == ("It costs €29.", "Maybe 99?No.")


def test_usage_in_each_event_is_no_end_and_tokens_of_broken_replies_count() -> None:
    said = {"choices": [{"delta": {"content": "It"}}], "usage": {"prompt_tokens": 11, "completion_tokens": 1}}
    half = b"data: " + json.dumps(said).encode() + b"\n\n"
    with serving(stream(half), stream()) as server:
        completion = ask(server, Waits())
    assert (completion.text, completion.retries) == ("It costs €29.", 1)
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens, completion.usage.calls) == (22, 8, 2)


@pytest.mark.parametrize(
    ("finish", "said"),
    [("length", "allow more with max_tokens of its role"), ("content_filter", "content filter"), ("stop", "any text")],
)
def test_a_reply_without_text_says_why_and_what_it_has_cost(finish: str, said: str) -> None:
    body = chunk(reasoning_content="long") + event(finish=finish) + event(usage=(100, 50)) + DONE
    with serving(stream(body)) as server, pytest.raises(ModelOutputError, match=said) as caught:
        ask(server, Waits())
    assert caught.value.said is not None
    assert caught.value.said.usage.completion_tokens == 50


def test_a_finish_reason_of_error_is_an_error_that_may_pass() -> None:
    with serving(stream(event("It") + event(finish="error")), stream()) as server:
        completion = ask(server, Waits())
    assert (completion.text, completion.retries) == ("It costs €29.", 1)


def test_a_gateway_states_the_price_in_a_header() -> None:
    with serving(stream(headers={"x-litellm-response-cost": "0.25"})) as server:
        assert ask(server, Waits()).usage.usd == 0.25


# Refusals of parameters in the words of the servers that send them, and what is asked instead.

PARAMETERS_SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": {"type": "array", "minItems": 1, "maxItems": 2}},
}
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How much?"}],
    "temperature": 0.0,
    "max_tokens": 64,
    "stream": True,
    "stream_options": {"include_usage": True},
    "seed": 7,
    "response_format": PARAMETERS_SCHEMA,
    "logprobs": True,
    "top_logprobs": 5,
}


@dataclass
class Refusal:
    """What the SDK makes of a refusal."""

    message: str
    status_code: int = 400
    param: str | None = None
    code: Any = None
    body: Any = None


WORDINGS = {
    "OpenAI, tokens": (
        Refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        {"max_tokens"},
    ),
    "OpenAI, temperature": (
        Refusal(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is "
            "supported.",
            param="temperature",
            code="unsupported_value",
        ),
        {"temperature"},
    ),
    "OpenAI, system": (
        Refusal(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
            code="unsupported_value",
        ),
        {"system"},
    ),
    "OpenAI, schema": (
        Refusal("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        {"response_format"},
    ),
    "OpenAI, lists": (
        Refusal(
            "Invalid schema for response_format 'verdict': In context=('properties', 'verdicts'), 'minItems' is not "
            "permitted.",
            param="response_format",
        ),
        {"list_bounds"},
    ),
    "OpenAI, probabilities": (Refusal("You are not allowed to request logprobs from this model", 403), {"logprobs"}),
    "Azure, an older version": (Refusal("Unrecognized request argument supplied: stream_options"), {"stream_options"}),
    "Azure, schema": (
        Refusal("response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"),
        {"response_format"},
    ),
    "OpenRouter, of its provider": (
        Refusal(
            "Provider returned error",
            body={"metadata": {"raw": '{"error": {"message": "Unsupported parameter: \'seed\'"}}'}},
        ),
        {"seed"},
    ),
    "OpenRouter, names none": (
        Refusal("No endpoints found that can handle the requested parameters.", 404, code=404),
        set(),
    ),
    "OpenRouter, no such model": (Refusal("m is not a valid model ID"), set()),
    "Groq, schema": (
        Refusal("This model does not support response format `json_schema`. See supported models at https://x.y"),
        {"response_format"},
    ),
    "Groq, object": (
        Refusal("'response_format.type' must be one of: text, json_object", param="response_format.type"),
        {"json_schema"},
    ),
    "Groq, probabilities": (Refusal("property 'logprobs' is not supported"), {"logprobs"}),
    "vLLM, extra": (
        Refusal(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', "
            "'input': 7}]",
            code=400,
        ),
        {"seed"},
    ),
    "vLLM, template": (Refusal("System role not supported"), {"system"}),
    "Mistral": (
        Refusal(
            "{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'seed'], "
            "'msg': 'Extra inputs are not permitted'}]}",
            422,
            body={"detail": [{"loc": ["body", "seed"], "input": {"temperature": 1, "max_tokens": 64}}]},
        ),
        {"seed"},
    ),
    "Gemini": (
        Refusal('Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
        {"seed"},
    ),
    "LiteLLM, two": (
        Refusal(
            "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature', 'seed'], for model=o1."
        ),
        {"temperature", "seed"},
    ),
    "Ollama": (
        Refusal(
            "json: cannot unmarshal object into Go struct field ChatCompletionRequest.response_format of type string"
        ),
        {"response_format"},
    ),
    "no streams": (Refusal("Streaming is not supported for this model"), {"stream"}),
    "too long": (Refusal("This model's maximum context length is 8192 tokens, and max_tokens is 64."), set()),
    "too many": (Refusal("max_tokens is too large: 64. This model supports at most 32 completion tokens."), set()),
    "out of range": (Refusal("Invalid 'temperature': must be between 0 and 2", param="temperature"), set()),
    "content": (Refusal("The response was filtered due to the prompt triggering a content policy."), set()),
    "a key": (Refusal("You have no access", 403), set()),
    "broken": (Refusal("Unsupported parameter: 'seed'", 500), set()),
}


@pytest.mark.parametrize("name", WORDINGS)
def test_a_refusal_names_what_is_left_out(name: str) -> None:
    refusal, wanted = WORDINGS[name]
    error: Any = refusal
    assert refused_parameters(error, REQUEST) == wanted


def test_a_parameter_that_was_not_sent_is_not_refused() -> None:
    error: Any = Refusal("Unsupported parameter: 'seed'", param="seed")
    assert refused_parameters(error, {"model": "m", "messages": []}) == frozenset()


def test_a_schema_without_bounds_that_is_refused_again_goes() -> None:
    refusal, (bounds,) = WORDINGS["OpenAI, lists"]
    error: Any = refusal
    assert refused_parameters(error, shaped(REQUEST, frozenset((bounds,)))) == {"response_format"}


@pytest.mark.parametrize(
    ("without", "gone", "there"),
    [
        ({"max_tokens"}, {"max_tokens"}, {"max_completion_tokens": 64}),
        ({"max_tokens", "max_completion_tokens"}, {"max_tokens", "max_completion_tokens"}, {}),
        (
            {"list_bounds"},
            set(),
            {"response_format": {**PARAMETERS_SCHEMA, "json_schema": {"name": "answer", "schema": {"type": "array"}}}},
        ),
        ({"json_schema"}, set(), {"response_format": {"type": "json_object"}}),
        ({"json_schema", "response_format"}, {"response_format"}, {}),
        ({"stream"}, {"stream", "stream_options"}, {}),
        ({"logprobs"}, {"logprobs", "top_logprobs"}, {}),
        ({"temperature", "seed"}, {"temperature", "seed"}, {"max_tokens": 64}),
    ],
)
def test_a_request_is_made_without_them(without: set[str], gone: set[str], there: dict[str, Any]) -> None:
    made = shaped(REQUEST, frozenset(without))
    assert not gone & made.keys()
    assert all(made[name] == value for name, value in there.items())
    assert made["messages"] == REQUEST["messages"]


def test_instructions_are_those_of_a_developer_and_then_of_the_user() -> None:
    first, second = shaped(REQUEST, frozenset(("system",)))["messages"]
    assert (first["role"], first["content"], second) == ("developer", "Be brief.", REQUEST["messages"][1])
    (alone,) = shaped(REQUEST, frozenset(("system", "developer")))["messages"]
    assert alone == {"role": "user", "content": "Be brief.\n\nHow much?"}
    assert [message["role"] for message in REQUEST["messages"]] == ["system", "user"]


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "openai/gpt-5.4", "o1", "o3-mini", "azure/o4-mini"])
def test_reasoning_models_are_known_by_name(model: str) -> None:
    assert known_without(model) == {"max_tokens", "temperature"}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5-chat", "openai/gpt-5-chat-latest", "foo1", "gemma-3", "o"])
def test_other_models_are_asked_as_the_protocol_says(model: str) -> None:
    assert known_without(model) == frozenset()


@given(st.text(max_size=200), st.sampled_from([400, 403, 404, 422]))
def test_whatever_a_server_says_no_prompt_is_lost(said: str, status: int) -> None:
    error: Any = Refusal(said, status, body={"message": said})
    made = shaped(REQUEST, refused_parameters(error, REQUEST))
    assert "How much?" in str(made["messages"])
    assert "Be brief." in str(made["messages"])
