"""Replies of services: their paths and forms, where passages belong, and what is wrong with them."""

from __future__ import annotations

import random
import socket
import traceback
from pathlib import Path
from typing import Any

import jsonpath_rfc9535
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import (
    CriticalError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    RagHarnessError,
    SettingsError,
)
from rag_harness.core.json_text import DEEPEST_JSON
from rag_harness.core.settings.endpoints import EndpointSpec, StreamReading
from rag_harness.core.text.shingles import TextOrigins
from rag_harness.core.types import UNMARKED, Document
from rag_harness.pipelines.endpoint import exchange
from rag_harness.pipelines.endpoint.answer import (
    BY_ID,
    BY_NAME,
    BY_NOTHING,
    NO_TEXT,
    OTHER_TEXT,
    AnswerPath,
    Context,
    Placing,
)
from rag_harness.pipelines.endpoint.decoders import decoder_of, parsed_json
from rag_harness.records.document_ranking import document_of
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import Reply, as_json, refusal, serving

RETURNS = """# Returns

You can return a **lamp** within [45 days](policy.md) of delivery.

| item | days |
|---|---|
| lamp | 45 |

We refund the price within 5 working days, shipping excluded.
"""
SHIPPING = "# Shipping\n\nExpress delivery costs €9.90 in Zone 1.\n\nThe same sentence stands on two of these pages.\n"
WARRANTY = "# Warranty\n\nThe warranty lasts 2 years.\n\nThe same sentence stands on two of these pages.\n"


def placing(*more: str) -> Placing:
    pages = {"returns.md": RETURNS, "eu/shipping.md": SHIPPING, "warranty.md": WARRANTY}
    documents = [Document(name, text, name) for name, text in [*pages.items(), *((name, "") for name in more)]]
    return Placing(lambda: documents, "my_service")


def found(context: Context, *more: str) -> tuple[str, str]:
    placed = placing(*more).place([context])
    (how,) = placed.how
    return placed.hits[0].chunk.doc_id, how


@pytest.mark.parametrize(
    ("context", "document"),
    [
        (Context("x", document="returns.md"), "returns.md"),
        (Context("x", document="eu/shipping.md"), "eu/shipping.md"),
        (Context("x", document="/srv/kb/eu/shipping.md"), "eu/shipping.md"),
        (Context("x", document="C:\\kb\\eu\\shipping.md"), "eu/shipping.md"),
        (Context("x", document="C:\\kb\\returns.md"), "returns.md"),
        (Context("x", document="/shipping.md"), "eu/shipping.md"),
        (Context("x", document="/srv/eu/shipping.html"), "eu/shipping.md"),
        (Context("x", document="shipping"), "eu/shipping.md"),
        (Context("x", id="returns.md"), "returns.md"),
        (Context("x", id="returns.md#chunk_3"), "returns.md"),
        (Context("x", document="unknown", id="returns.md#3"), "returns.md"),
    ],
)
def test_a_known_name_is_the_document(context: Context, document: str) -> None:
    doc_id, how = found(context)
    assert (doc_id, how == BY_NOTHING) == (document, False)


@pytest.mark.parametrize(
    ("context", "placed"),
    [
        (Context("x", document="any/page"), ("any/page", BY_NAME)),
        (Context("x", id="page#3"), ("page", BY_NAME)),
        (Context("x", id="17", others=("page", "Title")), ("page", BY_NAME)),
        (Context("x", others=("0b0e7b0c-5a3f-4a5e-9f57-2b1f6c1b7a10", "page")), ("page", BY_NAME)),
        (Context("", document="page"), ("page", NO_TEXT)),
        (Context("x", id="17"), ("", BY_NOTHING)),
        (Context("x", id="#3"), ("", BY_NOTHING)),
        (Context("x", others=("0b0e7b0c-5a3f-4a5e-9f57-2b1f6c1b7a10",)), ("", BY_NOTHING)),
        (Context("You can return a lamp"), ("", BY_NOTHING)),
    ],
)
def test_without_documents_a_name_is_taken_as_told(context: Context, placed: tuple[str, str]) -> None:
    found = Placing(None, "my_service").place([context])
    assert (found.hits[0].chunk.doc_id, *found.how) == placed
    assert UNMARKED not in found.hits[0].chunk.metadata.values()


