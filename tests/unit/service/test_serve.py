"""`rag-harness serve` as a person meets it: what it prints, how it ends, and what it says where it cannot begin."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

import rag_harness
from rag_harness.__main__ import main
from rag_harness.core.settings.loading import load_settings
from rag_harness.models.array_store import CachedEmbedder, Computed
from rag_harness.service import server
from rag_harness.service.app_state import Options
from rag_harness.service.authentication import listening_on, url_of
from rag_harness.service.corpus import preparation
from rag_harness.service.corpus.tenant_collections import Corpora
from rag_harness.service.database import StateFolder
from rag_harness.service.server import create_app
from tests.unit.service.corpus.corpora import write_pages


@pytest.fixture(autouse=True)
def in_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be in a folder with pages, and leave signals as they were."""
    write_pages(tmp_path / "kb")
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def serve(*more: str, experiment: str = "e2") -> int:
    words = ["serve", f"--experiment={experiment}", "--profile=mock", "--kb=kb", "--port=0", "--log-level=error"]
    return main([*words, *more])


def told_once(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> list[str]:
    """Have ``act`` done with the line that says it answers, away from the server's thread; return all that is told."""
    lines: list[str] = []

    def said(line: str, **_: Any) -> None:
        lines.append(line)
        if "answers at" in line:
            threading.Thread(target=act, args=(line,)).start()

    monkeypatch.setattr(server, "say", said)
    return lines


def test_it_says_its_address_at_once_and_again_when_it_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[int] = []

    def look(line: str) -> None:
        try:
            with urllib.request.urlopen(f"{line.rsplit(maxsplit=1)[-1]}ready", timeout=10) as answered:
                states.append(answered.status)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    lines = told_once(monkeypatch, look)
    assert serve() == 0
    assert states == [200]
    loads, answers = lines
    url = answers.rsplit(maxsplit=1)[-1]
    assert loads == f"e2 loads its documents; see how far at {url}"
    assert answers == f"e2 answers at {url}"
    assert url.startswith("http://127.0.0.1:")
    assert not url.endswith(":0/")


def test_a_configuration_is_served_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tuned.toml").write_text('[parameters]\nretriever = "bm25"\nrerank = false\ntop_k = 1\n')
    answers: list[httpx2.Response] = []

    def ask(line: str) -> None:
        try:
            url = line.rsplit(maxsplit=1)[-1]
            answers.append(httpx2.post(f"{url}query", json={"query": "lamps?"}, timeout=10))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    told_once(monkeypatch, ask)
    assert serve("--config=tuned.toml", experiment="tuned") == 0
    assert [each.status_code for each in answers] == [200]


def test_sigterm_ends_it_as_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told_once(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        serve("--state=state")
    assert ended.value.code == 0
    StateFolder(tmp_path / "state").__exit__(None, None, None)


LOADS_FOR_EVER = """
import sys, time
from rag_harness.__main__ import main
from rag_harness.service import server
from rag_harness.service.corpus.tenant_collections import Corpora

def load(corpora):
    print("loading", flush=True)
    time.sleep(60)

server._LOADING_GETS, Corpora._open = 0.2, load
sys.exit(main(["serve", "--experiment=e2", "--profile=mock", "--kb=kb", "--port=0"]))
"""


def test_it_ends_in_time_while_documents_are_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADS_FOR_EVER]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "loads its documents" in process.stdout.readline()
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "the next start goes on" in said


def test_it_ends_in_time_whatever_its_loop_is_busy_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop is held up until it is left: the test before shows that the process ends by that."""
    left, inner = threading.Event(), Corpora.close

    async def close(corpora: Corpora) -> bool:
        left.wait(20)
        return await inner(corpora)

    monkeypatch.setattr(server, "_leave", left.set)
    monkeypatch.setattr(server, "_LEAVES_WITHIN", 0.2)
    monkeypatch.setattr(Corpora, "close", close)
    told_once(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert serve() == 0
    assert left.is_set()


def test_who_ended_in_time_is_not_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(server, "_leave", lambda: left.append("left"))
    monkeypatch.setattr(server, "_LEAVES_WITHIN", 30.0)
    told_once(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert serve() == 0
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer) and each.is_alive()]
    assert left == []


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert serve(f"--port={port}") == 2
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1, and another program does" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("flags", "experiment", "words"),
    [
        ([], "nope", "Unknown experiment 'nope'"),
        ([], "e1", "asks parts.retrieval for nothing"),
        (["--kb=nowhere"], "e2", "No folder"),
        (["--port=99999"], "e2", "--port 99999 is none"),
        (["--host=127.0.0.300"], "e2", "there is no key"),
        (["--rate=often"], "e2", "'often' is not a rate"),
    ],
)
def test_what_it_cannot_begin_with_is_named(
    flags: list[str], experiment: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(*flags, experiment=experiment) == 2
    out, said = capsys.readouterr()
    assert words in said.splitlines()[-1]
    assert "Traceback" not in said
    assert "answers at" not in out


def test_an_exporter_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert serve("--otlp=http://127.0.0.1:9") == 2
    said = capsys.readouterr().err
    assert "rag-harness[service,otlp]" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "python_multipart", "structlog"])
def test_a_package_that_is_missing_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rag_harness, "service", rag_harness.service)  # put back as it was at the end, as are modules
    for name in [each for each in sys.modules if each.startswith("rag_harness.service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    if package == "uvicorn":
        monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.h11_impl", None)
    assert serve() == 2
    said = capsys.readouterr().err
    assert f"needs the package {package!r}" in said
    assert "rag-harness[service]" in said


def test_python_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert serve() == 2
    assert "needs Python 3.11 or newer" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flag", ["--concurrency=0", "--seconds=0", "--seconds=nan", "--upload-limit=0", "--trace-days=-1"]
)
def test_limits_that_would_refuse_everything_are_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        serve(flag)
    assert ended.value.code == 2
    assert flag.partition("=")[0] in capsys.readouterr().err


def test_while_documents_are_loaded_it_lives_and_says_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, inner = threading.Event(), Corpora._open
    monkeypatch.setattr(Corpora, "_open", lambda corpora: (go_on.wait(30), inner(corpora)))

    async def scenario() -> None:
        ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        settings = load_settings({"profile": "mock"}, rootdir=tmp_path)
        with StateFolder(tmp_path / "state") as state:
            options = Options("e2", tmp_path / "state", tmp_path / "kb")
            app = create_app(lambda: server.opened(options, settings, state, ended.set_result))
            async with app.router.lifespan_context(app):
                transport = httpx2.ASGITransport(app=app)
                async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                    try:
                        await _is_starting(client)
                    finally:
                        go_on.set()
                    assert await ended is None
                    assert (await client.get("/ready")).json()["status"] == "ready"
                    assert (await client.post("/query", json={"query": "zip"})).status_code == 200

    asyncio.run(scenario())


def test_while_documents_are_loaded_it_says_how_many_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the chunks of the only batch are embedded: half of its documents count."""
    waits, go_on, inner = threading.Event(), threading.Event(), CachedEmbedder.compute
    done: list[str] = []

    def compute(embedder: CachedEmbedder, texts: Sequence[str], role: str, with_tokens: bool) -> Computed:
        if role == "document" and done:
            waits.set()
            assert go_on.wait(30)
        done.extend(texts if role == "document" else ())
        return inner(embedder, texts, role, with_tokens)

    monkeypatch.setattr(CachedEmbedder, "compute", compute)
    monkeypatch.setattr(preparation, "_TOGETHER", 2)
    kb = write_pages(tmp_path / "four", {f"{n}.md": f"# Page {n}\n\nWords of it, {n}.\n" for n in range(4)})

    async def scenario() -> None:
        ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        settings = load_settings({"profile": "mock"}, rootdir=tmp_path)
        with StateFolder(tmp_path / "state") as state:
            options = Options("e2", tmp_path / "state", kb)
            app = create_app(lambda: server.opened(options, settings, state, ended.set_result))
            async with app.router.lifespan_context(app):
                transport = httpx2.ASGITransport(app=app)
                async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                    try:
                        assert await asyncio.to_thread(waits.wait, 30)
                        progress = (await client.get("/ready")).json()["progress"]
                        detail = (await client.post("/query", json={"query": "zip"})).json()["detail"]
                    finally:
                        go_on.set()
                    assert await ended is None
                    assert (await client.get("/ready")).json() == {
                        "status": "ready",
                        "experiment": "e2",
                        "progress": "",
                    }
        assert progress.startswith("loading 2/4 documents, ")
        assert progress.endswith(" left")
        assert detail.startswith("This server is starting: loading 2/4 documents, ")

    asyncio.run(scenario())


async def _is_starting(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/health")).status_code == 200
    ready = await client.get("/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "starting")
    refused = [
        await client.post("/query", json={"query": "zip"}),
        await client.post("/ingest", files={"file": ("stove.md", b"# Stove\n")}),
        await client.get("/documents"),
    ]
    told = [(each.status_code, each.json()["code"], each.headers["retry-after"]) for each in refused]
    for each in refused:
        assert each.json()["detail"] == "This server is starting: its documents are being loaded. Ask again in 5 s."
    assert told == [(503, "starting", "5")] * 3
    chat = await client.post(
        "/v1/chat/completions", json={"model": "e2", "messages": [{"role": "user", "content": "zip"}]}
    )
    assert (chat.status_code, chat.json()["error"]["code"]) == (503, "starting")
    assert (await client.get("/metrics")).status_code == 200


def test_a_name_with_several_addresses_is_listened_to_on_one_port() -> None:
    sockets = listening_on("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in sockets}) == 1
    finally:
        for each in sockets:
            each.close()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("", "http://127.0.0.1:80/"),
        ("0.0.0.0", "http://127.0.0.1:80/"),
        ("::", "http://[::1]:80/"),
        ("localhost", "http://localhost:80/"),
    ],
)
def test_the_address_that_is_told_can_be_opened(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_no_answer_waits_until_its_headers_are_confirmed() -> None:
    (listening,) = listening_on("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
