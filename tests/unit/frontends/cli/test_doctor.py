"""``rag-harness doctor``: what it finds, what it never shows, when it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import requires
from pathlib import Path
from threading import Thread

import pytest
from packaging.requirements import Requirement

from rag_harness.__main__ import main
from rag_harness.core import package
from rag_harness.frontends.cli import doctor as doctor_module
from rag_harness.frontends.cli.doctor import without_secrets
from rag_harness.models import endpoints

KEY = "sk-very-secret-1234567890"
package_lines, extra_lines = cache(doctor_module.package_lines), cache(doctor_module.extra_lines)
"""The same in every test, and three quarters of what ``doctor`` takes."""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module, "package_lines", package_lines)
    monkeypatch.setattr(doctor_module, "extra_lines", extra_lines)
    monkeypatch.chdir(tmp_path)
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "RAG_CHAT_API_KEY", "KB_DIR", "DRY_RUN"):
        monkeypatch.delenv(name, raising=False)


def doctor(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    status = main(["doctor", *args])
    return status, capsys.readouterr().out


def suite(*lines: str) -> None:
    Path("docs").mkdir(exist_ok=True)
    Path("docs/a.md").write_text("# A\n\nText.\n")
    Path("pytest.ini").write_text("\n".join(["[pytest]", "rag_kb_dir = docs", *lines, ""]))


def test_the_version_is_that_of_the_distribution(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"pytest-rag-harness": "7.8.9"}[name])
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "pytest-rag-harness 7.8.9\n"


def test_an_empty_folder_is_no_fault_and_is_told_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = doctor(capsys)
    assert status == 0
    assert "  absent  documents: no folder data/kb\n          To do: rag-harness init writes a suite" in said
    assert said.endswith("\nnothing is broken\n")
    assert not list(Path().iterdir())


def test_every_package_that_is_always_needed_has_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = doctor(capsys)
    always = [each for each in map(Requirement, requires(package.NAME) or []) if each.marker is None]
    assert len(always) > 15
    for each in always:
        assert f"  {each.name} " in said


def test_an_extra_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"mammoth": "1.11"}
    monkeypatch.setattr(doctor_module, "_version_of", lambda name: there.get(name, "not installed"))
    lines = extra_lines.__wrapped__()
    assert "office: mammoth 1.11; lacks openpyxl. pip install 'pytest-rag-harness[office]'" in lines
    assert "parquet: not installed. pip install 'pytest-rag-harness[parquet]'" in lines


def test_a_suite_that_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    suite("rag_queries = q.jsonl", "rag_golden = q.jsonl", "rag_k = 3")
    Path("q.jsonl").write_text(json.dumps({"query": "q"}) + "\n\n")
    status, said = doctor(capsys)
    assert status == 0
    assert "  k = 3\n" in said
    assert "  ok      documents: 1 file in docs\n" in said
    assert "  ok      questions: q.jsonl, 1 line\n" in said


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["rag_queries = gone.jsonl"], "broken  questions: no file gone.jsonl\n          To do: rag-harness init"),
        (["rag_golden = gone.json"], "broken  golden set: no file gone.json"),
        (["rag_kb_dir = gone"], "broken  documents: no folder gone"),
        (["rag_top_k = many"], "broken  settings: top_k is 'many'"),
        (
            ["rag_cache_dir = docs/a.md"],
            "broken  cache_dir: docs/a.md is not a folder\n          To do: name another",
        ),
        (["rag_profile = openrouter", "rag_mode = live"], "broken  keys: OPENROUTER_API_KEY is not set"),
    ],
)
def test_what_the_settings_ask_for_and_is_not_there_ends_with_1(
    capsys: pytest.CaptureFixture[str], lines: list[str], said: str
) -> None:
    suite()
    ini = [line for line in Path("pytest.ini").read_text().splitlines() if not line.startswith(lines[0].split()[0])]
    Path("pytest.ini").write_text("\n".join([*ini, *lines]))
    status, out = doctor(capsys)
    assert status == 1
    assert said in out
    assert "\nbroken: 1. What to do stands below each.\n" in out


def test_a_server_is_named_and_its_client_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite("rag_qdrant_url = http://127.0.0.1:6333")
    assert "  ok      qdrant server: its client is installed\n" in doctor(capsys)[1]
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    status, said = doctor(capsys)
    assert status == 1
    assert "  broken  qdrant server: the package qdrant-client is not installed\n          To do: pip install " in said
    assert "To do: pip install 'pytest-rag-harness[qdrant]'\n" in said


def test_a_folder_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("No folder nowhere: ")


@pytest.mark.parametrize(("mode", "state"), [("auto", "absent"), ("replay", "absent"), ("live", "broken")])
def test_weights_that_are_not_there_are_a_fault_where_the_mode_needs_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: str, state: str
) -> None:
    monkeypatch.setattr(endpoints, "find_spec", lambda name: None)
    suite(f"rag_mode = {mode}")
    status, said = doctor(capsys)
    assert status == (state == "broken")
    assert f"  {state:<7} weights: sentence-transformers/all-MiniLM-L6-v2: the package sentence-transformers is" in said
    assert "To do: pip install 'pytest-rag-harness[local]'" in said


def test_no_secret_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("RAG_DEFINE", "my_token=private")
    suite(
        "rag_profile = openrouter",
        "rag_mode = live",
    )
    Path("pyproject.toml").write_text(
        '[tool.rag_harness.options.my_token]\ndefault = ""\naffects = "nothing"\nhelp = "h"\n'
        "[tool.rag_harness.endpoints.shop]\nurl = 'http://localhost:9/ask'\n"
        "headers = { Authorization = 'Bearer ${OPENROUTER_API_KEY}' }\nbody = { q = '{{query}}' }\n"
    )
    Path(".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    status, said = doctor(capsys)
    assert KEY not in said
    assert "private" not in said
    assert "  openrouter_api_key set\n" in said
    assert "  openai_api_key set\n" in said
    assert "  judge_api_key not set\n" in said
    assert "  defined = my_token\n" in said
    assert status == 0, said


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("see http://me:pw@h.example/a?b=c d", "see http://…@h.example/a?… d"),
        ("http://h.example/?key=v", "http://h.example/?…"),
        (f"no document in {Path.home()}/kb", "no document in ~/kb"),
        ("mail me@h.example?", "mail me@h.example?"),
    ],
)
def test_lines_lose_what_is_private(line: str, shown: str) -> None:
    assert without_secrets(line) == shown


def test_the_report_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    suite("rag_embed_model = evil\x1b[2J")
    _, said = doctor(capsys)
    assert "\x1b" not in said
    assert "evil" in said


def let_answer(url: str) -> None:
    Path("pyproject.toml").write_text(f'[tool.rag_harness.profiles.embedded.answer]\nbase_url = "{url}"\n')


class _Server(BaseHTTPRequestHandler):
    status, asked = 200, list[tuple[str, str]]()

    def do_GET(self) -> None:  # http.server's name
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(self.status)
        self.send_header("Location", "http://localhost:9/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    monkeypatch.setattr(_Server, "asked", [])
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (200, 0, "ok      chat endpoint: {} answers (HTTP 200)"),
        (404, 0, "ok      chat endpoint: {} answers (HTTP 404)"),
        (302, 0, "ok      chat endpoint: {} answers (HTTP 302)"),
        (401, 1, "broken  chat endpoint: {} refuses the key that is set (HTTP 401)"),
        (503, 1, "broken  chat endpoint: {} answers with HTTP 503"),
    ],
)
def test_the_chat_endpoint_is_asked_only_with_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str, status: int, code: int, said: str
) -> None:
    monkeypatch.setattr(_Server, "status", status)
    monkeypatch.setenv("RAG_CHAT_API_KEY", KEY)
    suite("")
    let_answer(url)
    assert doctor(capsys)[0] == 0
    assert _Server.asked == []
    found, out = doctor(capsys, "--network")
    assert (found, _Server.asked) == (code, [("/v1/models", f"Bearer {KEY}")])
    assert said.format(url) in out
    assert KEY not in out


def test_a_chat_endpoint_that_is_down_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    suite("")
    let_answer("http://127.0.0.1:9/v1")
    status, said = doctor(capsys, "--network")
    assert status == 1
    assert "broken  chat endpoint: http://127.0.0.1:9/v1 cannot be reached: ConnectError\n          To do: " in said


def test_it_imports_little(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom rag_harness.__main__ import main\nassert main(['doctor']) == 0\n"
        "heavy = {'torch', 'numpy', 'openai', 'httpx2', 'aiohttp', 'qdrant_edge', 'qdrant_client', 'pytest'}\n"
        "found = heavy & {name.partition('.')[0] for name in sys.modules}\nassert not found, found\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