@pytest.mark.parametrize("text", ["", " \n", "…"])
def test_a_named_document_without_text_is_told_apart(text: str) -> None:
    assert found(Context(text, document="returns.md")) == ("returns.md", NO_TEXT)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Express delivery costs 9.90 in Zone 1", OTHER_TEXT),
        ("The same sentence stands on two of these pages", OTHER_TEXT),
        ("Returned within 45 days of delivery, or not", OTHER_TEXT),
        ("n/a", OTHER_TEXT),
        ("Express", OTHER_TEXT),
        ("# Returns", BY_ID),
        ("a LAMP within 45 days", BY_ID),
        ("In short: we refund the price within 5 working days, but no shipping.", BY_ID),
        ("RETURNS you can return a LAMP within 45 days of delivery", BY_ID),
        (RETURNS, BY_ID),
    ],
)
def test_a_named_document_that_does_not_say_the_text_is_told_apart(text: str, how: str) -> None:
    assert found(Context(text, document="returns.md")) == ("returns.md", how)


def test_a_number_with_a_point_is_no_file_with_a_suffix() -> None:
    assert found(Context("x", id="3.12"), "3.md") == ("", "nothing")
    assert found(Context("x", document="3.html"), "3.md") == ("3.md", OTHER_TEXT)


def test_a_name_that_two_documents_have_is_none() -> None:
    assert found(Context("x", document="shipping.md"), "us/shipping.md") == ("", "nothing")
    assert found(Context("x", document="us/shipping.md"), "us/shipping.md") == ("us/shipping.md", OTHER_TEXT)


@pytest.mark.parametrize(
    ("name", "more", "document"),
    [
        ("us/shipping.md", (), ""),  # only eu has it
        ("/srv/kb/us/shipping.md", (), ""),
        ("C:\\kb\\shipping.md", (), ""),  # a folder kb may be the root, and then its shipping.md is not that of eu
        ("us/shipping", (), ""),
        ("us/shipping.html", (), ""),
        ("us/returns.md", ("eu/returns.md",), ""),  # two have the name, and neither lies in us
        ("/srv/kb/returns.md", ("eu/returns.md",), ""),
        ("/srv/kb/eu/returns.md", ("eu/returns.md",), "eu/returns.md"),
        ("returns.md", ("eu/returns.md",), "returns.md"),  # its very id
        ("/srv/eu/shipping.md", ("us/shipping.md",), "eu/shipping.md"),
        ("eu/zones.md", ("shop/eu/zones.md", "shop/us/zones.md"), "shop/eu/zones.md"),
        ("eu/zones.md", ("shop/eu/zones.md", "old/eu/zones.md"), ""),
        ("zones", ("eu/zones.md", "eu/zones.txt"), ""),
        ("/kb/eu/zones", ("eu/zones.md", "eu/zones"), "eu/zones"),
        ("a/" * 40_000 + "eu/shipping.md", (), "eu/shipping.md"),
    ],
)
def test_a_name_in_another_folder_is_another_document(name: str, more: tuple[str, ...], document: str) -> None:
    assert found(Context("x", document=name), *more)[0] == document


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("You can return a lamp within 45 days of delivery.", "returns.md"),
        ("you CAN return\na   lamp — within 45 days of delivery", "returns.md"),
        ("<p>You can return a lamp within 45 days of <b>delivery</b></p>", "returns.md"),
        ("item days\nlamp 45\nWe refund the price within 5 working days", "returns.md"),
        ("Express delivery costs €9.90", "eu/shipping.md"),
        ("Our policy. You can return a lamp within 45 days of delivery. We refund: see", ""),
        ("Policy: We refund the price within 5 working days, shipping excluded.", "returns.md"),
        ("The same sentence stands on two of these pages.", ""),
        ("45 days", ""),
        ("", ""),
        ("Nothing that any page of these has ever said to anybody.", ""),
        ("the price refund we within working days 5 shipping excluded", ""),
    ],
)
def test_a_text_is_found_by_its_words(text: str, document: str) -> None:
    assert found(Context(text)) == (document, "text" if document else "nothing")


