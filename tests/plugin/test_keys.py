"""Keys: servers with and without them, and that none is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.settings import Settings, env_name
from tests.model_server import ModelServer
from tests.plugin.conftest import Suite
from tests.serving import running
from tests.unit.server import Reply, serving

# A server without keys needs no key of anybody; one with keys says once whose key it refuses, and where it is set.

KEY = "sk-right-0123456789"
NAMES = ("OPENAI_API_KEY", "RAG_CHAT_API_KEY", "RAG_JUDGE_API_KEY", "RAG_WRITER_API_KEY", "RAG_REWRITE_API_KEY",
         "RAG_USER_API_KEY")  # fmt: skip


class KeyedServer(ModelServer):
    """Embeds and answers. With ``key`` it refuses, with 401, whoever does not send it."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.key = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KeyedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        role = "embed" if self.path.endswith("/embeddings") else body["model"]
        with self.server.lock:
            self.server.calls[role] += 1
        if self.server.key and self.headers.get("authorization") != f"Bearer {self.server.key}":
            said = f"Incorrect API key provided: {self.headers.get('authorization')}"
            self._send(401, "application/json", {"error": {"message": said, "code": "invalid_api_key"}})
        elif role == "embed":
            vectors = [{"index": n, "embedding": [1.0, float(len(text))]} for n, text in enumerate(body["input"])]
            self._send(200, "application/json", {"object": "list", "data": vectors, "model": "m"})
        else:
            head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": role}
            choice = {"index": 0, "delta": {"content": '{"answer": "so"}'}, "finish_reason": "stop"}
            delta = {**head, "choices": [choice]}
            self._send(200, "text/event-stream", delta)

    def _send(self, status: int, kind: str, content: Any) -> None:
        text = json.dumps(content)
        raw = (f"data: {text}\n\ndata: [DONE]\n\n" if kind == "text/event-stream" else text).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedServer]:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    with running(KeyedServer()) as served:
        yield served


def profile(suite: Suite, **urls: str) -> None:
    told = {
        "chat_model": "mock/placeholder",
        "chat_base_url": "embedded://",
        "embed_model": "mock/hashed-words",
        "embed_base_url": "",
        "rerank_model": "mock/word-overlap",
        **urls,
    }
    judge = {name.removeprefix("judge_"): told.pop(name) for name in [*told] if name.startswith("judge_")}
    lines, of_judge = (
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in each.items()) for each in (told, judge)
    )
    suite.pytester.makepyprojecttoml(
        f"[tool.rag_harness.profiles.own]\n{lines}\n[tool.rag_harness.profiles.own.judge]\n{of_judge}"
    )
    # The count of tokens of OpenAI's models is downloaded; here there is no network.
    (suite.path / "tiktoken.py").write_text(
        "class _Words:\n    encode_ordinary = staticmethod(str.split)\n\n\ndef get_encoding(name):\n    return _Words\n"
    )
    suite.pytester.syspathinsert()


def run(suite: Suite, *more: str) -> pytest.RunResult:
    return suite.run("--rag-profile=own", "--rag-mode=live", "-p", "no:rag_harness.progress", *more)


def test_a_server_without_keys_needs_none(suite: Suite, server: KeyedServer) -> None:
    profile(
        suite,
        embed_model="openai:m",
        embed_base_url=server.url,
        chat_model="openai:answering",
        chat_base_url=server.url,
    )
    run(suite).assert_outcomes(passed=4)
    assert set(server.calls) == {"embed", "answering"}


ROLES = {
    "embed": ("OPENAI_API_KEY", {"embed_model": "openai:m"}),
    "answer": ("RAG_CHAT_API_KEY", {"chat_model": "openai:answering"}),
    "judge": ("RAG_JUDGE_API_KEY", {"judge_model": "openai:judging"}),
}
URLS = {"embed": "embed_base_url", "answer": "chat_base_url", "judge": "judge_base_url"}
JUDGING = ("--rag-judge=fused", "--rag-measures=faithfulness")


@pytest.mark.parametrize(
    ("role", "workers"),
    [
        ("embed", ()),
        pytest.param("embed", ("-n", "2"), marks=pytest.mark.long),
        ("answer", ()),
        ("judge", ()),
    ],
)
def test_a_key_that_lacks_or_is_wrong_is_said_in_one_sentence(
    suite: Suite, server: KeyedServer, monkeypatch: pytest.MonkeyPatch, role: str, workers: tuple[str, ...]
) -> None:
    variable, model = ROLES[role]
    profile(suite, **model, **{URLS[role]: server.url})
    more = (*workers, *(JUDGING if role == "judge" else ()))
    server.key = KEY
    where = f"The server of role {role} at {server.url}/ answers 401: "
    lacking = run(suite, *more).stdout.str()
    assert f"{where}it wants a key, and {variable} is not set." in " ".join(lacking.split())
    monkeypatch.setenv(variable, "sk-wrong")
    wrong = run(suite, *more).stdout.str()
    assert f"{where}it refuses the key of {variable}." in " ".join(wrong.split())
    assert "Traceback" not in lacking + wrong
    assert "Missing credentials" not in lacking
    assert "sk-wrong" not in wrong


