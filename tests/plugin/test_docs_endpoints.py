"""The examples of services on the pages are taken from there and run, against a stub of what they describe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.settings.endpoints import read_endpoint
from tests.plugin.conftest import Suite
from tests.talking_server import talking_server
from tests.unit.pipelines.endpoint.mcp_server import McpServer, text_result
from tests.unit.server import Reply, as_json, serving

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```(toml|python)\n(.*?)```", re.DOTALL)
LAMP = "You can return a lamp within 45 days."
KEY = "planted-0123456789"
HERE = "http://127.0.0.1:8000/"


def _blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if kind == language]


def _lines(page: str, language: str) -> list[str]:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1].splitlines()


(PLAIN,), (VERSION,), (CHAT, SSE), (TALK,), (MEMORY,), (MCP,) = (
    _blocks(f"docs/how-to/{page}.md", "toml")
    for page in (
        "endpoints",
        "endpoint-version",
        "endpoint-streams",
        "endpoint-history",
        "endpoint-sessions",
        "endpoint-mcp",
    )
)
USERS = "docs/how-to/endpoint-users.md"
REFERENCE = (ROOT / "docs" / "reference" / "endpoints.md").read_text(encoding="utf-8")
(README, *_) = _blocks("README.md", "toml")
(TEST,) = _blocks("docs/how-to/endpoints.md", "python")


def _stream(*events: tuple[str, Any]) -> Reply:
    lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
    return Reply(body="".join(lines).encode(), kind="text/event-stream")


ANSWERED = as_json({"answer": f"{LAMP} [Source 1]", "contexts": [{"text": LAMP}]})
COMPLETED = _stream(
    ("message", {"model": "my-rag-7", "choices": [{"delta": {"content": f"{LAMP} "}}], "contexts": [{"text": LAMP}]}),
    ("message", {"choices": [{"delta": {"content": "[Source 1]"}, "finish_reason": "stop"}]}),
    ("message", {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
)
STREAMED = _stream(
    ("retrieval", {"contexts": [{"document": "/kb/returns.md"}]}),
    ("token", {"text": f"{LAMP} "}),
    ("token", {"text": "[Source 1]"}),
    ("done", {"confidence": 0.5}),
)


@pytest.fixture
def service(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    (only,) = suite.path.glob("test_*.py")
    only.write_text(TEST)
    monkeypatch.setenv("MY_SERVICE_KEY", KEY)
    return suite


def check(service: Suite) -> dict[str, Any]:
    """Record, replay without a server, and return the row of the first question."""
    service.run("--rag-endpoint=my_service.toml", "--rag-mode=record").assert_outcomes(passed=4)
    return replayed(service)


def replayed(service: Suite) -> dict[str, Any]:
    result = service.run("--rag-endpoint=my_service.toml", "--rag-overwrite", "--rag-mode=replay")
    result.assert_outcomes(passed=4)
    rows: list[dict[str, Any]] = service.rows("my_service")
    (row,) = (row for row in rows if row["query_id"] == "q_direct_001")
    assert row["llm_answer"] == f"{LAMP} [Source 1]"
    assert [chunk["metadata"]["filename"] for chunk in row["retrieved_chunks"]] == ["returns.md"]
    assert row["citations"] == [1]
    kept = "".join(file.read_text() for file in (service.path / "cassettes").rglob("*.yaml"))
    assert KEY not in kept + result.stdout.str()
    return row


def write(service: Suite, spec: str, url: str) -> None:
    assert HERE in spec
    (service.path / "my_service.toml").write_text(spec.replace(HERE, url.removesuffix("v1")))


@pytest.mark.parametrize("spec", [README, PLAIN], ids=["readme", "plain"])
def test_plain_json(service: Suite, spec: str) -> None:
    with serving(ANSWERED) as server:
        write(service, spec, server.url)
        check(service)
    assert {"query": "return a lamp"} in server.requests


def test_the_readme_keeps_its_word() -> None:
    assert len([line for line in README.splitlines() if line and not line.startswith("#")]) == 5


def test_a_chat_endpoint(service: Suite) -> None:
    with serving(COMPLETED) as server:
        write(service, CHAT, server.url)
        row = check(service)
    assert (row["model"], row["usage"]["prompt_tokens"], row["timings_recorded"]) == ("my-rag-7", 9, True)
    assert row["ttft_ms"] is not None
    assert server.requests[0]["model"] == "my-rag"


def test_what_was_said_before_is_sent_in_one_line(service: Suite) -> None:
    turns = [{"query": "how long?", "ground_truth": "45 days"}, {"query": "and lamps?"}]
    service.write_queries([{"conversation": "c1", "turns": turns}])
    with serving(ANSWERED) as server:
        write(service, TALK, server.url)
        service.run("--rag-endpoint=my_service.toml", "--rag-mode=record", "-n0").assert_outcomes(passed=2)
    last = max((request["messages"] for request in server.requests), key=len)  # they come in any order
    assert [each["content"] for each in last] == ["Answer in one sentence.", "how long?", "45 days", "and lamps?"]


def test_the_reference_has_every_key() -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / "endpoint.schema.json").read_text(encoding="utf-8"))
    named = {*re.findall(r"`\[?(\w+)\]?`", REFERENCE)}
    for table in (schema, *(schema["properties"][name] for name in ("read", "session", "history"))):
        assert {*table["properties"]} - named == set()


def test_a_service_that_keeps_conversations_itself(service: Suite) -> None:
    service.write_queries([{"conversation": f"c{n}", "turns": [{"query": "q1"}, {"query": "q2"}]} for n in range(2)])
    with talking_server() as server:
        spec = MEMORY.replace("session_id = ", "session = ").replace('path = "session_id"', 'path = "session"')
        assert spec != MEMORY
        write(service, spec, f"{server.url}/")
        for mode in ("record", "replay"):
            service.run("--rag-endpoint=my_service.toml", f"--rag-mode={mode}", "--rag-overwrite").assert_outcomes(
                passed=4
            )
    assert {row["llm_answer"] for row in service.rows("my_service")} == {"1. q1 after nothing", "2. q2 after q1"}
    assert len(server.heard) == 4


def test_server_sent_events(service: Suite) -> None:
    with serving(STREAMED) as server:
        write(service, SSE, server.url)
        row = check(service)
    assert row["confidence"] == 0.5
    assert row["ttft_ms"] is not None


def test_a_tool_over_mcp(service: Suite) -> None:
    said = {"answer": f"{LAMP} [Source 1]", "passages": [{"text": LAMP}]}
    with serving() as server:
        server.__class__ = McpServer
        vars(server).update(result=text_result("see there", structuredContent=said))
        write(service, MCP, server.url)
        check(service)
    params = [each["params"] for each in server.requests if each["method"] == "tools/call"]
    assert {"name": "ask_handbook", "arguments": {"question": "return a lamp"}} in params


def test_a_leak_to_one_user_fails_the_gate_on_that_user(service: Suite) -> None:
    (spec,), lines = _blocks(USERS, "toml"), [json.loads(line) for line in _lines(USERS, "json")]
    (gate,) = _lines(USERS, "gates")
    service.write_queries(lines)
    for leaks in (False, True):
        said = ["82,000" if leaks else "Ask your manager.", "82,000"]
        with serving(*(as_json({"answer": each}) for each in said)) as server:
            write(service, spec, server.url)
            options = ("--rag-endpoint=my_service.toml", "--rag-mode=live", "--rag-concurrency=1", "-n0")
            result = service.run(*options, f"--rag-gate={gate}")
        result.assert_outcomes(passed=2, failed=int(leaks))  # the gate
        assert {"query": lines[0]["query"], "user": "guest"} in server.requests


def test_a_version_stands_where_the_page_says(tmp_path: Path) -> None:
    file = tmp_path / "my_service.toml"
    file.write_text(VERSION)
    version = read_endpoint(file).version
    assert (version.url, version.path) == ("http://127.0.0.1:8000/health", "build.commit")
