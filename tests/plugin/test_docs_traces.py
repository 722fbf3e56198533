"""The pages on traces do what they say: their code is run."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite
from tests.unit.page.exports.otlp_receiver import otlp_receiver
from tests.unit.pipelines.endpoint.tracing_service import tracing_service
from tests.unit.pipelines.otel.exported.files import langfuse, otlp, phoenix, written

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name, page in {
        "in process": "how-to/traces.md",
        "by hand": "how-to/traces-by-hand.md",
        "service": "how-to/traces-service.md",
        "production": "how-to/traces-production.md",
        "backend": "how-to/traces-backend.md",
        "reference": "reference/traces.md",
    }.items()
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


def code_of_two_pages() -> list[str]:
    return [*blocks("in process", "python"), *blocks("by hand", "python")]


def test_spans_by_hand(suite: Suite) -> None:
    test, conftest = code_of_two_pages()
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(test)
    suite.run().assert_outcomes(passed=4)
    rows: dict[Any, Any] = {row["query_id"]: row for row in suite.rows("mine")}
    hits = {name: [hit["filename"] for hit in row["stages"][0].get("hits", ())] for name, row in rows.items()}
    assert hits["q_direct_001"] == ["returns.md"]
    assert hits["q_direct_002"] == ["shipping.md"]
    assert hits["q_negative_001"] == []


def test_three_lines_of_langchain(suite: Suite) -> None:
    for package in ("langchain_core", "openinference"):
        if find_spec(package) is None:
            pytest.skip(
                f"{package} is not installed: pip install openinference-instrumentation-langchain langchain-core"
            )
    (conftest,) = blocks("in process", "python-langchain")
    folder = suite.path / "app"
    shutil.copytree(ROOT / "examples" / "kb", suite.path / "kb", dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "langchain", folder, ignore=shutil.ignore_patterns("test_*", "pytest.ini"))
    (suite.path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(folder)!r})\n{conftest}")
    suite.pytester.makepyfile(code_of_two_pages()[0])
    suite.run().assert_outcomes(passed=6)
    rows: list[Any] = suite.rows("mine")
    assert all(len(row["retrieved_chunks"]) == 3 for row in rows)
    assert all(chunk["metadata"]["filename"].endswith(".md") for row in rows for chunk in row["retrieved_chunks"])


def test_commands_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("traces.jsonl"), otlp(1), *phoenix(2), langfuse(3))
    commands = re.findall(r"^    rag-harness (.+)$", PAGES["production"], re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        more = ["--profile=mock"] if command.startswith("traces") else []
        assert main([*command.split(), *more]) == 0
    assert len(Path("rows.jsonl").read_text().splitlines()) == 3
    assert len(Path("asked.jsonl").read_text().splitlines()) == 1


@pytest.mark.long
def test_a_service_that_sends_its_spans(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    (described,) = blocks("service", "toml")
    with tracing_service() as service:
        more = f"traces_port = {service.port}\ntraces_late = 0.1\n"
        (suite.path / "mine.toml").write_text(f'url = "{service.url}"\n{described}{more}')
        suite.pytester.makepyfile(code_of_two_pages()[0])
        record = suite.run("--rag-endpoint=mine.toml", "--rag-mode=record")
        record.assert_outcomes(passed=4)
    suite.run("--rag-endpoint=mine.toml", "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=4)
    rows: list[Any] = suite.rows("mine")
    assert all([stage.get("kind") for stage in row["stages"]] == [None, "retrieve", "generate"] for row in rows)
    assert all(row["timings_recorded"] and row["usage"]["prompt_tokens"] == 30 for row in rows)
    with tracing_service() as service:
        (suite.path / "mine.toml").write_text(f'url = "{service.url}"\n{described}')
        several = suite.run("--rag-endpoint=mine.toml", "--rag-mode=record", "--rag-overwrite", "-n", "2")
        assert "has several processes" in str(several.stdout) + str(several.stderr)
        assert service.headers == []


def test_scores_stand_on_the_traces_of_the_app(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    run, export = blocks("backend", "sh")[0].splitlines()
    test, conftest = code_of_two_pages()
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(test)
    with otlp_receiver() as backend:
        said = suite.run(*run.replace("http://127.0.0.1:4318", backend.url).split()[1:])
        said.assert_outcomes(passed=4)
        assert {span.trace_id for span in backend.trials} == {row["trace_id"] for row in suite.rows("mine")}
        assert all(span.name == "invoke_workflow mine" for span in backend.trials)
        assert all(backend.below(span)[0].attributes["gen_ai.operation.name"] == "retrieval" for span in backend.trials)
        before = dict(backend.spans)
        monkeypatch.chdir(suite.path)
        assert main(export.replace("http://127.0.0.1:4318", backend.url).split()[1:]) == 0
        assert backend.spans == before
    assert "4 trials with" in capsys.readouterr().out


def test_each_attribute_that_it_names_is_read() -> None:
    code = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "rag_harness" / "pipelines" / "otel").glob("*.py")
    )
    table = PAGES["reference"].partition("## Attributes")[2].partition("## Hits")[0]
    named = {
        name for name in re.findall(r"`([^`]+)`", table) if not re.match(r"llm\.\w+_messages|gen_ai\.\w+put\.", name)
    }
    assert len(named) > 25
    assert [name for name in named if f'"{name}"' not in code] == []
