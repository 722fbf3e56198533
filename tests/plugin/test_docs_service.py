"""What README and the pages about services and endpoints promise is done."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from docs.made import IMAGES
from docs.made.recorded import QUESTION
from rag_harness.core.settings.endpoints import read_endpoint
from rag_harness.service.app_state import (
    MOST_CHARACTERS_EACH,
    MOST_CHARACTERS_OF_ALL,
    MOST_OF_ALL,
    MOST_OF_OWNER,
    MOST_TURNS_KEPT,
    OLDEST_S,
)
from tests.plugin.conftest import Suite
from tests.talking_server import talking_server
from tests.unit.pipelines.endpoint.mcp_server import McpServer, text_result
from tests.unit.server import Reply, as_json, serving

# What README and the pages about the service promise is done: one command serves, and the service is evaluated.

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs/how-to"
PAGE = (HOW_TO / "service.md").read_text(encoding="utf-8")
EVALUATED = (HOW_TO / "service-evaluate.md").read_text(encoding="utf-8")
CONVERSATIONS = (HOW_TO / "service-conversations.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVED, TALKING = re.findall(r"```toml\n(.*?)```", EVALUATED, re.DOTALL)
(COMMAND,) = re.findall(r"^    (rag-harness serve --experiment r1 --kb my_docs)", README, re.MULTILINE)
ASKED = 15
TEST = """
import pytest


