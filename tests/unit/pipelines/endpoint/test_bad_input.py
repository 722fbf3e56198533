"""What services do wrong, and what is said of it."""

from __future__ import annotations

import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import (
    CriticalError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    RagHarnessError,
    SettingsError,
)
from rag_harness.pipelines.endpoint import exchange
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import Reply, as_json, refusal, serving

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
        (Reply(body=b"<html>Sign in</html>", kind="text/html"), ModelOutputError, "no JSON but a page"),
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
    with pytest.raises(SettingsError, match=r"my_service: read.answer = '\$\[\?x' is no path"):
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
    with pytest.raises(PrerequisiteError, match="nobody knows what a call of 'my_service' costs"):
        Service(tmp_path, 'url = "http://127.0.0.1:9/"', budget=1.0)