def test_chunks_are_named_after_their_documents_and_once_each() -> None:
    contexts = [Context("x", "7", "returns.md"), Context("y", "7", "returns.md"), Context("z", "a#b"), Context("w")]
    ids = [hit.chunk.chunk_id for hit in placing().place(contexts).hits]
    assert ids[:3] == ["returns.md#7", "returns.md#7-2", "my_service:a.b"]
    assert [document_of(chunk_id) for chunk_id in ids] == ["returns.md", "returns.md", *ids[2:]]
    assert len(set(ids)) == 4


def test_how_many_were_found_by_what_is_counted() -> None:
    contexts = [Context("x", document="returns.md"), Context("Express delivery costs €9.90"), Context("no")]
    assert placing().place(contexts).how == {"id": 1, "text": 1, "nothing": 1}


def test_scores_are_the_services_or_fall_with_the_rank() -> None:
    hits = placing().place([Context("a", score=0.25), Context("b")]).hits
    assert [(hit.score, hit.rank) for hit in hits] == [(0.25, 1), (0.5, 2)]


def test_a_text_that_has_lost_its_marks_says_so() -> None:
    hits = placing().place(
        [Context("We refund the price within 5 working days"), Context("You can return a lamp within")]
    )
    assert [hit.chunk.metadata.get("markup") for hit in hits.hits] == [None, UNMARKED]


def test_without_documents_nothing_is_found() -> None:
    assert Placing(tuple, "a").place([Context("Express delivery costs €9.90", document="a.md")]).how == {"nothing": 1}
    assert Placing(tuple, "a").place([Context("x", document="a/" * 40_000)]).how == {"nothing": 1}


_WORDS = [f"word{n}" for n in range(200)]


@given(st.integers(0, 2**32), st.integers(6, 40))
def test_every_passage_is_found_in_its_own_document(seed: int, length: int) -> None:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(_WORDS, k=120)) for _ in range(8)]
    at = chance.randrange(8)
    start = chance.randrange(120 - length)
    passage = " ".join(texts[at].split()[start : start + length])
    assert TextOrigins(texts).find(passage.upper().replace(" ", "\n* ")) == at


# What services do wrong, and what is said of it.

GOOD = as_json({"answer": "45 days"})


def failure(folder: Path, *replies: Reply, more: str = "", **settings: Any) -> RagHarnessError:
    with serving(*replies) as server, pytest.raises(RagHarnessError) as error:
        Service(folder, f'url = "{server.url}/query"\n{more}', **settings).ask()
    return error.value


def test_nobody_there_ends_the_run(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/query"
        with pytest.raises(CriticalError) as error:
            Service(tmp_path, f'url = "{url}"').ask()
    assert str(error.value).startswith(f"Nothing answers at {url}, the url of endpoint 'my_service'.")
    assert "Gave up after 4 tries" in str(error.value)


def test_one_that_has_answered_before_is_only_away(tmp_path: Path) -> None:
    with serving(GOOD) as server:
        service = Service(tmp_path, f'url = "{server.url}/query"')
        assert service.ask().answer.text == "45 days"
    with pytest.raises(ModelCallError, match="Gave up after 4 tries"):
        service.ask()


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (refusal(401, "no such key"), CriticalError, "refused with 401: the key is missing or wrong"),
        (refusal(403, "x"), CriticalError, "refused with 403"),
        (refusal(404, "x"), CriticalError, "refused with 404: there is nothing at this address"),
        (refusal(405, "x"), CriticalError, "refused with 405"),
        (refusal(422, "query is too long"), ModelCallError, 'refused the request with 422: \'{"error"'),
        (refusal(500, "boom"), ModelCallError, 'StatusError: 500: {"error": {"message": "boom"'),
        (
            Reply(307, headers={"location": "http://u:p@elsewhere/?token=t#f"}),
            CriticalError,
            "redirects to http://elsewhere/. ",
        ),
        (Reply(body=b"<html>Sign in</html>", kind="text/html"), ModelOutputError, "not JSON but a page"),
        (Reply(body=b'{"answer": "45'), ModelOutputError, "it looks cut short"),
        (Reply(body=b'{"answer": "45"', length=200, reset=True), ModelCallError, "Gave up after 4 tries"),
        (Reply(body=b'{"answer": "\xff"}'), ModelOutputError, "no UTF-8, at byte 12"),
        (Reply(body=b""), ModelOutputError, "answered with nothing"),
        (Reply(204), ModelOutputError, "answered with nothing"),
        (Reply(body=b"[" * 10_000 + b"]" * 10_000), ModelOutputError, "nested deeper than 100 levels"),
        (as_json({"answer": 45}), ModelOutputError, "finds the number 45; expected text"),
        (as_json({"reply": "45"}), ModelOutputError, "read.answer = 'answer' finds nothing"),
        (as_json(["45"]), ModelOutputError, "At $ there is a list of 1"),
    ],
)
def test_what_went_wrong_is_named(tmp_path: Path, reply: Reply, kind: type[Exception], said: str) -> None:
    error = failure(tmp_path, reply)
    assert type(error) is kind
    assert said in str(error)
    assert "my_service" in str(error)


