"""``--rag-repeats``: answers beside the first, their recordings and files, and where the noise is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from rag_harness.core.settings.profiles import EMBEDDED_URL
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask
from tests.plugin.study import WORKERS
from tests.unit.evaluation.judges.scripted import Asked, honest

TRUTH = "a lamp may be returned within 45 days of its delivery"


class Wavering:
    """Answers with more or fewer words of the truth, by question and seed."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def reply(self, body: Any) -> str:
        self.seeds.append(body["seed"])
        question = str(body["messages"][-1]["content"]).rpartition("Question: ")[2].strip()
        words = TRUTH.split()
        kept = random.Random(f"{question} {body['seed']}").randrange(1, len(words))
        return json.dumps({"answer": " ".join(words[:kept])})


@pytest.fixture
def model() -> Wavering:
    return Wavering()


@pytest.fixture
def server(model: Wavering) -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=model.reply) as running:
        yield running


@pytest.fixture
def asking(suite: Suite, server: CountingServer) -> Suite:
    let_ask(suite, server, queries=8)
    suite.write_queries([{"query_id": f"q{n}", "query": f"question {n}", "ground_truth": TRUTH} for n in range(8)])
    return suite


def run(suite: Suite, *args: str) -> pytest.RunResult:
    return suite.run("--rag-profile=counting", *args)


def noise(suite: Suite, output: str = "output") -> Any:
    return json.loads((suite.path / output / "summary.json").read_text())["noise"]


def test_each_query_is_answered_again_recorded_replayed_and_resumed(
    asking: Suite, server: CountingServer, model: Wavering
) -> None:
    result = run(asking, "--rag-mode=record", "--rag-repeats=2")
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["rag: recording: 16 answers to ask for*"])
    result.stdout.fnmatch_lines(["*rag noise*", "e1: 2 answers to each query", "*queries  pipeline*", "  token_f1*"])
    assert sorted(model.seeds) == [7] * 8 + [8] * 8
    found = noise(asking)["e1"]["measures"]["token_f1"]
    assert (found["queries"], found["repeats"]) == (8, 2)
    assert found["pipeline"] > 0
    rows = asking.rows("derived/e1+repeat2")
    assert {row["experiment"] for row in rows} == {"e1+repeat2"}
    assert len(rows) == len(asking.rows("e1_baseline")) == 8
    run(asking, "--rag-mode=record", "--rag-repeats=2").assert_outcomes(passed=8)
    run(asking, "--rag-mode=replay", "--rag-repeats=2", "--rag-output=again").assert_outcomes(passed=8)
    assert noise(asking, "again") == noise(asking)
    assert len(model.seeds) == 16
    assert not list((asking.path / "output" / "journal").iterdir())


def test_what_is_there_is_not_answered_again(asking: Suite, model: Wavering) -> None:
    run(asking, "--rag-mode=live", "--rag-repeats=3", *WORKERS).assert_outcomes(passed=8)
    assert sorted(model.seeds) == [7] * 8 + [8] * 8 + [9] * 8
    file = asking.path / "output" / "derived" / "e1+repeat3.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    model.seeds.clear()
    run(asking, "--rag-mode=live", "--rag-repeats=3").assert_outcomes(passed=8)
    assert model.seeds == [9] * 3
    assert noise(asking)["e1"]["missing"] == 0


DYING = """
import os
import pytest

@pytest.mark.e1
def test_answers(rag_result):
    if rag_result.query_id == "q3" and os.environ.get("DIES"):
        os._exit(1)
"""


def test_a_killed_run_goes_on_where_it_was(asking: Suite, model: Wavering, monkeypatch: pytest.MonkeyPatch) -> None:
    asking.pytester.makepyfile(test_e1=DYING)
    monkeypatch.setenv("DIES", "1")
    run(asking, "--rag-mode=live", "--rag-repeats=2", "--rag-concurrency=1")
    assert {7, 8} <= set(model.seeds)
    monkeypatch.delenv("DIES")
    run(asking, "--rag-mode=live", "--rag-repeats=2", "--rag-concurrency=1").assert_outcomes(passed=8)
    assert len(model.seeds) <= 16 + 1  # what was under way when the process died was lost
    assert len(asking.rows("derived/e1+repeat2")) == 8
    assert noise(asking)["e1"]["measures"]["token_f1"]["queries"] == 8


