"""Each limit of a request's body, and what is told of errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import fastapi
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.log import log
from rag_harness.service.app_state import MIB, Options
from rag_harness.service.database import Database
from rag_harness.service.keys import make_key
from rag_harness.service.middleware import MOST_LEVELS, Bodies, Headers, Pace, Unforeseen, check_json
from rag_harness.service.problems import ProblemError
from tests.unit.service.access.small_app import Asking, create_app

# Each limit of a request's body, with the request that breaks it.

JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=b"}
FORM_BEGINS = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'


def sent(asking: Asking, path: str, body: AsyncIterator[bytes], headers: dict[str, str]) -> httpx.Response:
    async def send() -> httpx.Response:
        async with asking.client() as client:
            return await client.post(path, content=body, headers=headers)

    return asyncio.run(send())


class Giant:
    """A body without an end that anybody should wait for; counts what was taken of it."""

    def __init__(self, begins: bytes = b"", most: int = 2 << 30) -> None:
        self.taken, self._begins, self._most = 0, begins, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._begins
        part = b"x" * 65536
        while self.taken < self._most:
            self.taken += len(part)
            yield part


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_10_mb_of_question_are_refused_unread(keyless: Asking) -> None:
    answer = keyless.ask("x" * (10 * MIB))
    assert refused(answer) == (413, "too_large")
    assert answer.json()["limit"] == MIB
    assert len(answer.content) < 500


@pytest.mark.parametrize("length", [None, "100", "0", "+5", "99999999999999999999999"])
def test_what_a_body_says_of_its_length_is_not_believed(keyless: Asking, length: str | None) -> None:
    body, lied = Giant(b'{"query": "'), {"content-length": length} if length else {"transfer-encoding": "chunked"}
    headers = {**JSON, "transfer-encoding": "chunked", **lied}
    assert refused(sent(keyless, "/query", aiter(body), headers)) == (413, "too_large")
    assert body.taken < 4 * MIB


def test_a_2_gb_upload_is_stopped_at_the_limit(db: Database) -> None:
    body = Giant(FORM_BEGINS)
    asking = Asking(create_app(db, Options("e1", upload=4 * MIB)))
    assert refused(sent(asking, "/ingest", aiter(body), {**FORM, "content-length": "1000"})) == (413, "too_large")
    assert 4 * MIB <= body.taken < 8 * MIB


def test_an_upload_may_be_larger_than_a_question(db: Database) -> None:
    asking = Asking(create_app(db, Options("e1", upload=4 * MIB)))
    assert asking("POST", "/ingest", files={"file": b"x" * 4 * MIB}).json()["bytes"] == 4 * MIB
    assert refused(asking("POST", "/ingest", files={"file": b"x" * (5 * MIB)})) == (413, "too_large")


@pytest.mark.parametrize("path", ["/query", "/ingest"])
def test_a_body_that_falls_silent_is_not_waited_for(db: Database, path: str) -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield FORM_BEGINS if path == "/ingest" else b'{"que'
        await asyncio.sleep(30)
        yield b"never"

    asking = Asking(create_app(db, pace=Pace(silence=0.05)))
    headers = {**(JSON if path == "/query" else FORM), "content-length": "1000"}
    assert refused(sent(asking, path, silent(), headers)) == (408, "too_slow")


class Clock:
    """Stands still, unless it is told how late it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("rag_harness.service.middleware.monotonic", lambda: self.now)

    async def dripping(self, begins: bytes, size: int, ends: bytes = b"", parts: int = 1000) -> AsyncIterator[bytes]:
        """Yield ``size`` bytes a second."""
        yield begins
        for _ in range(parts):
            self.now += 1
            yield b"x" * size
        yield ends