def test_contexts_that_are_no_list(tmp_path: Path) -> None:
    reply = as_json({"answer": "45 days", "contexts": {"text": "x"}})
    assert "finds an object with 'text'; expected a list" in str(
        failure(tmp_path, reply, more='[read]\ncontexts = "contexts"')
    )


def test_a_passing_failure_is_tried_again(tmp_path: Path) -> None:
    with serving(refusal(500, "boom"), refusal(429, "slow", retry_after="0"), GOOD) as server:
        output = Service(tmp_path, f'url = "{server.url}/query"').ask()
    assert output.answer.text == "45 days"
    assert output.calls[0].retries == 2


def test_a_wait_that_is_too_long_is_not_waited(tmp_path: Path) -> None:
    error = failure(tmp_path, refusal(429, "tomorrow", retry_after="86400"))
    assert "The server asks to wait 86400 s" in str(error)


def test_an_answer_of_50_mb_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_REPLY_BYTES", 2 * 2**20)
    error = failure(tmp_path, Reply(body=b'{"answer": "' + b"x" * 3_000_000 + b'"}'))
    assert type(error) is ModelOutputError
    assert "answered with more than 2 MB, and was cut off there" in str(error)


def test_a_call_that_takes_too_long(tmp_path: Path) -> None:
    error = failure(tmp_path, Reply(hangs=True), more="timeout = 0.05")
    assert "no whole answer within 0.05 s. Allow more: timeout in" in str(error)


def test_a_stream_that_drips_is_bounded_too(tmp_path: Path) -> None:
    body = b"data: x\n\n" * 1000
    error = failure(tmp_path, Reply(body=body, kind="text/event-stream", drip=0.02), more='kind = "sse"\ntimeout = 0.1')
    assert "no whole answer within 0.1 s" in str(error)


def test_a_stream_that_is_cut_in_the_middle(tmp_path: Path) -> None:
    spec = 'kind = "sse"\n[stream]\ntoken = "message"\nfinal = "done"'
    error = failure(tmp_path, Reply(body=b"data: 45 \n\n", kind="text/event-stream"), more=spec)
    assert "the stream broke off before its event 'done'; 1 pieces of text had come" in str(error)


def test_an_unset_variable_is_named_before_anything_is_called(tmp_path: Path) -> None:
    with serving(GOOD) as server, pytest.raises(PrerequisiteError, match="MY_UNSET_KEY is not set: the endpoint 'my_s"):
        Service(tmp_path, f'url = "{server.url}"\n[headers]\nauthorization = "Bearer ${{MY_UNSET_KEY}}"')
    assert not server.requests


