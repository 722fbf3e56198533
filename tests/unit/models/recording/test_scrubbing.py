from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from rag_harness.core.settings import Settings
from rag_harness.models.recording.scrubbing import Cleaner, secrets_in, secrets_of
from tests.unit.models.recording.answering import chunk

KEY = "sk-planted-0123456789"


def hide_names(text: str) -> str:
    return text.replace("John Smith", "<NAME>")


def events(body: bytes) -> list[Any]:
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def contents(body: bytes) -> list[str]:
    return [event["choices"][0]["delta"]["content"] for event in events(body)]


@pytest.mark.parametrize("cut", range(1, len("John Smith")))
def test_a_name_cut_by_deltas(cut: int) -> None:
    name = "John Smith"
    body = chunk("") + chunk(f"Ask {name[:cut]}") + chunk(f"{name[cut:]} now") + chunk("", "stop") + b"data: [DONE]\n\n"
    clean = Cleaner(scrub=hide_names).body(body, "text/event-stream")
    assert contents(clean) == ["", "Ask <NAME> now", "", ""]
    assert clean.endswith(b"data: [DONE]\n\n")
    assert events(clean)[3]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_a_key_cut_by_deltas(size: int) -> None:
    text = f'{{"answer": "the key is {KEY}, keep it"}}'
    body = b"".join(chunk(text[n : n + size]) for n in range(0, len(text), size))
    clean = Cleaner([KEY]).body(body, "text/event-stream; charset=utf-8")
    assert "".join(contents(clean)) == text.replace(KEY, "REDACTED")


def test_what_stands_for_a_name_may_sort_behind_it() -> None:
    body = chunk("Ask John") + chunk(" Smith now")
    clean = Cleaner(scrub=lambda text: text.replace("John Smith", "~~~").replace("Ask", "Query")).body(body)
    assert contents(clean) == ["Query ~~~ now", ""]


def test_a_scrub_that_gives_the_same_text_anew_changes_nothing() -> None:
    body = chunk("Ask John") + chunk(" Smith now")
    assert Cleaner(scrub=lambda text: "".join(list(text))).body(body, "text/event-stream") == body


def test_a_body_that_is_no_json_is_cleaned_as_text() -> None:
    assert Cleaner([KEY]).body(f"the key is {KEY}\n".encode()) == b"the key is REDACTED\n"


def test_a_field_that_is_named_like_a_secret_is_emptied_and_no_other() -> None:
    body = b'{"api_key": "any words", "said": "any words"}'
    assert json.loads(Cleaner().body(body)) == {"api_key": "REDACTED", "said": "any words"}


def test_nothing_to_hide_leaves_the_same_bytes() -> None:
    body = b": comment\r\n\r\n" + chunk("Jo") + chunk("hn\u20ac".encode().decode()) + b"data: [DONE]\n\n"
    assert Cleaner([KEY], hide_names).body(body, "text/event-stream") == body
    assert Cleaner([KEY], hide_names).body(b'{"a":  1.0}', "application/json") == b'{"a":  1.0}'


def test_two_choices_are_two_texts() -> None:
    def both(one: str, two: str) -> bytes:
        choices = [{"index": n, "delta": {"content": each}} for n, each in enumerate((one, two))]
        return b"data: " + json.dumps({"choices": choices}).encode() + b"\n\n"

    clean = Cleaner(scrub=hide_names).body(both("John Sm", "Mary ") + both("ith", "John Smith"), "text/event-stream")
    said = [[choice["delta"]["content"] for choice in event["choices"]] for event in events(clean)]
    assert said == [["<NAME>", "Mary <NAME>"], ["", ""]]


@pytest.mark.parametrize(
    "event",
    [
        lambda text: {"type": "response.output_text.delta", "item_id": "i", "content_index": 0, "delta": text},
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        lambda text: {"choices": [{"index": 0, "text": text}]},
        lambda text: {
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "function": {"arguments": text}}]}}]
        },
    ],
)
def test_other_kinds_of_streams(event: Any) -> None:
    body = b"".join(b"data: " + json.dumps(event(part)).encode() + b"\n\n" for part in ("Mr John", " Smi", "th."))
    clean = Cleaner(scrub=hide_names).body(body, "text/event-stream")
    assert events(clean) == [event("Mr <NAME>."), event(""), event("")]


