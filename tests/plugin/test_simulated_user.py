"""Conversations that a simulated user plays, as a suite has them: turns as tests, ends, repeats, resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite, copy_data
from tests.plugin.counting_server import CountingServer, counting_server

PIPELINE = """
import json, pathlib
import pytest

class Shop:
    fingerprint = "1"

    def answer(self, query):
        with pathlib.Path("asked.jsonl").open("a") as file:
            file.write(json.dumps([query.query_id, query.text]) + "\\n")
        if "deposit" in query.text:
            return "The deposit is €120."
        if "friday" in query.text:
            return "Three days cost €36."
        if "rent" in query.text:
            return "Yes. For how many people, and for which days?"
        return "I don't know."

@pytest.fixture(scope="session")
def rag_pipeline():
    return Shop()

@pytest.mark.rag_experiment("c1")
def test_it(rag_result):
    assert rag_result.ok, rag_result.why
"""
TENT: dict[str, Any] = {
    "conversation": "sim_001",
    "scenario": {
        "persona": "impatient, writes in fragments",
        "goal": "knows what three days with the bigger tent cost",
        "opening": "can i rent a tent?",
        "facts": ["two adults and a child", "friday to sunday"],
        "asks": ["and the deposit?"],
        "reached": [{"contains": "€36"}],
        "max_turns": 6,
    },
    "context_reference": ["returns.md"],
}


def with_scenario(suite: Suite) -> Suite:
    suite.pytester.makepyfile(test_shop=PIPELINE)
    suite.write_queries([TENT])
    return suite


@pytest.fixture
def played(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    return with_scenario(suite)


def asked(suite: Suite) -> list[list[str]]:
    """Return what was asked since the last call, in its order."""
    file = suite.path / "asked.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def test_a_script_plays_a_scenario_until_its_goal_is_reached(played: Suite) -> None:
    result = played.run("-v", "-rs", "-n0")
    result.assert_outcomes(passed=3, skipped=3)
    result.stdout.fnmatch_lines(["*[[]c1-sim-sim_001#1[]]*", "SKIPPED*ended after turn 3: the goal is reached"])
    assert asked(played) == [
        ["sim_001#1", "can i rent a tent?"],
        ["sim_001#2", "two adults and a child, friday to sunday"],
        ["sim_001#3", "and the deposit?"],
    ]
    rows: dict[Any, Any] = {row["query_id"]: row for row in played.rows("c1-sim")}
    assert [each["content"] for each in rows["sim_001#3"]["inputs"]["history"]] == [
        "can i rent a tent?",
        "Yes. For how many people, and for which days?",
        "two adults and a child, friday to sunday",
        "Three days cost €36.",
    ]
    # What the user wants stays with the harness.
    assert "€36" not in json.dumps({name: each for name, each in rows["sim_001#1"].items() if name != "llm_answer"})


SAYS = {
    "Yes. For how many": "two adults, a child, friday to sunday",
    "Three days cost": "and the deposit?",
    "The deposit is": "",
}
"""What the model of role user says after each reply; nothing ends the conversation."""


def plays(body: Any) -> str:
    heard = str(body["messages"][1]["content"]).rpartition("Assistant: ")[2]
    said = next(text for begin, text in SAYS.items() if heard.startswith(begin))
    return json.dumps({"say": said or "I know what I wanted", "done": not said})


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=plays) as running:
        yield running


def by_model(suite: Suite, server: CountingServer, mode: str = "live") -> list[str]:
    """Have a model of role user play, and return the options of such a run."""
    suite.set_table("profiles.mock.user", model="gpt-user", base_url=server.url)
    return [f"--rag-mode={mode}"]


class ByModel(NamedTuple):
    """A scenario that a model has played, and the same run once more: its suite, what each said, and took of calls."""

    suite: Suite
    first: pytest.RunResult
    again: pytest.RunResult
    calls: tuple[int, int]
    asked: int


@pytest.fixture(scope="module")
def by_a_model(shared_suite: Suite) -> ByModel:
    for file in shared_suite.path.glob("test_*.py"):
        file.unlink()
    suite = with_scenario(shared_suite)
    with counting_server(delay=0.0, reply=plays) as server:
        first = suite.run("-rs", "-n0", "--rag-report=report.html", *by_model(suite, server))
        calls = sum(server.calls.values())
        again = suite.run("-n0", *by_model(suite, server))
        return ByModel(suite, first, again, (calls, sum(server.calls.values())), len(asked(suite)))


def test_a_model_plays_a_scenario_and_its_calls_stand_apart_in_the_row(by_a_model: ByModel) -> None:
    result = by_a_model.first
    result.assert_outcomes(passed=3, skipped=3)
    result.stdout.fnmatch_lines(
        [
            "rag: users played by gpt-user, kept to their scenarios by rules",
            "SKIPPED*ended after turn 3: the user ends it: I know what I wanted",
        ]
    )
    rows: dict[Any, Any] = {row["query_id"]: row for row in by_a_model.suite.rows("c1-sim")}
    said = ["can i rent a tent?", SAYS["Yes. For how many"], "and the deposit?"]
    assert [row["query"] for row in rows.values()] == said
    user = rows["sim_001#2"]["user"]
    assert user["detail"] == {"by": "gpt-user"}
    assert [(call["role"], call["usage"]["prompt_tokens"]) for call in user["calls"]] == [("user", 10)]
    assert rows["sim_001#2"]["usage"]["calls"] == 0
    assert not rows["sim_001#2"]["stages"]
    result.stdout.fnmatch_lines(["the simulated user of c1-sim took 3 calls and 45 tokens, counted in no figure of*"])
    # What a model has said is not asked for again, nor whether it is done.
    by_a_model.again.assert_outcomes(passed=3, skipped=3)
    assert by_a_model.calls == (3, 3)
    assert by_a_model.asked == 3


@pytest.mark.parametrize(
    ("longer", "workers"),
    [
        ("first", "-n0"),
        ("second", "-n2"),
        pytest.param("first", "-n2", marks=pytest.mark.long),
        pytest.param("second", "-n0", marks=pytest.mark.long),
    ],
)
def test_a_repeat_is_another_conversation_that_may_be_longer_or_shorter(
    played: Suite, server: CountingServer, longer: str, workers: str
) -> None:
    def reply(body: Any) -> str:
        first = body["seed"] == 7
        if first != (longer == "first") and "Three days" in str(body["messages"]):
            return json.dumps({"say": "enough", "done": True})
        return plays(body)

    server.reply = reply
    arguments = ["--rag-repeats=2", workers, *by_model(played, server)]
    result = played.run(*arguments, "--rag-gate=c1-sim: worst_of_2(goal_reached) >= 1")
    asked_first, asked_again = (3, 2) if longer == "first" else (2, 3)
    result.assert_outcomes(passed=asked_first, skipped=6 - asked_first)
    assert len(played.rows("c1-sim")) == asked_first
    again = {str(row["query_id"]): row for row in played.rows("derived/c1-sim+repeat2")}
    assert len(again) == asked_again
    record = json.loads((played.path / "output" / "run.json").read_text())["suites"]["c1-sim"]
    assert len(record["ended"]) == 6 - asked_first
    assert len(record["again"]["2"]["ended"]) == 6 - asked_again
    result.stdout.fnmatch_lines(["passed*c1-sim: worst_of_2(goal_reached) >= 1*"])
    result.stdout.no_fnmatch_line("*did not come*")
    before = sum(server.calls.values())
    played.run(*arguments).assert_outcomes(passed=asked_first, skipped=6 - asked_first)
    assert sum(server.calls.values()) == before


def in_role(suite: Suite) -> list[dict[str, Any]]:
    file = suite.path / "output" / "derived" / "scores" / "c1-sim+user.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def talks(n: int) -> list[dict[str, object]]:
    return [{**TENT, "conversation": f"sim_{number:03}"} for number in range(n)]


def record_of(suite: Suite) -> Any:
    return json.loads((suite.path / "output" / "run.json").read_text())["suites"]["c1-sim"]


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_a_user_that_invents_a_number_is_asked_again_and_then_taken_out(
    played: Suite, server: CountingServer, workers: str
) -> None:
    def reply(body: Any) -> str:
        heard = str(body["messages"][1]["content"])
        return json.dumps({"say": "for 17 people", "done": False}) if "sim_000" in heard else plays(body)

    server.reply = reply
    odd = {**TENT, "conversation": "sim_000"}
    odd["scenario"] = {**odd["scenario"], "goal": "sim_000"}
    played.write_queries([odd, *talks(4)[1:]])
    gates = ["--rag-gate=c1-sim: goal_reached >= 0.9", "--rag-gate=c1-sim: error_rate <= 0"]
    result = played.run("-rs", workers, *gates, *by_model(played, server))
    result.assert_outcomes(passed=10, skipped=14, failed=2)
    why = "after turn 1: the simulated user left its role: it says the number 17, which stands nowhere before"
    result.stdout.fnmatch_lines([f"taken out of c1-sim: 1 of 4 conversations: sim_000 {why}*"])
    assert (
        " ".join(result.stdout.str().split()).count(
            "cannot be judged: 1 of 4 conversations taken out, because their simulated user left its role: more than "
            "5.0% (--rag-max-unmeasured)"
        )
        >= 2
    )
    assert [each.startswith(why) for each in record_of(played)["taken_out"].values()] == [True]
    # Its turns before that count; its goal is not known, and counts nowhere.
    result = played.run(workers, *gates, "--rag-max-unmeasured=0.3", *by_model(played, server))
    result.assert_outcomes(passed=10, skipped=14)
    result.stdout.fnmatch_lines(["passed*c1-sim: goal_reached >= 0.9*n=3*", "*1 of 4 conversations taken out*"])
    assert sum(server.calls.values()) == 3 + 3 * 3


def test_a_judge_takes_out_what_rules_do_not_see(played: Suite, server: CountingServer) -> None:
    """What it says of a move stands beside the move, and neither is asked for twice."""

    def reply(body: Any) -> str:
        if "numbered criteria" in str(body["messages"][0]["content"]):
            invents = "green" in str(body["messages"][1]["content"]).rpartition("answer")[0]
            said = {"quote": "", "verdict": "not met" if invents else "met"}
            return json.dumps({"verdicts": [{"index": n, **said} for n in (1, 2)]})
        return (
            plays(body) if "Three days" in str(body["messages"]) else json.dumps({"say": "a green one", "done": False})
        )

    server.reply = reply
    played.set_table("profiles.mock.judge", model="gpt-judge", base_url=server.url)
    judged = ["--rag-judge=fused"]
    result = played.run("-n0", "-rs", *judged, *by_model(played, server))
    result.assert_outcomes(passed=1, skipped=5)
    result.stdout.fnmatch_lines(
        ["taken out of c1-sim: 1 of 1 conversation: sim_001 after turn 1: *left its role: must *"]
    )
    (score,) = in_role(played)
    assert (score["measure"], score["value"], score["judge"], score["model"]) == ("in_role", 0.0, "fused", "gpt-judge")
    calls = sum(server.calls.values())
    assert calls == 2
    played.run("-n0", *judged, *by_model(played, server)).assert_outcomes(passed=1, skipped=5)
    assert sum(server.calls.values()) == calls


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_moves_are_recorded_and_a_replay_needs_no_model(played: Suite, server: CountingServer, workers: str) -> None:
    played.run("-n0", *by_model(played, server, "record")).assert_outcomes(passed=3, skipped=3)
    assert len(list(played.path.glob("cassettes/mock/gpt-user/*.yaml"))) == 3
    calls = sum(server.calls.values())
    result = played.run(workers, "--rag-output=replayed", *by_model(played, server, "replay"))
    result.assert_outcomes(passed=3, skipped=3)
    assert sum(server.calls.values()) == calls
    rows = [json.loads(line) for line in (played.path / "replayed" / "c1-sim.jsonl").read_text().splitlines()]
    assert rows[1]["user"]["calls"][0]["recorded"] is True


def test_a_budget_that_is_spent_leaves_turns_not_run_and_no_gate_judged(played: Suite, server: CountingServer) -> None:
    (played.path / "prices.toml").write_text('[models."gpt-user"]\ninput = 100000\noutput = 100000\n')
    result = played.run(
        "-n0",
        "-rs",
        "--rag-budget=0.0001",
        "--rag-prices=prices.toml",
        "--rag-gate=c1-sim: error_rate <= 0",
        *by_model(played, server),
    )
    result.assert_outcomes(passed=1, skipped=5, failed=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED*not run: budget: *", "*cannot be judged: not run for lack of budget: 5 trials*"]
    )
    assert not server.calls
    result = played.run("-n0", "--rag-prices=prices.toml", *by_model(played, server))
    result.assert_outcomes(passed=3, skipped=3)


def test_a_model_without_a_server_or_key_is_named_before_anything_is_asked(played: Suite) -> None:
    played.set_table("profiles.embedded.user", model="gpt-user")
    result = played.run("--rag-profile=embedded")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gpt-user plays a user, and no server is named for it*"])
    played.set_table("profiles.mock.user", model="gpt-user", base_url="https://api.example.org/v1")
    result = played.run("--rag-mode=live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*RAG_USER_API_KEY is not set*"])
    assert not asked(played)


def test_a_prompt_of_ones_own_replaces_that_of_the_user(played: Suite, server: CountingServer) -> None:
    (played.path / "prompts").mkdir()
    (played.path / "prompts" / "user.system.md").write_text("You are in a hurry.")
    heard: list[str] = []

    def reply(body: Any) -> str:
        heard.append(str(body["messages"][0]["content"]))
        return plays(body)

    server.reply = reply
    played.run("-n0", *by_model(played, server)).assert_outcomes(passed=3, skipped=3)
    assert {*heard} == {"You are in a hurry."}


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_recorded_conversations_and_scenarios_are_experiments_of_their_own(played: Suite, workers: str) -> None:
    recorded: dict[str, object] = {
        "conversation": "c1",
        "turns": [{"query": "can i rent?", "ground_truth": "Yes."}] * 2,
    }
    played.write_queries([TENT, recorded, {"query_id": "q1", "query": "deposit?"}])
    gates = [
        "--rag-gate=c1: error_rate <= 0",
        "--rag-gate=c1-sim: error_rate <= 0",
        "--rag-gate=c1-own: error_rate <= 0",
    ]
    result = played.run(workers, "--rag-history=both", *gates)
    result.assert_outcomes(passed=9, skipped=3)
    assert len(played.rows("c1_standalone")) == len(played.rows("c1-own")) == 3
    assert len(played.rows("c1-sim")) == 3
    cases = {file.name: len(file.read_text().splitlines()) for file in (played.path / "output" / "cases").glob("*")}
    assert cases == {"queries.jsonl": 3, "queries+scenarios.jsonl": 6}


def test_a_turn_that_is_selected_alone_is_asked_after_those_before_it(played: Suite) -> None:
    file = next(played.path.glob("test_*.py")).name
    played.run(f"{file}::test_it[c1-sim-sim_001#3]").assert_outcomes(passed=1)
    assert [each for each, _ in asked(played)] == ["sim_001#1", "sim_001#2", "sim_001#3"]
    result = played.run(f"{file}::test_it[c1-sim-sim_001#5]", "-rs")
    result.assert_outcomes(skipped=1)
    assert not asked(played)


def test_a_turn_that_fails_is_asked_once_more_and_twice_ends_it(played: Suite) -> None:
    played.pytester.makepyfile(
        test_shop=PIPELINE.replace('if "deposit" in', 'raise ValueError("away")\n        if "deposit" in')
    )
    result = played.run("-rs")
    result.assert_outcomes(failed=2, skipped=4)
    result.stdout.fnmatch_lines(["SKIPPED*ended after turn 2: the user gives up: two turns failed"])


def test_whole_conversations_are_played_in_random_order_until_gates_are_settled(played: Suite) -> None:
    played.write_queries(talks(12))
    gate = "--rag-gate=c1-sim: error_rate <= 0.8 @95%"
    result = played.run("-n0", "--rag-stop-early", "--rag-concurrency=1", gate)
    result.stdout.fnmatch_lines(["*settled after * of 12 conversations, in random order, 95 % sure*"])
    turns = asked(played)
    begun = [query_id for query_id, _ in turns if query_id.endswith("#1")]
    assert begun != sorted(begun)
    assert 9 <= len(turns) < 36
    played.write_queries(talks(1))
    late = played.run("-n0", "--rag-stop-early", "--rag-gate=c1-sim: goal_reached >= 0.5 @95%", "--rag-output=late")
    late.stdout.fnmatch_lines(["*c1-sim is asked in full: *it is known when a conversation has ended*"])


def test_what_is_wrong_with_a_scenario_is_named_with_its_line(played: Suite) -> None:
    played.write_queries([TENT, {"conversation": "sim_002", "scenario": {"asks": ["and?"]}}])
    result = played.run()
    assert result.ret != 0
    assert "queries.jsonl:2: scenario: opening is missing" in result.stdout.str()
    assert not asked(played)


def test_the_report_shows_what_was_said_and_by_whom(by_a_model: ByModel) -> None:
    folder = by_a_model.suite.path
    page = (folder / "report.html").read_text()
    assert "c1-sim: simulated by gpt-user" in page
    assert "Turns that simulated users never came to count nowhere: c1-sim: 3 turns." in page
    assert main(["report", str(folder / "output"), "-o", str(folder / "report.csv")]) == 0
    assert "two adults, a child, friday to sunday" in (folder / "report.csv").read_text()


def test_an_experiment_without_scenarios_has_no_simulated_user(suite: Suite) -> None:
    result = suite.run("--rag-run=e3-sim")
    assert result.ret != 0
    assert (
        "e3-sim is e3 asked by a simulated user, and the questions of e3 have no scenario"
        in result.stdout.str() + result.stderr.str()
    )


def test_what_was_said_is_shown_and_files_are_whole(
    by_a_model: ByModel, suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_data(by_a_model.suite.path, suite.path)
    assert main(["explain", "--rows-only", "output", "c1-sim_001#3"]) == 0
    pytest.LineMatcher(capsys.readouterr().out.splitlines()).fnmatch_lines(
        [
            "user*simulated by gpt-user",
            "turn 1*user: can i rent a tent?",
            "*reply: Yes. For how many*",
            "*c1-sim-sim_001#3*",
        ],
    )
    main(["explain", "output", "c1-sim-sim_001#5"])
    pytest.LineMatcher(capsys.readouterr().out.splitlines()).fnmatch_lines(
        ["c1-sim-sim_001#5 was not asked: its conversation ended after turn 3: the user ends it*"]
    )
    assert main(["results", "validate", "output", "--queries", "kb/queries.jsonl"]) == 0
    file = suite.path / "output" / "c1-sim.jsonl"
    file.write_text("".join(file.read_text().splitlines(True)[:2]))
    assert main(["results", "validate", "output", "--queries", "kb/queries.jsonl"]) == 1


@pytest.mark.parametrize("option", ["--rag-attribute", "--rag-metamorphic"])
def test_a_turn_that_is_run_again_is_asked_what_was_said_then(played: Suite, option: str) -> None:
    played.pytester.makepyfile(
        test_shop="""
        import pytest

        @pytest.mark.rag_experiment("e3")
        def test_it(rag_result):
            assert rag_result.ok
        """
    )
    played.write_queries([{**TENT, "expect": [{"contains": "what nobody says"}]}])
    played.run(option, "--rag-metamorphic-cases=0", "--rag-measures=faithfulness")
    rows = {str(row["query_id"]): row for row in played.rows("e3-sim")}
    files = played.path.glob("output/derived/e3-sim+*.jsonl")
    derived = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(rows) > 1
    assert {row["query_id"] for row in derived} >= {*rows}
    for row in derived:
        first = rows[row["query_id"]]
        assert row["inputs"] == first["inputs"]
        assert row["query"] == first["query"] or option == "--rag-metamorphic"
        assert "simulated user" not in row["query"]


DIES = """
        if query.query_id == "sim_001#2" and not pathlib.Path("died").exists():
            pathlib.Path("died").touch()
            import os; os._exit(3)
"""


def test_what_was_said_is_on_the_disk_before_the_turn_is_asked(played: Suite, server: CountingServer) -> None:
    dying = PIPELINE.replace("    def answer(self, query):\n", f"    def answer(self, query):{DIES}")
    played.pytester.makepyfile(test_shop=dying)
    played.run("-n0", *by_model(played, server))
    assert (played.path / "died").exists()
    assert sum(server.calls.values()) == 1
    played.run("-n0", *by_model(played, server)).assert_outcomes(passed=3, skipped=3)
    assert sum(server.calls.values()) == 3


def test_a_turn_that_was_asked_something_else_is_asked_again(played: Suite) -> None:
    played.run("-n0").assert_outcomes(passed=3, skipped=3)
    asked(played)
    file = played.path / "output" / "c1-sim.jsonl"
    file.write_text(file.read_text().replace('"query":"two adults and a child, ', '"query":"three of us, '))
    played.run("-n0").assert_outcomes(passed=3, skipped=3)
    assert [query_id for query_id, _ in asked(played)] == ["sim_001#2", "sim_001#3"]
    assert "three of us" not in file.read_text()