@pytest.mark.parametrize("value", ["planted-0123\n", "plänted-0123"])
def test_a_key_that_no_header_may_have_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(PrerequisiteError, match=r"^MY_KEY, a header of the endpoint 'my_service'") as error:
        Service(tmp_path, 'url = "http://127.0.0.1:9/"\nheaders = {x-api-key = "${MY_KEY}"}')
    assert value not in str(error.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("127.0.0.1:9", "does not begin with http://HOST"),
        ("http://[", "does not begin with http://HOST"),
        ("http://me:planted@127.0.0.1:9", "holds a user or a password"),
    ],
)
def test_an_address_that_is_none_once_it_is_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("MY_BASE", value)
    with pytest.raises(SettingsError, match=said) as error:
        Service(tmp_path, 'url = "${MY_BASE}/query"')
    assert "planted" not in str(error.value)


def test_an_unknown_placeholder_is_named_before_anything_is_called(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="my_service: body: Unknown placeholder 'qeury'"):
        Service(tmp_path, 'url = "http://127.0.0.1:9/"\nbody = {q = "{{qeury}}"}')


def test_a_path_that_is_none_is_named_before_anything_is_called(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"my_service: read.answer = '\$\[\?x' is not a path"):
        Service(tmp_path, 'url = "http://127.0.0.1:9/"\n[read]\nanswer = "$[?x"')


def test_a_key_that_the_server_repeats_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-planted")
    error = failure(tmp_path, refusal(401, "sk-planted is no key"), more='[headers]\nx-api-key = "${MY_KEY}"')
    assert "… is no key" in str(error)
    assert "planted" not in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(302, headers={"location": "http://elsewhere/planted%2F%22%C3%BC/"}),
        as_json({"error": 'planted/"ü'}, 401),
        Reply(403, '{"error": "planted/\\"ü"}'.encode()),
    ],
)
def test_a_key_is_not_shown_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setenv("MY_KEY", 'planted/"ü')
    with serving(reply) as server, pytest.raises(CriticalError) as error:
        Service(tmp_path, f'url = "{server.url}/query?key=${{MY_KEY}}"').ask()
    assert "planted" not in str(error.value)
    assert "…" in str(error.value)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b'{"answer": "your key is sk-planted'),
        Reply(body=b"<html>sk-planted</html>", kind="text/html"),
        as_json({"reply": "sk-planted"}),
        as_json({"answer": "x", "problem": "sk-planted is no key"}),
        Reply(500, b"sk-planted"),
        Reply(302, headers={"location": "http://elsewhere/?key=sk-planted"}),
    ],
)
def test_a_key_that_is_repeated_where_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-planted")
    more = 'headers = {x-api-key = "${MY_KEY}"}\n[read]\nerror = "problem?"'
    error = failure(tmp_path, reply, more=more)
    assert "planted" not in "".join([*traceback.format_exception(error), getattr(error, "raw", "")])


def test_a_budget_needs_a_price(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="it is not known what a call of 'my_service' costs"):
        Service(tmp_path, 'url = "http://127.0.0.1:9/"', budget=1.0)


NAMED = (
    b": a comment\r\n\r\n"
    b'event: retrieval\ndata: {"contexts": [1]}\n\n'
    b'event: token\ndata: {"t": "45 "}\n\n'
    b'event: token\ndata: {"t": "d\xc3\xa4ys"}\n\n'
    b"event: ping\ndata: still\ndata: here\n\n"
    b'event: done\ndata: {"confidence": 0.5}\n\n'
)
CHAT = (
    b'data: {"model": "m-1", "choices": [{"delta": {"role": "assistant"}}]}\n\n'
    b'data: {"choices": [{"delta": {"content": "45 "}}], "citations": ["a.md"]}\n\n'
    b'data: {"choices": [{"delta": {"content": "days"}, "finish_reason": "stop"}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}\n\ndata: [DONE]\n\n'
)


def heard(content: bytes, kind: str = "sse", cut: int = 7, **stream: str) -> Any:
    spec = EndpointSpec("my_service", "http://h/", kind, stream=StreamReading(**stream))
    found = decoder_of(spec, "text/event-stream; charset=utf-8")
    for start in range(0, len(content), cut):
        found.add(content[start : start + cut])
    return found