@pytest.mark.parametrize(
    "event", [lambda text: {"status": {"text": text}}, lambda text: {"choices": [{"index": 0, "finish_reason": text}]}]
)
def test_texts_that_are_no_pieces_of_one_are_not_joined(event: Any) -> None:
    body = b"".join(b"data: " + json.dumps(event(part)).encode() + b"\n\n" for part in ("Mr John", " Smith"))
    assert Cleaner(scrub=hide_names).body(body, "text/event-stream") == body


@pytest.mark.parametrize("key", ['ab"cd\\efgh', "schlüssel-geheim", "a/b+c==1234"])
def test_a_key_in_any_spelling(key: str) -> None:
    once = json.dumps({"said": key})
    twice = json.dumps({"answer": once})
    for text in (key, once, twice, json.dumps({"a": key}, ensure_ascii=False)):
        assert Cleaner([key]).text(text) != text
    assert json.loads(Cleaner([key]).body(twice.encode())) == {"answer": '{"said": "REDACTED"}'}
    parts = [twice[n : n + 3] for n in range(0, len(twice), 3)]
    clean = Cleaner([key]).body(b"".join(map(chunk, parts)), "text/event-stream")
    assert json.loads(json.loads("".join(contents(clean)))["answer"]) == {"said": "REDACTED"}


def test_a_key_that_begins_like_another_leaves_no_rest() -> None:
    longer = f"{KEY}-and-more"
    assert Cleaner([KEY, longer]).text(f"{longer} and {KEY}") == "REDACTED and REDACTED"


def test_every_text_of_a_request() -> None:
    body = {"messages": [{"content": [{"text": "John Smith"}]}], "n": 1, "user": "John Smith", "on": True, "no": None}
    assert Cleaner(scrub=hide_names).value(body) == {
        "messages": [{"content": [{"text": "<NAME>"}]}], "n": 1, "user": "<NAME>", "on": True, "no": None
    }  # fmt: skip


def test_binary_answers() -> None:
    assert Cleaner([KEY]).body(b"\xff\xfe" + KEY.encode() + b"\x00") == b"\xff\xfeREDACTED\x00"
    longer = f"{KEY}-and-more"
    for secrets in ([KEY, longer], [longer, KEY]):
        assert Cleaner(secrets).body(b"\xff" + longer.encode() + b"\xff" + KEY.encode()) == b"\xffREDACTED\xffREDACTED"


def test_a_dummy_key_leaves_words_alone() -> None:
    assert Cleaner(["none", "test", ""]).text("none of this test") == "none of this test"


def test_a_cleaner_learns_keys_and_no_words() -> None:
    cleaner = Cleaner([KEY])
    assert cleaner.knowing(["seven77", "8letters"]).text(f"seven77 8letters {KEY}") == "seven77 REDACTED REDACTED"
    assert cleaner.knowing([KEY, "seven77"]) is cleaner


def test_headers_show_what_is_secret() -> None:
    headers = {
        "Authorization": "Bearer sk-one==", "api-key": "two", "Cookie": "sid=three; b=four", "x-goog-api-key": "five",
        "OpenAI-Organization": "org-six", "openai-project": "proj_seven", "accept": "text/plain", "user-agent": "me",
    }  # fmt: skip
    found = set(secrets_in(headers))
    assert {"sk-one==", "two", "three", "four", "five", "org-six", "proj_seven"} <= found
    assert not {"text/plain", "me"} & found


def test_a_scrub_must_return_text() -> None:
    with pytest.raises(TypeError, match="rag_scrub returned NoneType for a text"):
        Cleaner(scrub=lambda text: None).text("a")  # type: ignore[arg-type, return-value]


def test_every_key_of_the_settings_is_taken_out() -> None:
    named = [each.name for each in fields(Settings) if each.metadata.get("secret")]
    planted: dict[str, Any] = {name: f"planted-{name}" for name in named}
    assert set(planted.values()) == set(secrets_of(replace(Settings(), **planted)))
