"""Claims that answers carry over from earlier turns: worked out after the last test, kept, resumed, and judged once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import counting_server
from tests.unit.judges.scripted import Asked, honest

LAMPS, CHAIRS, CHEESE = "Lamps cost five euros.", "Chairs are always painted.", "Moons consist of cheese."
PIPELINE = f"""
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Shop:
    def answer(self, query):
        first = len(query.history) == 0
        text = "{LAMPS}" if first else "{CHAIRS}"
        hits = (Hit(Chunk("a#" + text[:3], "a.md", text), 1.0, 1),)
        said = "{LAMPS}" if first else "{LAMPS} {CHAIRS} {CHEESE}"
        return PipelineOutput(Answer(said), hits, hits)

@pytest.fixture(scope="session")
def rag_pipeline():
    return Shop()

@pytest.mark.rag_experiment("mine")
def test_it(rag_result):
    assert rag_result.ok
"""
TURN: dict[str, Any] = {"query": "How long?", "ground_truth": "45 days"}
MEASURE = "--rag-measures=carried_faithfulness"


@pytest.fixture
def talk(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(PIPELINE)
    suite.write_queries([{"conversation": f"c{n}", "turns": [TURN] * 2} for n in range(3)])
    return suite


def scores(suite: Suite, experiment: str = "mine") -> dict[tuple[str, str], Any]:
    lines = (suite.path / "output" / "scores" / f"{experiment}.jsonl").read_text().splitlines()
    return {(each["measure"], each["query_id"]): each for each in map(json.loads, lines)}


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_claim_that_an_earlier_context_supports_is_carried_over(talk: Suite, workers: str) -> None:
    gate = "--rag-gate=mine: carried_faithfulness <= 0.34"
    result = talk.run(MEASURE, gate, workers, "-v")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["passed *mine: carried_faithfulness <= 0.34*0.333*n=3 in 3 conversations"])
    found = scores(talk)
    assert found["faithfulness", "c0#2"]["value"] == pytest.approx(1 / 3)
    carried = found["carried_faithfulness", "c0#2"]
    assert carried["value"] == pytest.approx(1 / 3)
    # Faithfulness has found the chairs. The judge was asked about the other two, and where each claim stands is kept.
    assert [(each["text"], each["value"], each.get("turn")) for each in carried["detail"]["claims"]] == [
        (LAMPS, 1.0, 1),
        (CHEESE, 0.0, None),
    ]
    assert carried["detail"]["claims"][1]["start"] == len(LAMPS) + len(CHAIRS) + 2
    assert ("carried_faithfulness", "c0#1") not in found


def test_a_second_run_takes_the_scores_as_they_are_and_a_report_has_them(talk: Suite) -> None:
    talk.run(MEASURE).assert_outcomes(passed=6)
    file = talk.path / "output" / "scores" / "mine.jsonl"
    before = file.read_bytes()
    again = talk.run(MEASURE)
    again.stdout.fnmatch_lines(["*6 resumed*"])
    assert file.read_bytes() == before
    summary = json.loads((talk.path / "output" / "summary.json").read_text())
    assert summary["mine"]["carried_faithfulness"] == pytest.approx(1 / 3)


def test_other_earlier_contexts_are_judged_anew(talk: Suite) -> None:
    talk.run(MEASURE).assert_outcomes(passed=6)
    file = talk.path / "output" / "mine.jsonl"
    # Only the context of the first turns differs now. What was judged of the second turns rested on it.
    file.write_text(file.read_text().replace(f'"text":"{LAMPS}"', '"text":"Nothing of that."'))
    talk.run(MEASURE).assert_outcomes(passed=6)
    assert scores(talk)["carried_faithfulness", "c0#2"]["value"] == 0.0


def test_a_turn_alone_takes_the_rows_that_an_earlier_run_left(talk: Suite) -> None:
    (file,) = talk.path.glob("test_*.py")
    alone = talk.run(MEASURE, f"{file.name}::test_it[mine-c0#2]")
    alone.assert_outcomes(passed=1)
    found = scores(talk)["carried_faithfulness", "c0#2"]
    assert (found["value"], found["reason"]) == (None, "turn 1 has no row in this run")
    talk.run(MEASURE).assert_outcomes(passed=6)
    assert scores(talk)["carried_faithfulness", "c0#2"]["value"] == pytest.approx(1 / 3)


def test_a_test_of_ones_own_is_told_that_it_comes_later(talk: Suite) -> None:
    body = PIPELINE.replace("rag_result):", "rag_result, rag_scores):").replace(
        "assert rag_result.ok", 'assert "after the last test" in rag_scores["carried_faithfulness"].reason'
    )
    talk.pytester.makepyfile(test_own=body)
    (talk.path / "test_a_test_of_ones_own_is_told_that_it_comes_later.py").unlink()
    talk.run(MEASURE).assert_outcomes(passed=6)


def test_a_judge_with_a_chat_model_is_asked_about_the_claims_that_faithfulness_has_not_found(talk: Suite) -> None:
    seen: list[Asked] = []

    def reply(body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        asked = Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)
        seen.append(asked)
        return json.dumps(honest(asked))

    with counting_server(delay=0.0, reply=reply) as server:
        judge = ("--rag-judge-model=gpt-x", f"--rag-judge-base-url={server.url}", "--rag-mode=live")
        talk.run(MEASURE, *judge).assert_outcomes(passed=6)
        asked = len(seen)
        summary = json.loads((talk.path / "output" / "run.json").read_text())
        assert summary["suites"]["mine"]["judging"]["calls"] == asked
        talk.run(MEASURE, *judge).assert_outcomes(passed=6)
        assert len(seen) == asked
    late = [each for each in seen if each.kind == "supported" and each.numbered("claim") == [LAMPS, CHEESE]]
    assert late
    assert all(each.numbered("passage") == [LAMPS] for each in late)
    assert scores(talk)["carried_faithfulness", "c1#2"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [("mine: pass^2(carried_faithfulness<=0.5) >= 0.9", "is checked on first answers only")],
)
def test_it_has_no_promise_over_repeats(talk: Suite, gate: str, problem: str) -> None:
    result = talk.run(f"--rag-gate={gate}", "--rag-repeats=2")
    assert result.ret == 4
    assert problem in result.stderr.str()


def test_a_conversation_that_was_judged_in_a_recording_run_is_replayed_without_a_call(talk: Suite) -> None:
    seen: list[Asked] = []

    def reply(body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        asked = Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)
        seen.append(asked)
        return json.dumps({"question": "How long can lamps go back?"} if keys == ("question",) else honest(asked))

    measures = "--rag-measures=faithfulness,answer_relevancy,retention,carried_faithfulness"
    with counting_server(delay=0.0, reply=reply) as server:
        judge = ("--rag-judge-model=gpt-x", f"--rag-judge-base-url={server.url}")
        talk.run(measures, *judge, "--rag-mode=record").assert_outcomes(passed=6)
        asked, before = len(seen), scores(talk)
        talk.run(measures, *judge, "--rag-mode=replay", "--rag-overwrite", "-n2").assert_outcomes(passed=6)
    assert len(seen) == asked
    assert {key: each["value"] for key, each in scores(talk).items()} == {
        key: each["value"] for key, each in before.items()
    }
    assert before["answer_relevancy", "c0#2"]["detail"]["question"] == "How long can lamps go back?"
    # The three conversations say the same: the question of their second turn was written out once a process.
    assert [each.kind for each in seen].count("question") == 1
    assert all("Lamps" not in each.user for each in seen if each.kind == "question")
    retained = [each for each in seen if each.kind == "met"]
    assert all("45 days" in each.sections["question"] for each in retained)


def test_each_judge_of_a_panel_is_asked_about_its_own_claims(talk: Suite) -> None:
    def reply(body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        return json.dumps(honest(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)))

    with counting_server(delay=0.0, reply=reply) as server:
        panel = ("--rag-judge=fused@gpt-x,mock", "--rag-panel=mean", f"--rag-judge-base-url={server.url}")
        talk.run(MEASURE, *panel, "--rag-mode=live").assert_outcomes(passed=6)
    lines = (talk.path / "output" / "scores" / "mine.jsonl").read_text().splitlines()
    late = [each for each in map(json.loads, lines) if each["measure"] == "carried_faithfulness"]
    assert {each["model"] for each in late} == {"gpt-x", "mock/word-overlap"}
    summary = json.loads((talk.path / "output" / "summary.json").read_text())
    assert summary["mine"]["carried_faithfulness"] == pytest.approx(1 / 3)
