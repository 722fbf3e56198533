"""The study of conversations from end to end: three experiments on data of their own, and a model that rewrites."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server
from tests.plugin.study import WORKERS

TEST = """
import pytest

@pytest.mark.c1
def test_standalone(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.c1
@pytest.mark.rag_experiment("c1-lastturn", "c1-full")
def test_others(rag_result):
    assert rag_result.ok, rag_result.why
"""
PAGES = {
    "express.md": "# Express\n\nExpress delivery costs €9.90 in Zone 1. Order by noon.\n",
    "refunds.md": "# Refunds\n\nWe refund soon: within 5 working days.\n",
    "lamps.md": "# Lamps\n\nReturn a lamp unused, packed in its carton, with the receipt.\n",
    "warranty.md": "# Warranty\n\nThe warranty lasts 2 years.\n",
}
TURNS: list[dict[str, Any]] = [
    {"query": "express delivery in zone 1?", "ground_truth": "It costs €9.90.", "context_reference": "express.md"},
    {"query": "and how soon", "ground_truth": "Order by noon.", "context_reference": "express.md"},
    {
        "query": "must a lamp be unused, with receipt and carton",
        "ground_truth": "Yes.",
        "context_reference": "lamps.md",
    },
]
CONVERSATIONS = [{"conversation": f"conv_{n}", "turns": TURNS} for n in (1, 2)]
PYPROJECT = """
[tool.rag_harness.data.conversations]
kb = "shop"
queries = "shop/conversations.jsonl"
gates = [
    "c1[turn>=2]: recall@1 > c1-lastturn",
    "c1[turn>=2]: recall@1 > c1-full",
]
"""
STEMS = ("c1_standalone", "c1__lastturn", "c1__full")
TRIALS = len(STEMS) * 2 * len(TURNS)


@pytest.fixture
def talk(suite: Suite) -> Suite:
    lines = "".join(f"{json.dumps(each)}\n" for each in CONVERSATIONS)
    (suite.path / "shop").mkdir()
    for name, text in {**PAGES, "conversations.jsonl": lines}.items():
        (suite.path / "shop" / name).write_text(text, encoding="utf-8")
    (suite.path / "pyproject.toml").write_text(PYPROJECT)
    suite.pytester.makepyfile(TEST)
    return suite


def first_conversation(suite: Suite, stem: str) -> list[Any]:
    """Return the rows of the turns of the first conversation, in their order."""
    rows: list[Any] = suite.rows(stem)
    return sorted(rows, key=lambda row: str(row["query_id"]))[: len(TURNS)]


def rewrites(suite: Suite, stem: str, value: str = "outcome") -> list[str]:
    """Return what was decided, or why, for each turn of the first conversation."""
    rows = first_conversation(suite, stem)
    return [one[value] for row in rows for one in row["decisions"] if one["name"] == "rewrite"]


def test_all_three_run_and_rewriting_finds_more_than_both_others(talk: Suite) -> None:
    result = talk.run("-m", "c1", *WORKERS, "--rag-attribute")
    result.assert_outcomes(passed=TRIALS)
    result.stdout.fnmatch_lines_random(
        ["passed *c1[[]turn>=2[]]: recall@1 > c1-lastturn*", "passed *c1[[]turn>=2[]]: recall@1 > c1-full*"]
    )
    assert rewrites(talk, "c1_standalone") == ["as it is", "by rules", "as it is"]
    assert rewrites(talk, "c1__lastturn") == ["the turn alone"] * 3
    assert rewrites(talk, "c1__full") == ["all turns"] * 3
    stages = {each["name"]: each for each in first_conversation(talk, "c1_standalone")[1]["stages"]}
    assert stages["rewrite"]["detail"]["asked"] == "and how soon"
    assert stages["rewrite"]["detail"]["searched"].startswith("and how soon? This is about: ")


def rewritten(body: Any) -> str:
    """Say what a model would: a question that stands alone, or the one that does already."""
    last = str(body["messages"][-1]["content"]).rpartition("Last question: ")[2]
    return "How soon does express delivery come?" if last == "and how soon" else last


def let_rewrite(talk: Suite, server: CountingServer) -> None:
    talk.set_table("profiles.mock.answer", model="embedded/extractive")
    talk.set_table("profiles.mock.rewrite", model="some/rewriter", base_url=server.url)


def test_a_model_rewrites_and_its_questions_are_replayed_without_it(talk: Suite) -> None:
    with counting_server(0.0, rewritten) as server:
        let_rewrite(talk, server)
        talk.run("-m", "c1", "--rag-mode=record").assert_outcomes(passed=TRIALS)
        # Two turns of a conversation have something before them, and both conversations are alike.
        assert len(server.calls) == 2
    assert rewrites(talk, "c1_standalone") == ["as it is", "by model", "by model"]
    assert rewrites(talk, "c1__full") == ["all turns"] * 3
    talk.run("-m", "c1", "--rag-mode=replay", "--rag-output=replayed").assert_outcomes(passed=TRIALS)
    lines = (talk.path / "replayed" / "c1_standalone.jsonl").read_text().splitlines()
    rows = {row["query_id"]: row for row in map(json.loads, lines)}
    stages = {each["name"]: each for each in rows["conv_1#2"]["stages"]}
    assert stages["rewrite"]["detail"]["searched"] == "How soon does express delivery come?"
    assert stages["rewrite"]["calls"][0]["role"] == "rewrite"


def test_a_model_that_says_nothing_leaves_it_to_the_rules(talk: Suite) -> None:
    with counting_server(0.0, lambda _: " ") as server:
        let_rewrite(talk, server)
        result = talk.run("-m", "c1", "--rag-mode=live")
    result.assert_outcomes(passed=TRIALS)
    assert rewrites(talk, "c1_standalone") == ["as it is", "by rules", "as it is"]
    assert "cannot be used: it says nothing" in rewrites(talk, "c1_standalone", "reason")[1]
