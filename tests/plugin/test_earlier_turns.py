"""Claims that answers carry over from earlier turns: worked out after the last test, kept, resumed, and judged once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import parse_gate
from rag_harness.runs.gates.configuration import check_promises
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import counting_server
from tests.unit.evaluation.judges.scripted import Asked, honest

LAMPS, CHAIRS, CHEESE = "Lamps cost five euros.", "Chairs are always painted.", "Moons consist of cheese."
PIPELINE = f"""
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Shop:
    fingerprint = "1"

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


def let_talk(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_mine=PIPELINE)
    suite.write_queries([{"conversation": f"c{n}", "turns": [TURN] * 2} for n in range(3)])
    return suite


@pytest.fixture
def talk(suite: Suite) -> Suite:
    return let_talk(suite)


def scores(suite: Suite, output: str = "output") -> dict[tuple[str, str], Any]:
    lines = (suite.path / output / "scores" / "mine.jsonl").read_text().splitlines()
    return {(each["measure"], each["query_id"]): each for each in map(json.loads, lines)}


class Seen(NamedTuple):
    """What a run has said, and the scores and figures that it has left."""

    result: pytest.RunResult
    scores: dict[tuple[str, str], Any]
    kept: bytes
    figures: Any


@pytest.fixture(scope="module")
def talks(shared_suite: Suite) -> list[Seen]:
    """A run of a second turn alone; of all turns; the same again; and with another context of the first turns."""
    talk, found = let_talk(shared_suite), list[Seen]()
    file = talk.path / "output" / "mine.jsonl"
    alone, gate = "test_mine.py::test_it[mine-c0#2]", "--rag-gate=mine: carried_faithfulness <= 0.34"
    for more in ((alone,), (gate, "-v"), (), ()):
        if len(found) == 3:
            # Only the context of the first turns differs now. What was judged of the second turns rested on it.
            file.write_text(file.read_text().replace(f'"text":"{LAMPS}"', '"text":"Nothing of that."'))
        result = talk.run(MEASURE, *more)
        kept = (talk.path / "output" / "scores" / "mine.jsonl").read_bytes()
        summary = json.loads((talk.path / "output" / "summary.json").read_text())
        found.append(Seen(result, scores(talk), kept, summary["mine"]))
    return found


def test_a_turn_alone_takes_the_rows_that_an_earlier_run_left(talks: list[Seen]) -> None:
    alone, whole, _, _ = talks
    alone.result.assert_outcomes(passed=1)
    found = alone.scores["carried_faithfulness", "c0#2"]
    assert (found["value"], found["reason"]) == (None, "turn 1 has no row in this run")
    whole.result.assert_outcomes(passed=6)
    assert whole.scores["carried_faithfulness", "c0#2"]["value"] == pytest.approx(1 / 3)


def test_a_claim_that_an_earlier_context_supports_is_carried_over(talks: list[Seen]) -> None:
    look_at_claims(talks[1].result, talks[1].scores, "c1")


@pytest.mark.long
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_claim_is_carried_over_in_a_first_run(talk: Suite, workers: str) -> None:
    gate = "--rag-gate=mine: carried_faithfulness <= 0.34"
    result = talk.run(MEASURE, gate, workers, "-v")
    look_at_claims(result, scores(talk), "c0")


def look_at_claims(result: pytest.RunResult, found: dict[tuple[str, str], Any], conversation: str) -> None:
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["passed *mine: carried_faithfulness <= 0.34*0.333*n=3"])
    assert found["faithfulness", f"{conversation}#2"]["value"] == pytest.approx(1 / 3)
    carried = found["carried_faithfulness", f"{conversation}#2"]
    assert carried["value"] == pytest.approx(1 / 3)
    # Faithfulness has found the chairs. The judge was asked about the other two, and where each claim stands is kept.
    assert [(each["text"], each["value"], each.get("turn")) for each in carried["detail"]["claims"]] == [
        (LAMPS, 1.0, 1),
        (CHEESE, 0.0, None),
    ]
    assert carried["detail"]["claims"][1]["start"] == len(LAMPS) + len(CHAIRS) + 2
    assert ("carried_faithfulness", f"{conversation}#1") not in found


def test_a_second_run_takes_the_scores_as_they_are_and_a_report_has_them(talks: list[Seen]) -> None:
    _, whole, again, _ = talks
    again.result.stdout.fnmatch_lines(["*6 reused*"])
    assert again.kept == whole.kept
    assert again.figures["carried_faithfulness"] == pytest.approx(1 / 3)