def test_each_role_sends_its_own_key(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks a server of its own, which takes no other key."""
    with ExitStack() as served:
        servers = {role: served.enter_context(running(KeyedServer())) for role in ROLES}
        for role, (variable, _) in ROLES.items():
            servers[role].key = f"{KEY}-{role}"
            monkeypatch.setenv(variable, servers[role].key)
        models = {name: model for _, each in ROLES.values() for name, model in each.items()}
        profile(suite, **models, **{URLS[role]: server.url for role, server in servers.items()})
        run(suite, *JUDGING).assert_outcomes(passed=4)
    assert {role: bool(server.calls) for role, server in servers.items()} == dict.fromkeys(ROLES, True)


# No key is written down: not into the output folder, the log, the report, the record of the run, nor the terminal.

LITERAL_KEYS_KEY = "sk-canary0123456789abcdef"
ADDRESSES = [each.name for each in fields(Settings) if each.metadata.get("address") and each.metadata["flag"]]
SECRETS = [env_name(each) for each in fields(Settings) if each.metadata.get("secret")]
INI = "[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\n"
ENDPOINT = """
[tool.rag_harness.endpoints.shop]
url = "URL/${PLACE}/ask?code=${CODE}"
headers = {Authorization = "Bearer ${BEARER}"}
body = {q = "{{query}}"}
"""
SHOP = "import pytest\n\n\n@pytest.mark.shop\ndef test_shop(rag_result):\n    assert rag_result.ok, rag_result.why\n"


def leaks(suite: Suite, said: pytest.RunResult, given: Sequence[str]) -> list[str]:
    """Return where the key stands, besides the files in which the user has written it."""
    files = [each for each in suite.path.rglob("*") if each.is_file() and each.name not in given]
    found = [str(each.relative_to(suite.path)) for each in files if LITERAL_KEYS_KEY.encode() in each.read_bytes()]
    return found + [name for name in ("stdout", "stderr") if LITERAL_KEYS_KEY in getattr(said, name).str()]


@pytest.mark.parametrize("name", ADDRESSES)
def test_no_key_of_an_address_is_written(suite: Suite, name: str) -> None:
    address = f"http://u:{LITERAL_KEYS_KEY}@127.0.0.1:9/v1?key={LITERAL_KEYS_KEY}"
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = mock\nrag_mode = live\nrag_{name} = {address}\n")
    said = suite.run("--rag-report=report.html")
    assert not leaks(suite, said, ["tox.ini"])
    assert f"{name} holds a user or a password" in " ".join((said.stdout.str() + said.stderr.str()).split())


@pytest.mark.parametrize("name", ["chat_base_url", "judge_base_url"])
def test_no_key_of_a_profile_is_written(suite: Suite, name: str) -> None:
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = p\nrag_mode = live\n")
    suite.pytester.makepyprojecttoml(
        f'[tool.rag_harness.profiles.p]\nchat_model = "m"\nembed_model = "mock/hashed-words"\nembed_base_url = ""\n'
        f'rerank_model = "mock/word-overlap"\njudge_model = "m"\n{name} = "http://127.0.0.1:9/v1?key={LITERAL_KEYS_KEY}"\n'
    )
    said = suite.run("--rag-report=report.html")
    assert not leaks(suite, said, ["tox.ini", "pyproject.toml"])
    assert said.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("status", [400, 307])
def test_no_key_of_a_variable_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """A service repeats what it was sent. Each key ends otherwise: what hides one hides no other by the way."""
    named = [*SECRETS, "PLACE", "CODE", "BEARER", "OTEL_EXPORTER_OTLP_HEADERS", "LANGFUSE_SECRET_KEY", "HF_TOKEN"]
    for number, variable in enumerate(named):
        monkeypatch.setenv(
            variable,
            f"x-key={LITERAL_KEYS_KEY}-{number}" if variable.startswith("OTEL") else f"{LITERAL_KEYS_KEY}-{number}",
        )
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = mock\nrag_mode = live\nrag_otlp = http://127.0.0.1:9\n")
    suite.pytester.makepyfile(test_shop=SHOP)
    sent = f"{LITERAL_KEYS_KEY}-{named.index('BEARER')} ?code={LITERAL_KEYS_KEY}-{named.index('CODE')}"
    place = f"http://u:{LITERAL_KEYS_KEY}@elsewhere/?code={LITERAL_KEYS_KEY}#{LITERAL_KEYS_KEY}"
    refusing = Reply(status, json.dumps({"error": sent}).encode(), headers={"location": place})
    with serving(*[refusing] * 4) as server:
        suite.pytester.makepyprojecttoml(ENDPOINT.replace("URL", server.url))
        said = suite.run("--rag-report=report.html", "--rag-timeout=2", "-v")
    assert list((suite.path / "output").glob("shop*.jsonl")), said.stdout.str()
    assert not leaks(suite, said, [])


def test_the_folder_of_a_run_is_that_of_the_suite(suite: Suite) -> None:
    """The other tests read what a run writes, so it must be there that it writes."""
    suite.run("--rag-report=report.html")
    written = {each.name for each in Path(suite.path).rglob("*")}
    assert {"run.json", "report.html", "logs"} <= written