OWN = """
import pytest

class Mine:
    def __init__(self):
        self.asked = 0

    def answer(self, query):
        self.asked += 1
        return f"Something, said {self.asked} times"

@pytest.fixture(scope="session")
def rag_pipeline():
    mine = Mine()
    yield mine
    del mine.asked  # what is closed cannot be asked

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""


def test_a_pipeline_of_ones_own_is_answered_again_while_it_is_open(suite: Suite) -> None:
    suite.pytester.makepyfile(OWN)
    result = suite.run("--rag-repeats=3")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["mine: 3 answers to each query"])
    rows = [row for name in ("mine", "derived/mine+repeat2", "derived/mine+repeat3") for row in suite.rows(name)]
    assert len({row["llm_answer"] for row in rows}) == 12


def test_the_embedded_reader_is_not_asked_again(suite: Suite) -> None:
    let_ask_embedded(suite)
    result = suite.run("--rag-profile=reading", "--rag-repeats=2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["e1: the embedded reader computes its answers, the same each time: not asked again*"])
    assert not (suite.path / "output" / "derived").exists()


EVERY_SECOND = OWN.replace(
    "        return f", "        if self.asked > 4:\n            raise ValueError('gone')\n        return f"
)


def brief(suite: Suite, *args: str) -> str:
    """Return the brief of a run, on one line."""
    return " ".join(suite.run("--rag-sections=brief", *args).stdout.str().split())


def test_the_brief_says_that_later_answers_did_not_come_and_that_figures_are_of_the_first(suite: Suite) -> None:
    suite.pytester.makepyfile(EVERY_SECOND)
    gate, promise = "--rag-gate=mine: error_rate <= 0", "--rag-gate=mine: pass^2(error_rate) >= 0"
    said = brief(suite, "--rag-repeats=2", gate)
    assert "mine: 4 answers after the first did not come; output/derived/mine+repeat2.jsonl and those" in said
    first = "are of the first of 2 answers to a question; -v compares them"
    assert f"figures and gates {first}" in said
    assert f"figures {first}" in brief(suite, "--rag-repeats=2")
    assert f"gates that are not promises over repeats, {first}" in brief(suite, "--rag-repeats=2", gate, promise)
    assert "of the first of" not in brief(suite, "--rag-repeats=2", promise)
    assert "of the first of" not in brief(suite, gate)


def let_ask_embedded(suite: Suite) -> None:
    (suite.path / "pyproject.toml").write_text(
        "[tool.rag_harness.profiles.reading]\n"
        f'chat_model = "embedded/extractive"\nchat_base_url = "{EMBEDDED_URL}"\nchat_api_key_env = ""\n'
        'embed_model = "mock/hashed-words"\nembed_base_url = ""\nrerank_model = "mock/word-overlap"\n'
    )
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_e1=DYING)


def test_one_answer_has_no_noise_of_its_own_and_says_why(suite: Suite) -> None:
    suite.run("--rag-repeats=1").stdout.fnmatch_lines(["*token_f1: each query was answered once (R = 1)*"])
    assert "R = 1" in noise(suite)["e3"]["measures"]["token_f1"]["reason"]


def test_without_the_option_nothing_is_answered_again(suite: Suite) -> None:
    suite.run().stdout.no_fnmatch_line("*rag noise*")
    assert "noise" not in json.loads((suite.path / "output" / "summary.json").read_text())


def test_the_judge_has_a_seed_for_each_judgement_of_each_answer(suite: Suite) -> None:
    seeds: set[int] = set()

    def reply(body: Any) -> str:
        seeds.add(body["seed"])
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        return json.dumps(honest(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)))

    with counting_server(delay=0.0, reply=reply) as judge:
        suite.set_table("profiles.mock.judge", model="gpt-x", base_url=judge.url)
        judged = ("--rag-measures=faithfulness",)
        result = suite.run(*judged, "--rag-mode=record", "--rag-repeats=2", "--rag-judge-repeats=1")
        result.assert_outcomes(passed=4)
        asked = sum(judge.calls.values())
        again = suite.run(
            *judged, "--rag-mode=replay", "--rag-repeats=2", "--rag-judge-repeats=1", "--rag-output=again"
        )
        again.assert_outcomes(passed=4)
        assert sum(judge.calls.values()) == asked
    assert seeds == {7, 8, 107, 108}
    scores = suite.rows("derived/scores/e3+repeat2")
    assert len(scores) == 8
    assert noise(suite, "again") == noise(suite)


def test_the_golden_suite_retrieves_once(suite: Suite) -> None:
    entry = {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"}
    (suite.path / "golden.json").write_text(json.dumps([entry]))
    suite.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    suite.run("--rag-repeats=2", "--rag-k=2").assert_outcomes(passed=5)
    assert [file.name for file in (suite.path / "output" / "derived").glob("*.jsonl")] == ["e3+repeat2.jsonl"]
