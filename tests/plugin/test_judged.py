"""Judged scores as a user sees them: files of their own, resumed, gated, and never a failed trial. Mock judge."""

from __future__ import annotations

import json
import signal
from typing import Any, NamedTuple

import pytest

from rag_harness.evaluation.judges.mock import MockJudge
from tests.plugin.conftest import Suite

MEASURES = "--rag-measures=context_precision,faithfulness,answer_relevancy"
# Counts what the judge is asked, in a file that all processes share, and lets a test replace what it says.
COUNTING = """
from rag_harness.evaluation.judges import mock

def asked(text):
    with open({asked!r}, "a") as stream:
        stream.write(text + "\\n")

real = mock.MockOpinion.supported

async def supported(self, claims, source):
    asked(self._material.question)
    return await real(self, claims, source)

mock.MockOpinion.supported = supported
"""
REAL = "return await real(self, claims, source)"
FAILING = """
async def failing(self, claims, source):
    asked(self._material.question)
    {body}

mock.MockOpinion.supported = failing
"""


def count_questions(suite: Suite) -> Suite:
    suite.pytester.makeconftest(COUNTING.format(asked=str(suite.path / "asked.txt")))
    return suite


@pytest.fixture
def judged(suite: Suite) -> Suite:
    return count_questions(suite)


def fail_with(suite: Suite, body: str) -> None:
    conftest = COUNTING.format(asked=str(suite.path / "asked.txt")) + FAILING.format(body=body)
    suite.pytester.makeconftest(conftest)


def asked(suite: Suite) -> list[str]:
    file = suite.path / "asked.txt"
    return sorted(file.read_text().splitlines()) if file.exists() else []


def scores(suite: Suite, name: str = "e3_filtered_rag") -> list[dict[str, Any]]:
    file = suite.path / "output" / "scores" / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Seen(NamedTuple):
    """What a run has said, how often the judge was asked until then, and the scores that were left, as bytes, too."""

    result: pytest.RunResult
    asked: int
    scores: list[dict[str, Any]]
    kept: bytes


def seen(judged: Suite, result: pytest.RunResult) -> Seen:
    kept = (judged.path / "output" / "scores" / "e3_filtered_rag.jsonl").read_bytes()
    return Seen(result, len(asked(judged)), scores(judged), kept)


KEY = "sk-planted-judge-key"
NO_WORSE = "--rag-gate=e3: faithfulness >= baseline - 0.1"


