"""``--rag-tune`` as a user sees it: a race after the tests, with the run's own engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite

SPACE = """objective = "recall@3"
[parameters]
retriever = ["dense", "bm25"]
top_k = [1, 3]
rerank = false
"""
TOPICS = ["lamps", "ladders", "kettles", "drills", "chairs", "ropes", "boots", "tents", "rugs", "saws"]


@pytest.fixture
def shop(suite: Suite) -> Suite:
    """A suite of ten pages and a question about each."""
    folder = suite.path / "kb"
    for file in folder.glob("*.md"):
        file.unlink()
    for topic in TOPICS:
        (folder / f"{topic}.md").write_text(f"# {topic}\n\nYou can return {topic} within {len(topic)} days.\n")
    lines = [
        {
            "query_id": f"q{n}",
            "query": f"return {topic}",
            "ground_truth": f"{len(topic)} days",
            "context_reference": [f"{topic}.md"],
        }
        for n, topic in enumerate(TOPICS)
    ]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (suite.path / "space.toml").write_text(SPACE)
    return suite


def test_configurations_race_after_the_tests(shop: Suite) -> None:
    result = shop.run("--rag-tune=space.toml")
    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines(
        ["*rag tune*", "configuration*recall@3*in the race", "*chosen", "*questions that it was not chosen by."]
    )
    tuned = shop.path / "output" / "tuned.toml"
    assert "[parameters]" in tuned.read_text()
    shop.run(f"--rag-config={tuned}", "--rag-run=tuned").assert_outcomes(passed=10)


def test_the_controller_of_workers_races(shop: Suite) -> None:
    result = shop.run("--rag-tune=space.toml", "-n", "2")
    result.assert_outcomes(passed=10)
    assert (shop.path / "output" / "tune.json").exists()


def test_a_run_that_only_tunes_passes(shop: Suite) -> None:
    for file in shop.path.glob("test_*.py"):
        file.unlink()
    result = shop.run("--rag-tune=space.toml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*rag tune*"])


def test_a_run_that_only_tunes_takes_over_what_a_killed_one_had_in_its_journal(shop: Suite) -> None:
    for file in shop.path.glob("test_*.py"):
        file.unlink()
    (shop.path / "space.toml").write_text(SPACE.replace("recall@3", "token_f1"))
    shop.run("--rag-tune=space.toml")
    assert not list((shop.path / "output" / "journal").glob("*"))
    chosen = min((shop.path / "output" / "derived").glob("*.jsonl"))
    row = json.loads(chosen.read_bytes().splitlines()[0]) | {"llm_answer": "an answer of the killed run"}
    killed = shop.path / "output" / "journal" / "killed-main.jsonl"
    killed.write_text(json.dumps(row) + "\n")
    chosen.unlink()
    shop.run("--rag-tune=space.toml")
    answers = [json.loads(line)["llm_answer"] for line in chosen.read_bytes().splitlines()]
    assert answers.count("an answer of the killed run") == 1
    assert len(answers) > 1
    assert not killed.exists()


def test_a_space_that_cannot_be_used_ends_the_run_before_anything_is_asked(shop: Suite) -> None:
    Path(shop.path / "space.toml").write_text(SPACE.replace("top_k", "topk"))
    result = shop.run("--rag-tune=space.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--rag-tune: *Unknown parameter 'topk'. Did you mean 'top_k'?*"])
    assert not (shop.path / "output" / "e3_filtered_rag.jsonl").exists()