@pytest.mark.rag_experiment("served")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a server that the README's command has started, over the study's pages."""
    folder, port = tmp_path_factory.mktemp("served"), _free_port()
    # In mode replay, for CI's core has no weights; on a port of its own.
    own = f"--mode replay --port {port} --state {folder / 'state'} --log-level warning"
    words = shlex.split(f"{COMMAND.replace('my_docs', 'data/kb')} {own}")
    assert words.pop(0) == "rag-harness"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "rag_harness", *words], cwd=ROOT, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/ready", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8"))


def test_one_command_serves(url: str) -> None:
    question = json.dumps({"query": json.loads(_questions()[4])["query"]}).encode()
    asked = urllib.request.Request(f"{url}/query", question, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answered:
        said = json.loads(answered.read())
    shown = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
    assert said.keys() == shown.keys()
    (cited, *_) = said["citations"]
    assert cited.keys() == shown["citations"][0].keys()
    text = (ROOT / "data/kb" / cited["document"]).read_text(encoding="utf-8")
    assert text[cited["start"] : cited["end"]] == cited["quote"]


def test_the_picture_of_the_page_shows_what_is_answered(url: str) -> None:
    shown = json.loads((IMAGES / "made.json").read_text(encoding="utf-8"))["service-page.png"]
    question = json.dumps({"query": QUESTION}).encode()
    asked = urllib.request.Request(f"{url}/query", question, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answered:
        said = json.loads(answered.read())
    assert QUESTION in shown
    assert any(f", {said['confidence']:.0%}".replace("%", " %") in each for each in shown)
    answer = re.sub(r"\s*\[Source \d\]\s*", "|", said["answer"]).strip("|").split("|")
    assert [each for each in answer if each not in shown] == [], "take it again: python -m docs.made.screenshots"


def test_the_page_of_the_readme_is_there(url: str) -> None:
    with urllib.request.urlopen(f"{url}/", timeout=30) as answered:
        assert b"<title>" in answered.read()


@pytest.mark.long
def test_what_is_served_answers_as_what_was_evaluated(url: str, suite: Suite) -> None:
    """The same answers, decisions and ranks, of the experiment by its address and of the experiment itself."""
    (suite.path / "served.toml").write_text(SERVED.replace("http://127.0.0.1:8000", url))
    (only,) = suite.path.glob("test_*.py")
    only.write_text(TEST)
    (suite.path / "queries.jsonl").write_text("".join(_questions()[:ASKED]), encoding="utf-8")
    data = [f"--rag-kb-dir={ROOT / 'data/kb'}", f"--rag-queries={suite.path / 'queries.jsonl'}"]
    suite.run("--rag-endpoint=served.toml", "--rag-mode=live", *data).assert_outcomes(passed=ASKED)
    only.write_text(TEST.replace('"served"', '"r1"'))
    own = [f"--rag-project={ROOT}"]
    suite.run("--rag-profile=embedded", "--rag-mode=replay", *own, *data).assert_outcomes(passed=ASKED)
    there, here = ({row["query_id"]: _said(row) for row in suite.rows(name)} for name in ("served", "r1_reliable"))
    assert there == here
    assert len({decision for _, decision, *_ in here.values()}) > 1


def _said_to(url: str, line: str, conversation: str, question: str) -> Any:
    """Send what a line of the page with curl sends, about a question that is recorded, and return the answer."""
    words = shlex.split(line.replace("9f2c4e0a7b1d4c5e8a6f3b2d1c0e9f8a", conversation))
    given = dict(pairwise(words))
    body = json.dumps({**json.loads(given["-d"]), "query": question}).encode() if "-d" in given else None
    address = f"{url}{next(word for word in words if word.startswith('127.0.0.1:8000')).removeprefix('127.0.0.1:8000')}"
    headers = dict([given["-H"].split(": ")]) if "-H" in given else {}
    asked = urllib.request.Request(address, body, headers, method=given.get("-X"))
    with urllib.request.urlopen(asked, timeout=30) as answered:
        return json.loads(answered.read() or b"null")


def test_a_conversation_is_kept_by_the_server_or_by_the_client_as_the_page_says(url: str) -> None:
    begin, first, second, end, by_client = (line for line in CONVERSATIONS.splitlines() if line.startswith("    curl "))
    question = json.loads(_questions()[4])["query"]
    talk = _said_to(url, begin, "", "")["conversation"]
    said = [_said_to(url, line, talk, question) for line in (first, second, by_client)]
    assert [(each["conversation"], each["turn"]) for each in said] == [(talk, 1), (talk, 2), (None, None)]
    assert [each["history_read"] for each in said] == [None, False, False]
    assert _said_to(url, end, talk, "") is None
    with pytest.raises(HTTPError) as refused:
        _said_to(url, second, talk, question)
    problem = json.loads(refused.value.read())
    assert (problem["status"], problem["code"]) == (404, "no_such_conversation")


def test_the_limits_of_conversations_are_those_of_the_page() -> None:
    assert (
        f"{MOST_TURNS_KEPT} turns; after {MOST_CHARACTERS_EACH:,} characters it takes no further turn" in CONVERSATIONS
    )
    assert f"{2 * MOST_TURNS_KEPT} at most" in CONVERSATIONS
    assert f"{MOST_OF_OWNER} conversations" in CONVERSATIONS
    assert f"{MOST_OF_ALL:,} conversations with {MOST_CHARACTERS_OF_ALL >> 20} million characters" in CONVERSATIONS
    assert "a day since its last turn" in CONVERSATIONS
    assert OLDEST_S == 24 * 60 * 60


def test_conversations_of_what_is_served_are_evaluated_by_its_address(url: str, suite: Suite) -> None:
    (suite.path / "talking.toml").write_text(TALKING.replace("http://127.0.0.1:8000", url))
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    texts = [json.loads(line)["query"] for line in _questions()[:4]]
    talks = [{"conversation": f"c{n}", "turns": [{"query": each} for each in texts[n : n + 2]]} for n in (0, 2)]
    (suite.path / "talks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in talks), encoding="utf-8")
    data = [f"--rag-kb-dir={ROOT / 'data/kb'}", f"--rag-queries={suite.path / 'talks.jsonl'}"]
    suite.run("--rag-endpoint=talking.toml", "--rag-mode=record", *data).assert_outcomes(passed=4)
    rows: list[Any] = suite.rows("talking")
    assert sorted(len(row["inputs"].get("history", ())) for row in rows) == [0, 0, 2, 2]
    sessions = {row["query_id"]: row["stages"][0]["detail"]["service_session"] for row in rows}
    assert sessions["c0#1"] == sessions["c0#2"] != sessions["c2#1"] == sessions["c2#2"]


def _said(row: Any) -> tuple[Any, ...]:
    (decision,) = [each["outcome"] for each in row["decisions"] if each["name"] in ("decision", "service")]
    found = [each["chunk_id"].partition("#")[0] for each in row["candidates"]]
    return row["llm_answer"], decision, row["confidence"], found


def _questions() -> list[str]:
    return (ROOT / "data/kb/queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


# The examples of services on the pages are taken from there and run, against a stub of what they describe.

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
(DOCS_ENDPOINTS_README, *_) = _blocks("README.md", "toml")
(DOCS_ENDPOINTS_TEST,) = _blocks("docs/how-to/endpoints.md", "python")


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
    only.write_text(DOCS_ENDPOINTS_TEST)
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


@pytest.mark.parametrize("spec", [DOCS_ENDPOINTS_README, PLAIN], ids=["readme", "plain"])
def test_plain_json(service: Suite, spec: str) -> None:
    with serving(ANSWERED) as server:
        write(service, spec, server.url)
        check(service)
    assert {"query": "return a lamp"} in server.requests


def test_the_readme_keeps_its_word() -> None:
    assert len([line for line in DOCS_ENDPOINTS_README.splitlines() if line and not line.startswith("#")]) == 5


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