@pytest.fixture(scope="module")
def judged_again(shared_suite: Suite) -> tuple[Suite, list[Seen]]:
    """A run that judges, the same on two workers, two with another judge; with a key in the environment."""
    judged, found = count_questions(shared_suite), list[Seen]()
    compared = ("--rag-compare=main", NO_WORSE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAG_JUDGE_API_KEY", KEY)
        for more in (("--rag-save=main",), ("-n2", *compared), compared, ()):
            if len(found) == 2:
                with (judged.path / "conftest.py").open("a") as conftest:
                    conftest.write('\nmock.MockJudge.revision = "2"\n')
            found.append(seen(judged, judged.run(MEASURES, *more)))
    return judged, found


def test_each_row_is_judged_once_and_the_scorecard_says_by_whom(judged_again: tuple[Suite, list[Seen]]) -> None:
    judged, (first, *_) = judged_again
    first.result.stdout.fnmatch_lines(["rag: judged by mock/word-overlap*"])
    look_at_first(judged, first)


@pytest.mark.long
def test_workers_judge_each_row_once(judged: Suite) -> None:
    look_at_first(judged, seen(judged, judged.run(MEASURES, "-n2")))


def look_at_first(judged: Suite, first: Seen) -> None:
    first.result.assert_outcomes(passed=4)
    first.result.stdout.fnmatch_lines(
        [
            "*rag scorecard*",
            "judged by mock/word-overlap (words and vectors compared, no LLM)",
            "experiment*CP*F*AR*HRI*",
        ]
    )
    assert first.asked == 4
    kept = first.scores
    assert len(kept) == 4 + 4 + 1  # only one of the four has a ground truth
    line = next(line for line in kept if line["measure"] == "faithfulness" and line["query_id"] == "q_direct_001")
    assert (line["experiment"], line["judge"], line["model"]) == ("e3", "mock", "mock/word-overlap")
    claim = line["detail"]["claims"][0]
    answer = next(row["llm_answer"] for row in judged.rows() if row["query_id"] == "q_direct_001")
    assert claim["text"] == str(answer)[claim["start"] : claim["end"]]


def test_who_runs_nothing_that_is_judged_needs_no_judge(judged: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_JUDGE_API_KEY", raising=False)
    judged.set_table("profiles.mock.judge", model="gpt-4o", base_url="https://llm.example/v1")
    result = judged.run("--rag-gate=e4: faithfulness >= 0.5", "--rag-mode=live")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines([" *e4 has no trial, though all tests were asked for*"])


def test_a_resumed_run_judges_nothing_again_and_has_the_same_scorecard(
    judged_again: tuple[Suite, list[Seen]],
) -> None:
    _, (first, again, *_) = judged_again
    assert again.asked == 4
    assert again.kept == first.kept
    assert _scorecard(again.result) == _scorecard(first.result)


def _scorecard(result: pytest.RunResult) -> list[str]:
    lines = [line.rstrip() for line in result.stdout.lines if line]
    start = next(n for n, line in enumerate(lines) if "rag scorecard" in line)
    end = next(n for n, line in enumerate(lines[start + 1 :], start + 1) if "passed" in line or line.startswith("==="))
    return lines[start:end]


def test_another_judge_judges_again_without_answering_again(judged_again: tuple[Suite, list[Seen]]) -> None:
    _, (_, _, other, other_again) = judged_again
    other.result.stdout.fnmatch_lines(["answers: 4 reused from the run of * UTC; 0 new"])
    assert other.asked == 8
    assert {line["revision"].partition("+")[0] for line in other.scores} == {MockJudge.revision, "2"}
    assert other_again.asked == 8, "what is stored of the second judge is found, too"


def test_scores_of_two_judges_are_not_compared(judged_again: tuple[Suite, list[Seen]]) -> None:
    _, (_, same, other, _) = judged_again
    assert same.result.ret == 0
    first = f"mock/word-overlap (mock, {MockJudge.revision[:8]})"
    said = f"the baseline was judged by {first}, this run by mock/word-overlap (mock, 2+"
    other.result.stdout.fnmatch_lines(["Judged measures of e3 are not compared: before was judged by mock*"])
    assert said in " ".join(other.result.stdout.str().split())
    other.result.stdout.no_fnmatch_line("  faithfulness *")
    assert other.result.ret == 1


def test_the_judges_key_is_in_no_file(judged_again: tuple[Suite, list[Seen]]) -> None:
    judged, _ = judged_again
    files = [file for file in judged.path.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_changed_answer_is_judged_anew_and_its_old_scores_are_set_aside(judged: Suite) -> None:
    judged.run(MEASURES)
    judged.run(MEASURES, "--rag-top-k=1")
    assert len(scores(judged)) == 9
    aside = (judged.path / "output" / "previous" / "scores-e3_filtered_rag.jsonl").read_text().splitlines()
    assert aside
    assert {json.loads(line)["row"] for line in aside}.isdisjoint(line["row"] for line in scores(judged))


def test_a_measure_that_a_gate_names_is_judged_without_being_listed(judged: Suite) -> None:
    judge = ("--rag-judge=mock", "--rag-judge-model=gpt-4o")
    result = judged.run("--rag-gate=e3: faithfulness <= 0.5", "--rag-gate=e3: g_mean >= 0.99", *judge)
    # A judge in this process is not announced as the chat model.
    result.stdout.fnmatch_lines(["rag: judged by mock/word-overlap (words and vectors compared, no LLM)"])
    result.stdout.fnmatch_lines(["passed      e3: faithfulness <= 0.5*", "failed      e3: g_mean >= 0.99*"])
    assert {line["measure"] for line in scores(judged)} == {"faithfulness", "context_precision", "answer_relevancy"}


def test_a_judge_that_fails_fails_no_trial_and_the_gate_says_why(judged: Suite) -> None:
    fail_with(judged, f'if "lamp" in self._material.question: raise RuntimeError("the judge is away")\n    {REAL}')
    gate = "--rag-gate=e3: faithfulness <= 0.5"
    result = judged.run(gate)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "e3: faithfulness: 1 of 4 have no verdict: RuntimeError: the judge is away",
            "failed      e3: faithfulness <= 0.5*",
            "*25.0% of 4 cases could not be measured, more than 5.0% (--rag-max-unmeasured)*",
        ]
    )
    summary = json.loads((judged.path / "output" / "summary.json").read_text())
    assert summary["e3"]["unmeasured"]["faithfulness"] == 1
    assert judged.run(gate, "--rag-max-unmeasured=0.25").ret == 0
    assert len(asked(judged)) == 5  # what failed is tried again, and nothing else


def test_a_judge_that_is_refused_is_asked_once(judged: Suite) -> None:
    fail_with(
        judged, 'from rag_harness.core.errors import CriticalError\n    raise CriticalError("the key is refused")'
    )
    result = judged.run("--rag-measures=faithfulness", "--rag-concurrency=1")
    result.assert_outcomes(passed=4)
    assert len(asked(judged)) == 1
    assert {line["reason"] for line in scores(judged)} == {"CriticalError: the key is refused"}


def test_what_is_not_defined_is_no_failure_to_measure(judged: Suite) -> None:
    judged.pytester.makepyfile("import pytest\n@pytest.mark.e1\ndef test_it(rag_result):\n    assert rag_result.ok\n")
    for file in judged.path.glob("test_*.py"):
        if "e1" not in file.read_text():
            file.unlink()
    result = judged.run(MEASURES, "--rag-gate=e1: faithfulness >= 0.5")
    result.stdout.fnmatch_lines(["e1 * -  -  0.*", "failed      e1: faithfulness >= 0.5*4 of 4 have no retrieval"])
    lines = [line for line in scores(judged, "e1_baseline") if line["measure"] == "faithfulness"]
    assert {(line["value"], line["undefined"]) for line in lines} == {(None, True)}
    assert "no context" in lines[0]["reason"]
    assert json.loads((judged.path / "output" / "summary.json").read_text())["e1"]["unmeasured"]["faithfulness"] == 0


ASKS = """
import pytest

@pytest.mark.e3
def test_scores(rag_result, rag_scores):
    assert rag_scores["faithfulness"].value is not None
    assert list(rag_scores) == {listed!r}
    assert rag_scores["recall@5"].undefined == (not rag_result.context_reference)
    hri = rag_scores["hri"]
    assert hri.value == (1 - rag_scores["faithfulness"].value) * rag_scores["answer_relevancy"].value
"""


@pytest.mark.parametrize("listed", [["faithfulness"], pytest.param([], marks=pytest.mark.long)])
def test_a_test_asks_for_scores_listed_or_not(judged: Suite, listed: list[str]) -> None:
    for file in judged.path.glob("test_*.py"):
        file.unlink()
    judged.pytester.makepyfile(test_scores=ASKS.format(listed=listed))
    judged.run(*[f"--rag-measures={name}" for name in listed]).assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("args", "base_url", "said"),
    [
        (["--rag-measures=faithfulnes"], "", "*Unknown measure 'faithfulnes'. Did you mean 'faithfulness'?*"),
        pytest.param([MEASURES, "--rag-judge=nobody"], "", "*Unknown judge 'nobody'*", marks=pytest.mark.long),
        ([MEASURES, "--rag-judge=fused"], "", "*asks a chat model*base_url of the profile's role judge*"),
        (
            [MEASURES, "--rag-judge-model=gpt-4o", "--rag-mode=live"],
            "https://llm.example/v1",
            "*RAG_JUDGE_API_KEY is not set: mode live judges with gpt-4o at https://llm.example/v1.*",
        ),
        (
            [MEASURES, "--rag-judge-model=odd/one", "--rag-mode=live", "--rag-budget=1"],
            "http://127.0.0.1:9/v1",
            "*'odd/one' has no price*",
        ),
    ],
)
def test_a_judge_that_cannot_be_is_said_before_anything_runs(
    judged: Suite, monkeypatch: pytest.MonkeyPatch, args: list[str], base_url: str, said: str
) -> None:
    monkeypatch.delenv("RAG_JUDGE_API_KEY", raising=False)
    if base_url:
        judged.set_table("profiles.mock.judge", base_url=base_url)
    result = judged.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert not judged.rows()


