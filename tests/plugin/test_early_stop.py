"""--rag-stop-early in a run: what is asked, what the gates say, what is kept, and where it is refused."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.frontends.pytest_plugin.stop_plan import check_gates, refusal
from rag_harness.runs.gates import parse_gate
from rag_harness.runs.gates.early_stopping import random_order
from tests.plugin.conftest import Suite

CASES = 60
PASSES = "--rag-gate=e3: recall@5 >= 0.7 @95%"
# Finds the right page where the query says so, and counts what it is asked in a file that survives the run.
PLANTED = """
import pytest
from rag_harness.core.types import Answer, Chunk, Hit, PipelineOutput

class Planted:
    fingerprint = "1"

    async def answer(self, query):
        with open({asked!r}, "a") as stream:
            stream.write(f"q_direct_{{int(query.text.split()[3]):03}}\\n")
        if "raises" in query.text:
            raise ValueError("planted")
        page = "returns.md" if "right" in query.text else "warranty.md"
        hit = Hit(Chunk(f"{{page}}#0", page, "You can return a lamp within 45 days."), 1.0, 1)
        return PipelineOutput(Answer("You can return a lamp within 45 days."), (hit,), (hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Planted()
"""


def plant(suite: Suite, wrong: Collection[int] = (), kind: str = "wrong", cases: int = CASES) -> None:
    """Write cases of which those numbered in ``wrong`` are not found."""
    suite.pytester.makeconftest(PLANTED.format(asked=str(suite.path / "asked.txt")))
    suite.write_queries(
        [
            {
                "query_id": f"q_direct_{n:03}",
                "query": f"return a lamp {n} {kind if n in wrong else 'right'}",
                "context_reference": ["returns.md"],
                "ground_truth": "45 days",
                "metadata": {"half": "first" if n < cases / 2 else "second"},
            }
            for n in range(cases)
        ]
    )


def asked(suite: Suite) -> list[str]:
    return (suite.path / "asked.txt").read_text().split()


def e3(suite: Suite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((suite.path / "output" / "run.json").read_text())["suites"]["e3"]
    return found


def gates(suite: Suite) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((suite.path / "output" / "summary.json").read_text())["gates"]
    return found


class Seen(NamedTuple):
    """What a run has said, and what has come of it and of all before: questions, manifest, gates."""

    result: pytest.RunResult
    asked: list[str]
    record: dict[str, Any]
    gates: list[dict[str, Any]]


@pytest.fixture(scope="module")
def resumed(shared_suite: Suite) -> list[Seen]:
    """A run that stops early, the same again, a whole run, and one that stops early among the rows of that."""
    plant(shared_suite)
    found = []
    for stops in (True, True, False, True):
        options = ["--rag-stop-early", "--rag-concurrency=2"] if stops else []
        result = shared_suite.run(*options, PASSES)
        found.append(Seen(result, asked(shared_suite), e3(shared_suite), gates(shared_suite)))
    return found


def test_a_clear_pass_stops_early_and_holds(resumed: list[Seen]) -> None:
    result, asked, record, _ = resumed[0]
    assert result.ret == 0
    outcomes = result.parseoutcomes()
    looked_at = outcomes["passed"]
    assert looked_at < 30
    assert (outcomes["skipped"], looked_at + outcomes["skipped"]) == (CASES - looked_at, CASES)
    result.stdout.fnmatch_lines(
        [
            "rag: e3 stops early: cases in random order (seed 0) until its gates are settled*these cases*",
            f"not run: {CASES - looked_at} trials of e3, whose gates had their verdicts.*",
            f"passed *e3: recall@5 >= 0.7 @95% *1.000*n={looked_at}",
            f"*settled after {looked_at} of {CASES} cases, in random order, 95 % sure*",
        ]
    )
    assert (len(record["settled"]), record["lost"], record["not_run"]) == (CASES - looked_at, [], [])
    assert len(asked) <= looked_at + 4
    assert asked != sorted(asked)


def test_a_run_that_is_resumed_asks_nothing_again(resumed: list[Seen]) -> None:
    first, again, whole, _ = resumed
    assert again.result.parseoutcomes() == first.result.parseoutcomes()
    assert (again.record["settled"], again.gates, again.asked) == (first.record["settled"], first.gates, first.asked)
    whole.result.assert_outcomes(passed=CASES)
    assert sorted(whole.asked) == sorted(set(whole.asked))


def test_stored_rows_count_in_the_random_order(resumed: list[Seen]) -> None:
    last = resumed[-1]
    last.result.stdout.fnmatch_lines([f"*settled after * of {CASES} cases, in random order*"])
    assert len(last.asked) == CASES


def test_a_clear_fail_stops_early_and_fails(suite: Suite) -> None:
    """Errors count the worst."""
    plant(suite, range(0, CASES, 2), kind="raises")
    result = suite.run("--rag-stop-early", "--rag-concurrency=2", "--rag-gate=e3: recall@5 >= 0.95 @95%")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *e3: recall@5 >= 0.95 @95% *", f"*settled after * of {CASES} cases*"])
    (gate,) = gates(suite)
    assert gate["state"] == "failed"
    assert len(asked(suite)) < 30


def test_what_is_close_is_asked_in_full_and_judged_as_these_cases(suite: Suite) -> None:
    """Every gate must be settled: the second one would be, long before the end."""
    plant(suite, range(18))
    result = suite.run("--rag-stop-early", PASSES, "--rag-gate=e3: error_rate <= 0.3 @95%")
    assert result.ret == 0
    assert len(asked(suite)) == CASES
    close = ["passed *e3: recall@5 >= 0.7 @95% *0.700*n=60", "*at least 0.700 for these 60 cases*"]
    result.stdout.fnmatch_lines([*close, "passed *e3: error_rate <= 0.3 @95%*"])
    recall, _ = gates(suite)
    assert "settled after" not in recall["reason"]
    assert e3(suite)["settled"] == []


def test_a_seed_gives_another_order(suite: Suite) -> None:
    plant(suite)
    suite.set_table("settings", order_seed=2)
    suite.run("--rag-stop-early", "--rag-concurrency=1", PASSES)
    orders = [random_order({f"q_direct_{n:03}": [f"q_direct_{n:03}"] for n in range(CASES)}, seed) for seed in (0, 2)]
    assert asked(suite)[:5] == orders[1][:5] != orders[0][:5]


def test_a_slice_is_settled_by_its_own_cases(suite: Suite) -> None:
    plant(suite, range(30, CASES))
    gate_of_half = "--rag-gate=e3[half=first]: recall@5 >= 0.7 @95%"
    suite.run("--rag-stop-early", "--rag-concurrency=1", "--rag-foreign-text=allow", gate_of_half)
    (gate,) = gates(suite)
    assert gate["state"] == "passed"
    assert gate["reason"].startswith("settled after")
    assert "of 30 cases" in gate["reason"]
    assert len(asked(suite)) < CASES


@pytest.mark.long
def test_wrong_ones_stop_early_too_and_so_do_errors_alone(suite: Suite) -> None:
    for cases, kind, gate in (
        (range(0, CASES, 2), "wrong", "recall@5 >= 0.95"),
        (range(CASES), "raises", "recall@5 >= 0.7"),
    ):
        plant(suite, cases, kind)
        suite.run("--rag-stop-early", "--rag-concurrency=2", "--rag-overwrite", f"--rag-gate=e3: {gate} @95%")
        (found,) = gates(suite)
        assert found["state"] == "failed"
        assert len(asked(suite)) < 30
        (suite.path / "asked.txt").unlink()


def test_a_judged_measure_is_there_before_the_rule_looks(suite: Suite) -> None:
    plant(suite)
    result = suite.run("--rag-stop-early", "--rag-concurrency=2", "--rag-gate=e3: faithfulness >= 0.3 @95%")
    assert result.ret == 0
    (gate,) = gates(suite)
    assert (gate["state"], gate["n"] < 30) == ("passed", True)
    assert gate["reason"].startswith(f"settled after {gate['n']} of {CASES} cases")
    scores = (suite.path / "output" / "scores" / "e3_filtered_rag.jsonl").read_text().splitlines()
    assert len({json.loads(line)["query_id"] for line in scores if line}) <= gate["n"] + 4


def test_what_waits_at_the_stop_is_dropped_and_what_is_under_way_is_not_judged(suite: Suite) -> None:
    plant(suite)
    conftest = suite.path / "conftest.py"
    # Four answers settle the gate. On a busy machine the stop takes its time, so what comes after these waits for it.
    wait = "await asyncio.sleep(0.1 if len(seen) <= 4 else 1.5)"
    slow = "import asyncio\nseen = []\n" + conftest.read_text().replace(
        "        page", f"        seen.append(query)\n        {wait}\n        page"
    )
    conftest.write_text(slow)
    suite.pytester.makepyfile(
        "import pytest, time\n"
        "@pytest.mark.e3\ndef test_a(rag_result): pass\n"
        "def test_others_take_their_time(): time.sleep(0.5)\n"
    )
    suite.run("--rag-stop-early", "--rag-concurrency=1", "--rag-gate=e3: faithfulness >= 0.3 @95%")
    (gate,) = gates(suite)
    # The slot of an answer that is there goes to the next trial at once, and only then to a judge.
    assert len(asked(suite)) <= gate["n"] + 2
    assert len(suite.rows()) == len(asked(suite))
    scores = (suite.path / "output" / "scores" / "e3_filtered_rag.jsonl").read_text().splitlines()
    assert asked(suite)[-1] not in {json.loads(line)["query_id"] for line in scores if line}


@pytest.mark.parametrize(("unmeasured", "most"), [pytest.param(60, "0.05", marks=pytest.mark.long), (6, "0.2")])
def test_what_could_not_be_measured_settles_nothing(suite: Suite, unmeasured: int, most: str) -> None:
    """Of 60 cases: all of them, which is refused when all were asked; or a tenth, which may be."""
    plant(suite, range(unmeasured), kind="unmeasured")
    fails = (
        "from rag_harness.evaluation.measures.answers import TokenF1\n"
        "from rag_harness.evaluation.measures import Score\n"
        "def score(self, case, row):\n"
        "    value = None if 'unmeasured' in case.query.text else 1.0\n"
        "    return Score(value, '' if value else 'nobody measured it')\n"
        "TokenF1.score = score\n"
    )
    conftest = suite.path / "conftest.py"
    conftest.write_text(fails + conftest.read_text())
    options = ["--rag-stop-early", "--rag-concurrency=1", f"--rag-max-unmeasured={most}"]
    suite.run(*options, "--rag-gate=e3: token_f1 >= 0.7 @95%")
    (gate,) = gates(suite)
    assert (gate["state"], len(asked(suite)) < CASES) == (("failed", False) if unmeasured == 60 else ("passed", True))


def test_two_tests_of_a_trial_share_it(suite: Suite) -> None:
    plant(suite)
    suite.pytester.makepyfile(
        "import pytest\n@pytest.mark.e3\ndef test_a(rag_result): pass\n@pytest.mark.e3\ndef test_b(rag_result): pass\n"
    )
    result = suite.run("--rag-stop-early", "--rag-concurrency=1", PASSES)
    (gate,) = gates(suite)
    assert result.parseoutcomes()["passed"] == 2 * gate["n"]
    assert result.parseoutcomes()["skipped"] == 2 * (CASES - gate["n"])


def test_a_trial_of_two_tests_is_looked_at_once(suite: Suite) -> None:
    plant(suite, cases=3)
    suite.pytester.makepyfile(
        "import pytest\n"
        "from rag_harness.frontends.pytest_plugin.stop_plan import Watch\n"
        "taken = []\n"
        "Watch.take = lambda self, query_id, scores: taken.append(query_id)\n"
        "@pytest.mark.e3\ndef test_a(rag_result): pass\n"
        "@pytest.mark.e3\ndef test_b(rag_result): pass\n"
        "def test_c(): assert sorted(taken) == [f'q_direct_{n:03}' for n in range(3)]\n"
    )
    suite.run("--rag-stop-early", PASSES).assert_outcomes(passed=7)


@pytest.mark.long
def test_a_case_that_never_comes_holds_the_rule_up(suite: Suite) -> None:
    """Which cases a mark leaves out may depend on what they are worth: then the order is no random one."""
    plant(suite)
    suite.pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.e3\ndef test_a(rag_trial, broken, rag_result): pass\n"
        "@pytest.fixture\ndef broken(rag_trial):\n"
        "    assert rag_trial.case.query.query_id != FIRST\n"
        "from rag_harness.runs.gates.early_stopping import random_order\n"
        f"FIRST = random_order({{f'q_direct_{{n:03}}': [f'q_direct_{{n:03}}'] for n in range({CASES})}}, 0)[0]\n"
    )
    result = suite.run("--rag-stop-early", PASSES)
    assert e3(suite)["settled"] == []
    assert len(e3(suite)["lost"]) == 1
    result.stdout.fnmatch_lines(["failed *e3: recall@5 >= 0.7 @95%*"])


def test_a_run_that_ends_at_the_first_failure_has_lost_nothing_that_was_settled(suite: Suite) -> None:
    plant(suite)
    suite.pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.e3\ndef test_a(rag_result): pass\n"
        "def test_z(): assert False\n"
        "@pytest.mark.e3\ndef test_zz(rag_result): pass\n"
    )
    result = suite.run("--rag-stop-early", "-x", PASSES)
    assert e3(suite)["lost"] == []
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0.7 @95%*", "*settled after*"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([PASSES, "--rag-limit=40"], "40 of 60 cases selected"),
        # These reasons have tests of their own: below, and beside the rule and the plan.
        *(
            pytest.param(options, why, marks=pytest.mark.long)
            for options, why in (
                (["--rag-gate=e2: recall@5 >= 0.7 @95%"], "it has no gate"),
                (["--rag-gate=e3: p50(recall@5) >= 0.7 @95%"], "gate 'e3: p50(recall@5) >= 0.7 @95%': a quantile has*"),
                (["--rag-gate=e3: total_ms <= 900 @95%"], "gate 'e3: total_ms <= 900 @95%': total_ms has no range*"),
                (
                    [PASSES, "--rag-gate=e3: token_f1 >= 0.01"],
                    "gate 'e3: token_f1 >= 0.01': it compares the value alone*",
                ),
                ([PASSES, "--rag-gate=e2: recall@5 >= e3 @95%"], "gate 'e2: recall@5 >= e3 @95%' depends on it"),
            )
        ),
    ],
)
def test_an_experiment_that_cannot_stop_early_says_why_and_is_asked_in_full(
    suite: Suite, options: list[str], why: str
) -> None:
    plant(suite)
    result = suite.run("--rag-stop-early", *options)
    result.stdout.fnmatch_lines([f"rag: e3 is asked in full: {why}"])
    assert asked(suite) == sorted(asked(suite))
    assert len(asked(suite)) == (40 if "--rag-limit=40" in options else CASES)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param([], "*no gate of this run asks for evidence. Write @95%*", marks=pytest.mark.long),
        (["--rag-gate=e3: recall@5 >= 0.7"], "*no gate of this run asks for evidence. Write @95%*"),
        ([PASSES, "-n2"], "*--rag-stop-early looks at one case after another*Leave -n out*"),
        pytest.param([PASSES, "--rag-save=main"], "*--rag-save=main keeps a whole run*", marks=pytest.mark.long),
    ],
)
def test_what_cannot_be_is_a_usage_error(suite: Suite, options: list[str], said: str) -> None:
    plant(suite)
    result = suite.run("--rag-stop-early", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert suite.rows() == []


def test_without_a_gate_it_is_asked_in_full() -> None:
    assert refusal("e3", [parse_gate("e2: recall@5 >= 0.7 @95%", 5)], [], CASES) == "it has no gate"


def test_a_run_that_is_to_be_saved_is_a_whole_one() -> None:
    with pytest.raises(SettingsError, match=r"--rag-save=main keeps a whole run"):
        check_gates([parse_gate("e3: recall@5 >= 0.7 @95%", 5)], "main")


def test_nobody_reorders_after_us(suite: Suite) -> None:
    """--ff puts failed tests first, and failed tests are the bad cases."""
    order = random_order({name: [name] for name in (f"q_direct_{n:03}" for n in range(CASES))}, 0)
    plant(suite, [int(order[3][-3:])], kind="raises")
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\n")
    options = ["--rag-stop-early", "--rag-concurrency=1", "--rag-overwrite", "--rag-gate=e3: recall@5 >= 0.4 @95%"]
    assert suite.run(*options).parseoutcomes()["failed"] == 1
    assert asked(suite)[:4] == order[:4]
    (suite.path / "asked.txt").unlink()
    suite.run(*options, "--ff")
    assert asked(suite)[:4] == order[:4]
