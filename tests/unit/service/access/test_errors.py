"""Whatever goes wrong is told as problem+json, without a traceback, a path, or what was sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rag_harness.core.log import log
from rag_harness.service.database import Database
from rag_harness.service.keys import make_key
from rag_harness.service.middleware import Headers, Unforeseen
from rag_harness.service.problems import ProblemError
from tests.unit.service.access.small_app import Asking, create_app


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