def test_scores_of_a_killed_run_are_taken_over(judged: Suite) -> None:
    """The last row's judgement never comes; what was judged before it is in the journal."""
    end = 'if "fish" in self._material.question:\n        import os, time; time.sleep(0.3); os.kill(os.getpid(), 9)'
    fail_with(judged, f"{end}\n    {REAL}")
    killed = judged.run("--rag-measures=faithfulness", "--rag-concurrency=1")
    assert killed.ret == -signal.SIGKILL
    judged.pytester.makeconftest(COUNTING.format(asked=str(judged.path / "asked.txt")))
    judged.run("--rag-measures=faithfulness").assert_outcomes(passed=4)
    assert len(scores(judged)) == 4
    assert sorted(asked(judged)) == sorted([*(str(row["query"]) for row in judged.rows()), "live fish"])


def test_a_disk_that_is_full_while_judging_ends_the_run(judged: Suite) -> None:
    with (judged.path / "conftest.py").open("a") as conftest:
        conftest.write(FULL)
    result = judged.run("--rag-measures=faithfulness", "--rag-concurrency=1")
    result.stdout.fnmatch_lines(
        ["*rag_harness: Answers that were paid for would be lost*the journal*cannot be written*"]
    )
    assert "INTERNALERROR" not in result.stdout.str()


FULL = """
import errno
from rag_harness.runs import journal

write = journal.os.write

def full(descriptor, content):
    if content.startswith(b'{"measure"'):
        raise OSError(errno.ENOSPC, "No space left on device")
    return write(descriptor, content)

journal.os.write = full
"""