def test_other_earlier_contexts_are_judged_anew(talks: list[Seen]) -> None:
    other = talks[-1]
    other.result.assert_outcomes(passed=6)
    assert other.scores["carried_faithfulness", "c0#2"]["value"] == 0.0


def test_a_test_of_ones_own_is_told_that_it_comes_later(talk: Suite) -> None:
    body = PIPELINE.replace("rag_result):", "rag_result, rag_scores):").replace(
        "assert rag_result.ok", 'assert "after the last test" in rag_scores["carried_faithfulness"].reason'
    )
    talk.pytester.makepyfile(test_mine=body)
    talk.run(MEASURE).assert_outcomes(passed=6)


def test_it_has_no_promise_over_repeats() -> None:
    gate = parse_gate("mine: pass^2(carried_faithfulness<=0.5) >= 0.9", 5)
    with pytest.raises(SettingsError, match="carried_faithfulness is checked on first answers only"):
        check_promises([gate], 2)


class Recorded(NamedTuple):
    """What the model was asked in a run that records, until the end of one that follows, and of a replay with workers.

    Attributes:
        judging: what the manifest of each run says of its judging.
        scores: what each run has left.
    """

    seen: list[Asked]
    again: list[Asked]
    replayed: list[Asked]
    judging: list[Any]
    scores: list[dict[tuple[str, str], Any]]


@pytest.fixture(scope="module")
def recorded(shared_suite: Suite) -> Recorded:
    talk, asked = let_talk(shared_suite), list[Asked]()
    seen: list[list[Asked]] = []
    judging: list[Any] = []
    left: list[Any] = []

    def reply(body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        asked.append(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys))
        return json.dumps({"question": "How long can lamps go back?"} if keys == ("question",) else honest(asked[-1]))

    with counting_server(delay=0.0, reply=reply) as server:
        talk.set_table("profiles.mock.judge", model="gpt-x", base_url=server.url)
        judge = ("--rag-output=recorded",)
        record, replay = ("--rag-mode=record",), ("--rag-mode=replay", "--rag-overwrite", "-n2")
        for more in (record, record, replay):
            measures = "--rag-measures=faithfulness,answer_relevancy,retention,carried_faithfulness"
            talk.run(measures, *judge, *more).assert_outcomes(passed=6)
            manifest = json.loads((talk.path / "recorded" / "run.json").read_text())
            seen.append([*asked])
            judging.append(manifest["suites"]["mine"].get("judging"))
            left.append(scores(talk, "recorded"))
    first, again, replayed = seen
    return Recorded(first, again, replayed, judging, left)


def test_a_judge_with_a_chat_model_is_asked_about_the_claims_that_faithfulness_has_not_found(
    recorded: Recorded,
) -> None:
    assert recorded.judging[0]["calls"] == len(recorded.seen)
    assert recorded.again == recorded.seen
    assert recorded.judging[1]["calls"] == 0, "not even of what is recorded"
    late = [each for each in recorded.seen if each.kind == "supported" and each.numbered("claim") == [LAMPS, CHEESE]]
    assert late
    assert all(each.numbered("passage") == [LAMPS] for each in late)
    assert recorded.scores[0]["carried_faithfulness", "c1#2"]["value"] == pytest.approx(1 / 3)


def test_a_conversation_that_was_judged_in_a_recording_run_is_replayed_without_a_call(recorded: Recorded) -> None:
    seen, (before, _, replayed) = recorded.seen, recorded.scores
    assert recorded.replayed == seen
    assert {key: each["value"] for key, each in replayed.items()} == {
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
        talk.set_table("profiles.mock.judge", base_url=server.url)
        panel = ("--rag-judge=fused@gpt-x,mock", "--rag-panel=mean")
        talk.run(MEASURE, *panel, "--rag-mode=live").assert_outcomes(passed=6)
    lines = (talk.path / "output" / "scores" / "mine.jsonl").read_text().splitlines()
    late = [each for each in map(json.loads, lines) if each["measure"] == "carried_faithfulness"]
    assert {each["model"] for each in late} == {"gpt-x", "mock/word-overlap"}
    summary = json.loads((talk.path / "output" / "summary.json").read_text())
    assert summary["mine"]["carried_faithfulness"] == pytest.approx(1 / 3)