@given(st.integers(1, len(NAMED)))
def test_events_by_name_add_up_wherever_the_stream_is_cut(cut: int) -> None:
    found = heard(NAMED, cut=cut, text="t", final="done")
    assert found.first is not None
    assert found.document() == {
        "streamed": "45 däys",
        "events": {"retrieval": [{"contexts": [1]}], "ping": ["still\nhere"]},
        "confidence": 0.5,
    }


def test_data_without_a_path_are_the_text() -> None:
    found = heard(b"data: 45 \n\ndata: days\n\ndata: [DONE]\n\n", token="message")
    assert found.document()["streamed"] == "45 days"


def test_what_replaces_withdraws_what_was_streamed() -> None:
    found = heard(b"event: token\ndata: wrong\n\nevent: replace\ndata: I don't know.\n\n")
    assert found.document()["streamed"] == "I don't know."


def test_a_stream_that_breaks_off_before_its_end_is_no_answer() -> None:
    with pytest.raises(
        ConnectionError, match=r"before its event 'done' \(of other names: 'retrieval', 'ping'\); 2 pieces"
    ):
        heard(NAMED.partition(b"event: done")[0], text="t", final="done").document()


def test_an_error_event_is_the_services_own() -> None:
    with pytest.raises(ModelCallError, match="my_service says that it failed: no index"):
        heard(b"event: error\ndata: no index\n\n")


def test_a_token_without_its_text_is_named() -> None:
    with pytest.raises(ModelOutputError, match=r"stream.text = 'text' finds no text in an event. At \$ there is .*'t'"):
        heard(NAMED, text="text")
    assert heard(NAMED, text="text?").document()["streamed"] == ""


def test_an_event_that_is_no_json_is_named() -> None:
    with pytest.raises(ModelOutputError, match="an event of its stream answered with"):
        heard(b"event: done\ndata: {\n\n", final="done")


@pytest.mark.parametrize("cut", [1, 13, 10_000])
def test_a_streamed_completion_reads_as_a_plain_one(cut: int) -> None:
    found = heard(CHAT, "openai", cut)
    assert found.first is not None
    assert found.document() == {
        "model": "m-1",
        "citations": ["a.md"],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        "choices": [{"message": {"role": "assistant", "content": "45 days"}, "finish_reason": "stop"}],
    }


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (CHAT.partition(b'"days"')[0], ConnectionError, "broke off before its end"),
        (b'data: {"error": {"message": "busy"}}\n\n', ModelCallError, "busy"),
        (b"data: [1]\n\n", ModelOutputError, "is not an object"),
        (b'data: {"choices": {"a": 1}}\n\n', ModelOutputError, "choices of an event .* an object with 'a'"),
        (b'data: {"choices": [1]}\n\n', ModelOutputError, r"choices\[0\] of an event .* the number 1"),
        (b'data: {"choices": [{"delta": 5}]}\n\n', ModelOutputError, "an object with 'delta'"),
        (b'data: {"choices": [{"delta": {"content": [1]}}]}\n\n', ModelOutputError, "delta.content of .* a list of 1"),
    ],
)
def test_a_completion_that_is_none(content: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        heard(content, "openai").document()


def test_the_response_of_a_tool_is_the_message_with_a_result() -> None:
    stream = b'data: {"method": "notifications/progress"}\n\ndata: {"id": 1, "result": {"content": []}}\n\n'
    assert heard(stream, "mcp").document() == {"id": 1, "result": {"content": []}}
    with pytest.raises(ConnectionError, match="before the response came"):
        heard(stream[:40], "mcp").document()


def test_json_in_place_of_a_stream_is_read_as_json() -> None:
    found = decoder_of(EndpointSpec("a", "http://h/", "openai"), "application/json")
    found.add(b'{"a": ')
    found.add(b"1}")
    assert (found.document(), found.first) == ({"a": 1}, None)


def test_an_event_of_an_empty_name_is_a_message() -> None:
    assert heard(b"event:\ndata: 45 days\n\n", token="message").document()["streamed"] == "45 days"


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"<html><body>Login</body></html>", "text/html; charset=utf-8", "text/html that is not JSON but a page"),
        (b'{"answer": "45 da', "application/json", "it looks cut short"),
        (b'{"answer": "45 days"', "application/json", "it looks cut short"),
        (b"nope", "text/plain", "text/plain that is not JSON"),
        (b"", "application/json", "answered with nothing"),
        (b' \xff{"a": 1}', "application/json", "no UTF-8, at byte 1"),
        (b'{"score": NaN}', "application/json", "NaN is not JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"[" * 1_000_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"9" * 5000, "application/json", "not JSON"),
    ],
)
def test_what_is_no_answer_is_named(content: bytes, kind: str, said: str) -> None:
    with pytest.raises(ModelOutputError) as error:
        parsed_json(content, "my_service", kind)
    assert said in str(error.value)
    assert str(error.value).startswith("my_service answered with")
    assert len(error.value.raw) <= 4000


