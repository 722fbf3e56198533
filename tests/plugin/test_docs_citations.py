"""The pages about citations do what they say: command and configuration are run, each measure is in the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from iniconfig import IniConfig

from rag_harness.__main__ import main
from rag_harness.evaluation.measures import known_measures
from tests.plugin.conftest import Suite

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "citations.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "citations.md").read_text(encoding="utf-8")
PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

TEXTS = ["You can return a lamp within 45 days.", "Express delivery costs 9 euros."]

class Citing:
    def answer(self, query):
        hits = tuple(Hit(Chunk(f"{n}.md#1", f"{n}.md", text, 0, len(text)), 1.0, n) for n, text in enumerate(TEXTS, 1))
        wrong = 1 if "express" in query.text else 2
        said = f"{TEXTS[0]} [Source 1] {TEXTS[1]} [Source {wrong}] All of it is easy."
        return PipelineOutput(Answer(said, citations=(1, wrong)), retrieved=hits, context=hits)

@pytest.fixture(scope="session")
def rag_pipeline():
    return Citing()
"""
TEST = """
import pytest

@pytest.mark.rag_experiment("cites")
def test_cites(rag_result):
    assert rag_result.ok

@pytest.mark.rag_experiment("also")
def test_also(rag_result):
    assert rag_result.ok
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_command_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (answer,) = blocks("json")
    (tmp_path / "answers.jsonl").write_text(answer)
    (command,) = re.findall(r"^    rag-harness (.*)", PAGE, re.MULTILINE)
    assert main(command.split()) == 0
    (shown,) = re.findall(r"\nprints\n\n((?:    .+\n)+)", PAGE)
    assert capsys.readouterr().out == dedent(shown)
    said = json.loads((tmp_path / "scores.jsonl").read_text())
    third = said["details"]["misattributed"]["claims"][2]
    assert [(each["source"], each["cited"]) for each in third["sources"]] == [(3, True), (2, False)]
    for key in ("source", "value", "support", "quote"):
        assert f"`{key}`" in PAGE
        assert key in third["sources"][1]


def test_its_measures_are_gated_sliced_and_shown(suite: Suite) -> None:
    (config,) = blocks("ini")
    suite.pytester.makeini(config + "addopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\n")
    suite.pytester.makeconftest(PIPELINE)
    suite.pytester.makepyfile(TEST)
    result = suite.run("-v")
    assert result.ret == 0
    gates = IniConfig("", config)["pytest"]["rag_gate"].strip().split("\n")
    for gate, value in zip(gates, ("0.875", "0.583", "0.125", "0.000"), strict=True):
        text = gate.partition(" else ")[0].replace("[", "[[]")
        result.stdout.fnmatch_lines([f"passed *{text}*{value}*"])
    result.stdout.fnmatch_lines(["others *citation_coverage *citation_support *misattributed ↓", "cites - also *"])
    result.stdout.fnmatch_lines(["citation_support *cases *best", "query_type=direct *0.833*"])
    summary = json.loads((suite.path / "output" / "summary.json").read_text())
    assert summary["cites"]["misattributed"] == pytest.approx(0.125)


def test_every_measure_of_citations_by_claim_is_in_the_reference() -> None:
    named = [name for name in known_measures() if name.startswith(("citation_support", "citation_coverage"))]
    assert len(named) == 6
    assert all(f"`{name}`" in REFERENCE for name in [*named, "misattributed"])
