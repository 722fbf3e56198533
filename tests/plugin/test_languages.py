"""A run over German pages: read as German, said in brief, report and validation, judged by no English rule."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite

GERMAN = Path(__file__).parents[1] / "data/german"
SAID = "Documents by language: 8 in de."


@pytest.fixture
def german(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("RAG_SECTIONS")
    return in_german(suite)


def in_german(suite: Suite) -> Suite:
    shutil.rmtree(suite.path / "kb")
    shutil.copytree(GERMAN, suite.path / "kb")
    return suite


@pytest.fixture(scope="module")
def judged(shared_suite: Suite) -> tuple[Suite, pytest.RunResult]:
    options = ("--rag-limit=3", "--rag-report=report.md", "--rag-judge=embedded", "--rag-measures=faithfulness")
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("RAG_SECTIONS")
        return shared_suite, in_german(shared_suite).run(*options)


def test_what_languages_there_are_is_said_in_the_run_in_brief_and_in_the_report(
    judged: tuple[Suite, pytest.RunResult],
) -> None:
    german, result = judged
    result.stdout.fnmatch_lines([f"note     {SAID}"])
    assert SAID in (german.path / "report.md").read_text(encoding="utf-8")
    suites = json.loads((german.path / "output/run.json").read_text(encoding="utf-8"))["suites"]
    assert {tuple(each["languages"]) for each in suites.values()} == {(SAID,)}


@pytest.mark.long
def test_no_language_is_said_where_all_is_english(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    assert "by language" not in suite.run("--rag-limit=1").stdout.str()


@pytest.mark.long
def test_chinese_pages_have_no_rules_and_that_is_said(german: Suite) -> None:
    (german.path / "kb/zh.md").write_text("# 退款\n\n退款需要五天时间到账。请耐心等待。\n", encoding="utf-8")
    said = german.run("--rag-limit=1").stdout.str().replace("\n         ", " ")
    assert "Documents by language: 8 in de, 1 in zh." in said
    assert "1 in zh, which has no rules: words are cut as English ones" in said


def test_an_unknown_language_stops_the_run_with_what_could_be_meant(german: Suite) -> None:
    result = german.run("--rag-language=german")
    assert result.ret != 0
    assert "rag_language: Unknown language 'german'. Did you mean 'de'?" in result.stdout.str() + result.stderr.str()


def test_the_embedded_judge_leaves_german_answers_unjudged_and_says_why(judged: tuple[Suite, pytest.RunResult]) -> None:
    german, _ = judged
    lines = (german.path / "output/scores/e3_filtered_rag.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [json.loads(line) for line in lines]
    assert scores
    assert {(score["value"], score["reason"]) for score in scores} == {(None, "not judged: language de")}


def test_validation_says_the_language_and_what_is_not_checked(
    german: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["kb", "validate", str(german.path / "kb")])
    said = capsys.readouterr().out
    assert f"note: {SAID}" in said
    assert "note: Contradictions between versions of a page are looked for in English alone." in said


def test_init_drafts_german_questions_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(GERMAN, tmp_path / "docs", ignore=lambda _, names: [n for n in names if n.endswith(".jsonl")])
    monkeypatch.chdir(tmp_path)
    main(["init"])
    (file,) = tmp_path.rglob("queries.jsonl")
    asked = [json.loads(line)["query"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert "Wie lang ist die Rückgabefrist?" in asked
    assert not [text for text in asked if "what" in text.lower()]
