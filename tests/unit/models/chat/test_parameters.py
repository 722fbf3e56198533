"""Refusals of parameters in the words of the servers that send them, and what is asked instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.completions import known_without, refused_parameters, shaped

SCHEMA: dict[str, Any] = {
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
    "response_format": SCHEMA,
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
            {"response_format": {**SCHEMA, "json_schema": {"name": "answer", "schema": {"type": "array"}}}},
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