@pytest.mark.parametrize("path", ["/query", "/ingest"])
def test_a_byte_now_and_then_is_too_slow(keyless: Asking, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begins = Clock(monkeypatch), FORM_BEGINS if path == "/ingest" else b'{"query": "'
    headers = {**(JSON if path == "/query" else FORM), "content-length": "100000"}
    answer = sent(keyless, path, clock.dripping(begins, 1), headers)
    assert refused(answer) == (408, "too_slow")


def test_a_slow_line_that_keeps_its_pace_may_take_long(keyless: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    body = clock.dripping(b'{"query": "', 1024, b'"}', parts=100)
    answer = sent(keyless, "/query", body, {**JSON, "transfer-encoding": "chunked"})
    assert answer.json()["answer"] == "x" * 102_400
    assert clock.now == 1100


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"query": "q", "inputs": {"a": ' + "["])
def test_json_of_depth_10000_meets_no_parser(keyless: Asking, opening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastapi.Request, "json", lambda _: pytest.fail("it was parsed"))
    answer = keyless("POST", "/query", content=opening * 10_000, headers=JSON)
    assert refused(answer) == (400, "too_deep")


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/vnd.api+json", "image/png", ""])
def test_a_lie_in_content_type_hides_no_depth(keyless: Asking, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    assert refused(keyless("POST", "/query", content=b"[" * 10_000, headers=headers))[0] == 400


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "image/png", "", "application/jsonx", ";;"])
def test_a_lie_in_content_type_is_a_problem_and_no_failure(keyless: Asking, kind: str) -> None:
    answer = keyless("POST", "/query", content=b'{"query": "q"}', headers={"content-type": kind})
    assert refused(answer) == (422, "invalid_request")
    lied = keyless("POST", "/ingest", content=b'{"query": "q"}', headers={"content-type": kind})
    assert refused(lied)[0] in {400, 422}


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; b"])
def test_a_form_without_a_boundary_is_a_problem(keyless: Asking, kind: str) -> None:
    answer = keyless("POST", "/ingest", content=FORM_BEGINS, headers={"content-type": kind})
    assert refused(answer)[0] in {400, 422}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"query": ' + b"1" * 5000 + b"}",
        '{"query": "q"}'.encode("utf-16"),
        rb'{"query": "\ud800"}',
        rb'{"query": "q", "inputs": {"a": "\udc00\ud800"}}',
        b'{"query": "\xed\xa0\x80"}',
        b'{"query": "q", "inputs": NaN}',
        b"null",
        b"[]",
    ],
)
def test_what_is_no_question_in_json_is_a_problem(keyless: Asking, body: bytes) -> None:
    answer = keyless("POST", "/query", content=body, headers=JSON)
    assert refused(answer)[0] in {400, 422}


def test_nothing_is_believed_of_an_empty_body(keyless: Asking) -> None:
    assert refused(keyless("POST", "/query", content=b"", headers=JSON)) == (422, "invalid_request")


# Bytes of JSON

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max((depth(each) for each in inner), default=0)


@given(values, st.booleans(), st.integers(0, 80))
def test_depth_is_counted_as_a_parser_nests(value: Any, ascii_only: bool, around: int) -> None:
    for _ in range(around):
        value = ['\\"]', value, "]"]
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    with pytest.raises(ProblemError, match="deeper") if depth(value) > MOST_LEVELS else nullcontext():
        check_json(body)