def test_a_mark_of_byte_order_and_breadth_are_no_fault() -> None:
    assert parsed_json(b'\xef\xbb\xbf{"a": 1}', "a", "") == {"a": 1}
    assert len(parsed_json(b"[" + b",".join([b"[]"] * 5000) + b"]", "a", "")) == 5000
    assert parsed_json(b"[" * DEEPEST_JSON + b"]" * DEEPEST_JSON, "a", "") is not None


SAID: Any = {
    "answer": "a",
    "choices": [{"message": {"content": "c"}}, {"message": {"content": "d"}}],
    "a b": {"x.y": 1, "m/n": 2, "t~u": 3},
    "empty": [],
    "nothing": None,
    "0": "zero",
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("answer", ["a"]),
        ("$.answer", ["a"]),
        ("/answer", ["a"]),
        ("answer?", ["a"]),
        ("choices[0].message.content", ["c"]),
        ("$['choices'][1]['message'].content", ["d"]),
        ("/choices/1/message/content", ["d"]),
        ("$.choices[*].message.content", ["c", "d"]),
        ("$.choices[?@.message.content=='d'].message.content", ["d"]),
        ("$..content", ["c", "d"]),
        ('["a b"]["x.y"]', [1]),
        ("/a b/m~1n", [2]),
        ("/a b/t~0u", [3]),
        ("$", [SAID]),
        ("nothing", [None]),
        ("empty", [[]]),
        ("choices[2]", []),
        ("choices[-1].message.content", ["d"]),
        ("choices.message", []),
        ("answer.text", []),
        ("nowhere", []),
        ("nowhere?", []),
    ],
)
def test_what_a_path_finds(path: str, found: list[Any]) -> None:
    assert AnswerPath(path).find(SAID) == found


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("reply", "At $ there is an object with 'answer', 'choices', 'a b', 'empty', 'nothing', '0'"),
        ("choices[0].text", "At $.choices[0] there is an object with 'message'"),
        ("choices[7].text", "At $.choices there is a list of 2, first an object with 'message'"),
        ("answer.text", "At $.answer there is text: 'a'"),
        ("nothing.x", "At $.nothing there is null"),
        ("/choices/0/text", "At $.choices.0 there is an object with 'message'"),
        ("$.hits[*].text", "At $ there is an object with 'answer', 'choices', 'a b', 'empty', 'nothing', '0'"),
    ],
)
def test_a_path_that_finds_nothing_says_what_is_there(path: str, near: str) -> None:
    assert AnswerPath(path).nearest(SAID) == near


@pytest.mark.parametrize("path", ["$.a[", "a..", "$[?", "a[*", "$x"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match=r"a: read.answer = .* is not a path"):
        AnswerPath(path, "a: read.answer")


_NAMES = st.sampled_from(["a", "b", "c_d"])
_JSON: Any = st.recursive(st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner))


@given(_JSON, st.lists(_NAMES | st.integers(0, 3)))
def test_names_and_places_find_what_the_library_finds(document: Any, steps: list[str | int]) -> None:
    path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    assert AnswerPath(path).find(document) == list(jsonpath_rfc9535.find(path, document).values())
