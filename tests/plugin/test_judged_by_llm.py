"""Judging by a chat model behind HTTP, as a user runs it: live, recorded, replayed, refused, with a budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.evaluation.judges.scripted import Asked, honest

MEASURES = "--rag-measures=context_precision,faithfulness,answer_relevancy"
TEST = """
import pytest

@pytest.mark.e3
@pytest.mark.e4
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


class Model:
    """Judges honestly, until it is told what to say."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.models: list[str] = []
        self.says = ""

    def reply(self, body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        asked = Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)
        self.kinds.append(asked.kind)
        self.models.append(body["model"])
        return self.says or json.dumps(honest(asked))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=model.reply) as running:
        yield running


def ask_both(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_both=TEST)
    return suite


@pytest.fixture
def judged(suite: Suite) -> Suite:
    return ask_both(suite)


def run(suite: Suite, server: CountingServer, *args: str) -> pytest.RunResult:
    suite.set_table("profiles.mock.judge", base_url=server.url)
    return suite.run(MEASURES, "--rag-judge-model=gpt-x", *args)


def scores(suite: Suite, output: str = "output") -> dict[tuple[str, str, str], Any]:
    files = (suite.path / output / "scores").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return {(line["experiment"], line["query_id"], line["measure"]): (line["value"], line["reason"]) for line in lines}


class Seen(NamedTuple):
    """What a run has said, and what the model was asked until then."""

    result: pytest.RunResult
    kinds: list[str]


@pytest.fixture(scope="module")
def recorded(shared_suite: Suite) -> tuple[Suite, list[Seen]]:
    """A run that records and its replay on two workers; then the same with a judge that is asked again."""
    judged, model, found = ask_both(shared_suite), Model(), []
    again = "--rag-judge-repeats=2"
    with counting_server(delay=0.0, reply=model.reply) as server:
        for args in (
            ("--rag-mode=record",),
            ("--rag-mode=replay", "-n2", "--rag-output=replayed"),
            ("--rag-mode=record", again, "--rag-output=repeated"),
            ("--rag-mode=replay", again, "--rag-output=replayed_repeated"),
        ):
            found.append(Seen(run(judged, server, *args), list(model.kinds)))
    return judged, found


def test_a_judge_behind_http_judges_with_few_calls(recorded: tuple[Suite, list[Seen]]) -> None:
    judged, (first, *_) = recorded
    look_at_calls(judged, first)


@pytest.mark.long
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_live_judge_judges_with_few_calls(judged: Suite, server: CountingServer, model: Model, workers: str) -> None:
    look_at_calls(judged, Seen(run(judged, server, "--rag-mode=live", workers), model.kinds), 1 + (workers == "-n2"))


def look_at_calls(judged: Suite, seen: Seen, processes: int = 1) -> None:
    result, kinds = seen
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["judged by gpt-x (an LLM, method fused)", f"judging took {len(kinds)} calls; *"])
    assert len(scores(judged)) == 2 * (4 + 4 + 1)
    assert not [reason for _, reason in scores(judged).values() if "verdict" in reason]
    # The mock model answers both experiments in the same words, from the same chunks: what is asked word for word
    # again is asked once a process, and the one case with a ground truth has its chunks judged once a process.
    assert len(kinds) <= 2 * (4 + 4 + 1)
    assert kinds.count("useful") <= processes


def test_what_was_judged_in_a_recording_run_is_replayed_without_a_call(recorded: tuple[Suite, list[Seen]]) -> None:
    judged, (first, replayed, *_) = recorded
    replayed.result.assert_outcomes(passed=8)
    assert scores(judged, "replayed") == scores(judged)
    replayed.result.stdout.fnmatch_lines(["judging took * calls, * of them replayed; *"])
    assert replayed.kinds == first.kinds


def test_a_judge_that_is_asked_again_says_whether_it_is_of_one_mind(recorded: tuple[Suite, list[Seen]]) -> None:
    judged, (_, before, repeated, replayed) = recorded
    repeated.result.stdout.fnmatch_lines(["faithfulness: judged again: 0.0% of verdicts flip, α *n=8"])
    assert len(repeated.kinds) > len(before.kinds)
    replayed.result.stdout.fnmatch_lines(["faithfulness: judged again: 0.0% of verdicts flip, α *n=8"])
    assert replayed.kinds == repeated.kinds
    lines = (judged.path / "replayed_repeated" / "scores" / "e3_filtered_rag.jsonl").read_text().splitlines()
    assert {json.loads(line).get("repeat", 0) for line in lines} == {0, 1, 2}


def test_what_nobody_recorded_is_said_and_not_asked(judged: Suite, server: CountingServer, model: Model) -> None:
    run(judged, server, "--rag-mode=auto").assert_outcomes(passed=8)
    assert not model.kinds
    reasons = {reason for value, reason in scores(judged).values() if value is None and "undefined" not in reason}
    assert any("--rag-mode=record" in reason for reason in reasons)


def test_prose_for_a_verdict_is_a_score_of_none(judged: Suite, server: CountingServer, model: Model) -> None:
    model.says = "I think that the answer is fine."
    result = run(judged, server, "--rag-mode=live", "--rag-gate=e3: faithfulness >= 0.1")
    result.assert_outcomes(passed=8, failed=1)
    said = "e3: faithfulness: 4 of 4 have no verdict: no claims of the answer: the judge's reply is not*"
    result.stdout.fnmatch_lines([said, "failed      e3: faithfulness >= 0.1*"])
    assert result.ret == 1


def test_a_budget_that_is_spent_leaves_scores_of_none(judged: Suite, server: CountingServer) -> None:
    (judged.path / "prices.toml").write_text(
        '[models."gpt-x"]\ninput = 1000\noutput = 1000\n[models."mock/placeholder"]\ninput = 0\noutput = 0\n'
    )
    result = run(judged, server, "--rag-mode=live", "--rag-budget=0.01", "--rag-prices=prices.toml")
    result.assert_outcomes(passed=8)
    reasons = {reason for (_, _, measure), (_, reason) in scores(judged).items() if measure == "faithfulness"}
    assert all(reason.startswith("not judged: budget: ") for reason in reasons)


def test_a_panel_asks_each_of_its_models_and_replays_each(judged: Suite, server: CountingServer, model: Model) -> None:
    panel = ("--rag-judge=fused@gpt-x,fused@meta/llama-3:8b,mock", "--rag-panel=majority")
    result = run(judged, server, *panel, "--rag-mode=record")
    result.assert_outcomes(passed=8)
    said = "panel of 3 (majority): fused gpt-x, fused meta/llama-3:8b, mock"
    result.stdout.fnmatch_lines(
        [f"rag: judged by {said}", f"judged by {said}", f"judging took {len(model.kinds)} calls; *"]
    )
    lines = {line for file in judged.path.glob("output/scores/*.jsonl") for line in file.read_text().splitlines()}
    assert {json.loads(line)["model"] for line in lines} == {"gpt-x", "meta/llama-3:8b", "mock/word-overlap"}
    assert set(model.models) == {"gpt-x", "meta/llama-3:8b"}
    asked = len(model.kinds)
    run(judged, server, *panel, "--rag-mode=replay", "--rag-output=again").assert_outcomes(passed=8)
    again = {line for file in judged.path.glob("again/scores/*.jsonl") for line in file.read_text().splitlines()}
    assert again == lines
    assert len(model.kinds) == asked