@pytest.mark.parametrize("levels", [MOST_LEVELS, MOST_LEVELS + 1])
def test_the_limit_is_the_limit(levels: int) -> None:
    body = b'{"a":[' * (levels // 2) + b"[" * (levels % 2) + b'"]]]\\"]]"'
    if levels == MOST_LEVELS:
        check_json(body)
        return
    with pytest.raises(ProblemError, match="deeper than 64"):
        check_json(body)


@pytest.mark.parametrize("text", ["😀", "\\ud83d", "\\\\ud83d", "a\\", '"', "\\u0041", "é"])
def test_whole_characters_pass_however_they_are_escaped(text: str) -> None:
    check_json(json.dumps(text).encode())
    check_json(json.dumps(text, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    "half", [rb'"\ud83d"', rb'"\ud83d\\\ude00"', rb'"\\\ud83d"', rb'"\ude00\ud83d"', rb'"\uD83D "']
)
def test_half_a_character_does_not(half: bytes) -> None:
    with pytest.raises(ProblemError, match="half a character"):
        check_json(b'"%s"' % half)


@pytest.mark.parametrize(
    "body", [b"\xff", b'"\xed\xa0\x80"', '{"a": 1}'.encode("utf-16"), '{"a": 1}'.encode("utf-16-le"), b'"\0"']
)
def test_what_is_not_utf8_is_named_so(body: bytes) -> None:
    with pytest.raises(ProblemError, match="Send it as UTF-8"):
        check_json(body)


# The connection after it


def messages(path: str, parts: list[bytes]) -> tuple[list[dict[str, Any]], int]:
    """Return what is sent to a client whose body nobody reads, and how many parts of it were taken."""
    sent_messages, taken = [], 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": parts[taken - 1], "more_body": taken < len(parts)}

    async def send(message: dict[str, Any]) -> None:
        sent_messages.append(message)

    class State:
        class state:  # noqa: N801 - as Starlette calls it
            class access:  # noqa: N801
                options = Options("e1")

    scope = {"type": "http", "path": path, "headers": [(b"transfer-encoding", b"chunked")], "app": State}
    asyncio.run(Bodies(app)(scope, receive, send))  # type: ignore[arg-type]
    return sent_messages, taken


def test_an_answer_before_the_bodys_end_goes_out_whole_and_closes() -> None:
    (start, body, end), taken = messages("/query", [b"x" * 65536] * 1000)
    assert (b"connection", b"close") in start["headers"]
    assert (body["body"], body["more_body"]) == (b"no", True)
    assert (end["body"], end["more_body"]) == (b"", False)
    assert taken == 16


# Whatever goes wrong is told as problem+json, without a traceback, a path, or what was sent.


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = []
    monkeypatch.setattr(log, "handle", lambda record: said.append((record.getMessage(), record.exc_info)))
    return said


def problem(answer: httpx.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "code", "detail"} <= set(body)
    assert body["status"] == answer.status_code
    for never in ("Traceback", "/home", "/somewhere", ".py", "site-packages"):
        assert never not in answer.text
    return body


def test_what_nobody_foresaw_is_logged_whole_and_told_as_a_number(
    keyless: Asking, logged: list[tuple[str, Any]]
) -> None:
    answer = keyless("GET", "/fails")
    body = problem(answer)
    assert (answer.status_code, body["code"]) == (500, "unforeseen")
    assert body["trace_id"] == answer.headers["x-request-id"]
    ((message, trace),) = logged
    assert body["trace_id"] in message
    assert "a secret" in str(trace[1])


def test_half_an_answer_is_broken_off(keyless: Asking, logged: list[tuple[str, Any]]) -> None:
    with pytest.raises(RuntimeError, match="midway"):
        keyless("GET", "/breaks")
    assert len(logged) == 1


def test_a_damaged_state_is_503_and_says_what_to_do_without_a_path(keyless: Asking) -> None:
    answer = keyless("GET", "/stateless")
    assert (answer.status_code, problem(answer)["code"]) == (503, "state_unusable")
    assert "service.sqlite3 is damaged" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "10"


def test_a_database_that_cannot_be_read_is_503(db: Database) -> None:
    key = make_key(db, ["query"])
    db.write_now(lambda rows: rows.execute("ALTER TABLE keys RENAME TO lost"))
    assert problem(Asking(create_app(db), key).ask())["status"] == 503


def test_an_unknown_path_and_method_are_problems(keyless: Asking) -> None:
    assert problem(keyless("GET", "/nowhere"))["code"] == "no_such_path"
    refused = keyless("PUT", "/query")
    assert problem(refused)["code"] == "no_such_method"
    assert refused.headers["allow"] == "POST"


def test_the_field_is_named_and_what_was_sent_is_not_echoed(keyless: Asking) -> None:
    body = problem(keyless("POST", "/query", json={"query": {"a": "secret"}}))
    assert body["errors"] == [{"field": "body.query", "why": "Input should be a valid string"}]
    assert "body.query" in body["detail"]
    assert problem(keyless("GET", "/documents/x"))["errors"][0]["field"] == "path.doc_id"
    assert problem(keyless("POST", "/query", content=b"{", headers={"content-type": "application/json"}))["errors"]


def test_a_name_that_was_sent_is_cut_short(db: Database) -> None:
    app = create_app(db)
    answer = Asking(app)("GET", "/documents/" + "9" * 50_000)
    assert len(answer.content) < 1000

    @app.post("/numbers")
    async def numbers(asked: dict[str, int]) -> None: ...

    many = {f"{'name' * 1000}{number}": "x" for number in range(100)}
    body = problem(Asking(app)("POST", "/numbers", json=many))
    assert len(body["errors"]) == 20
    assert len(str(body)) < 10_000


@pytest.mark.parametrize("path", ["/health", "/nowhere", "/fails", "/query"])
def test_every_answer_has_its_headers(keyless: Asking, path: str) -> None:
    headers = keyless("GET", path).headers
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert len(headers["x-request-id"]) == 32
    assert "server" not in headers


def test_no_answer_opens_itself_to_other_sites(keyless: Asking) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/query"), ("GET", "/health"), ("POST", "/query")):
        headers = Asking(keyless.app, headers=origin)(method, path).headers
        assert not [name for name in headers if name.startswith("access-control")]


def test_each_request_has_an_id_of_its_own(keyless: Asking) -> None:
    asking = Asking(keyless.app, headers={"X-Request-ID": "chosen"})
    one, other = (asking("GET", "/health").headers["x-request-id"] for _ in range(2))
    assert len({one, other, "chosen"}) == 3


def test_a_page_keeps_the_policy_that_it_sets(db: Database) -> None:
    app = create_app(db)

    @app.get("/page")
    async def page() -> Any:
        from fastapi.responses import HTMLResponse

        return HTMLResponse("", headers={"Content-Security-Policy": "default-src 'self'"})

    assert Asking(app)("GET", "/page").headers["content-security-policy"] == "default-src 'self'"


def test_openapi_says_how_keys_are_sent(keyless: Asking) -> None:
    said = keyless("GET", "/openapi.json").json()
    assert set(said["components"]["securitySchemes"]) == {"key", "key in X-API-Key"}
    assert said["paths"]["/query"]["post"]["security"] == [{"key": []}, {"key in X-API-Key": []}]
    assert "security" not in said["paths"]["/health"]["get"]


def test_problems_of_middlewares_are_told_too(db: Database) -> None:
    app = create_app(db)

    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        raise ProblemError(418, "teapot", "No.")

    app.middleware_stack = Headers(Unforeseen(refuses))
    assert problem(Asking(app)("GET", "/health"))["code"] == "teapot"
