"""No key is written down: not into the output folder, the log, the report, the record of the run, nor the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from rag_harness.core.settings import Settings, env_name
from tests.plugin.conftest import Suite
from tests.unit.server import Reply, serving

KEY = "sk-canary0123456789abcdef"
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
    found = [str(each.relative_to(suite.path)) for each in files if KEY.encode() in each.read_bytes()]
    return found + [name for name in ("stdout", "stderr") if KEY in getattr(said, name).str()]


@pytest.mark.parametrize("name", ADDRESSES)
def test_no_key_of_an_address_is_written(suite: Suite, name: str) -> None:
    address = f"http://u:{KEY}@127.0.0.1:9/v1?key={KEY}"
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = mock\nrag_mode = live\nrag_{name} = {address}\n")
    said = suite.run("--rag-report=report.html")
    assert not leaks(suite, said, ["tox.ini"])
    assert f"{name} holds a user or a password" in " ".join((said.stdout.str() + said.stderr.str()).split())


@pytest.mark.parametrize("name", ["chat_base_url", "judge_base_url"])
def test_no_key_of_a_profile_is_written(suite: Suite, name: str) -> None:
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = p\nrag_mode = live\n")
    suite.pytester.makepyprojecttoml(
        f'[tool.rag_harness.profiles.p]\nchat_model = "m"\nembed_model = "mock/hashed-words"\nembed_base_url = ""\n'
        f'rerank_model = "mock/word-overlap"\njudge_model = "m"\n{name} = "http://127.0.0.1:9/v1?key={KEY}"\n'
    )
    said = suite.run("--rag-report=report.html")
    assert not leaks(suite, said, ["tox.ini", "pyproject.toml"])
    assert said.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("status", [400, 307])
def test_no_key_of_a_variable_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """A service repeats what it was sent. Each key ends otherwise: what hides one hides no other by the way."""
    named = [*SECRETS, "PLACE", "CODE", "BEARER", "OTEL_EXPORTER_OTLP_HEADERS", "LANGFUSE_SECRET_KEY", "HF_TOKEN"]
    for number, variable in enumerate(named):
        monkeypatch.setenv(variable, f"x-key={KEY}-{number}" if variable.startswith("OTEL") else f"{KEY}-{number}")
    (suite.path / "tox.ini").write_text(f"{INI}rag_profile = mock\nrag_mode = live\nrag_otlp = http://127.0.0.1:9\n")
    suite.pytester.makepyfile(test_shop=SHOP)
    sent = f"{KEY}-{named.index('BEARER')} ?code={KEY}-{named.index('CODE')}"
    place = f"http://u:{KEY}@elsewhere/?code={KEY}#{KEY}"
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
