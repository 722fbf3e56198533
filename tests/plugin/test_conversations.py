"""Conversations as a user runs them: turns as tests, what was said before, gates by turn, conversations as clusters."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Suite

PIPELINE = """
import pytest

class Echo:
    fingerprint = "1"

    def answer(self, query):
        said = [each.content for each in query.history]
        return f"{query.text} after {said}"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Echo()

@pytest.mark.rag_experiment("c1")
def test_it(rag_result):
    assert rag_result.ok
"""
TURN: dict[str, Any] = {"query": "How long?", "ground_truth": "45 days", "expect": [{"contains": "45 days"}]}


def talking(suite: Suite) -> Suite:
    suite.pytester.makepyfile(PIPELINE)
    suite.write_queries([{"conversation": f"c{n}", "turns": [TURN] * 3} for n in range(4)])
    return suite


@pytest.fixture
def talk(suite: Suite) -> Suite:
    return talking(suite)


GATES = (
    "c1[turn>=2]: expectations >= 0.9 @95%",
    "c1: expectations >= 0.6 @95%",
    "c1: conversation(all(expectations)) >= 0.1",
    "c1[turn>=2]: conversation(all(expectations)) >= 0.9",
    "c1: drift(expectations) >= 0.1",
)


@pytest.fixture(scope="module")
def judged(shared_suite: Suite) -> tuple[pytest.RunResult, Path]:
    """A run with gates over turns and over conversations, and where its results are."""
    options = [f"--rag-gate={gate}" for gate in GATES]
    return talking(shared_suite).run("-v", "--rag-output=judged", *options), shared_suite.path / "judged"


def test_each_turn_is_a_test_that_sees_what_was_said_before_it(judged: tuple[pytest.RunResult, Path]) -> None:
    result, output = judged
    result.assert_outcomes(passed=12, failed=1)  # a gate
    result.stdout.fnmatch_lines(["*[[]c1-c0#1[]]*", "*[[]c1-c0#2[]]*"])
    rows: dict[Any, Any] = {row["query_id"]: row for row in rows_of(output / "c1_standalone.jsonl")}
    assert rows["c0#1"]["llm_answer"] == "How long? after []"
    assert rows["c0#3"]["llm_answer"] == "How long? after ['How long?', '45 days', 'How long?', '45 days']"
    assert rows["c0#3"]["inputs"]["history"][1] == {"role": "assistant", "content": "45 days"}
    # 4 conversations stand behind 8 turns, and 4 do not tell as much as 8.
    result.stdout.fnmatch_lines(["*c1[[]turn>=2[]]: expectations >= 0.9 @95%*n=8 in 4 conversations"])


def test_a_changed_history_is_another_case(talk: Suite) -> None:
    talk.run().assert_outcomes(passed=12)
    talk.write_queries([{"conversation": f"c{n}", "turns": [{**TURN, "reply": "Long."}] * 3} for n in range(4)])
    talk.run().assert_outcomes(passed=12)
    rows: dict[Any, Any] = {row["query_id"]: row for row in talk.rows("c1_standalone")}
    assert "['How long?', 'Long.']" in rows["c1#2"]["llm_answer"]


def test_turns_count_as_cases_of_their_own_where_that_is_asked_for(talk: Suite) -> None:
    alone = talk.run("--rag-cluster=none", "--rag-gate=c1: expectations >= 0.2 @95%").stdout.str()
    assert "conversations" not in alone


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_turns_that_are_out_of_order_are_named_before_anything_is_asked(talk: Suite, workers: str) -> None:
    lines = [{"conversation": "c1", "turn": n, "query": "?"} for n in (1, 3)]
    talk.write_queries(json.loads(json.dumps(lines)))
    result = talk.run(workers)
    assert result.ret != 0
    assert "queries.jsonl:2: turn 3 of 'c1' comes without turn 2" in result.stderr.str() + result.stdout.str()
    assert not talk.rows("c1_standalone")


OWN = """
import json, os, pathlib
import pytest

class Counts:
    fingerprint = "1"

    def answer(self, query):
        with pathlib.Path("asked.jsonl").open("a") as file:
            file.write(json.dumps(query.query_id) + "\\n")
        if query.query_id in os.environ.get("FAILS", "").split():
            raise ValueError("the service is away")
        return f"{len(query.history)}: {query.text}"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Counts()

@pytest.mark.rag_experiment("c1")
def test_it(rag_result):
    assert rag_result.ok, rag_result.why
"""
TALKS: list[dict[str, Any]] = [
    {"conversation": f"c{n}", "turns": [{"query": f"q{turn}?", "ground_truth": "45 days"} for turn in range(1, 4)]}
    for n in range(4)
]


@pytest.fixture
def own(suite: Suite) -> Suite:
    suite.pytester.makepyfile(OWN)
    suite.write_queries(TALKS)
    return suite


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def asked(suite: Suite) -> list[str]:
    """Return what was asked since the last call, in its order."""
    file = suite.path / "asked.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def by_turn(suite: Suite, name: str = "c1-own") -> dict[str, Any]:
    rows = suite.rows(name)
    assert len({str(row["query_id"]) for row in rows}) == len(rows)
    return {str(row["query_id"]): row for row in rows}


def said(row: Any) -> list[str]:
    return [each["content"] for each in row["inputs"].get("history", ())]


ANSWERS = ["q1?", "0: q1?", "q2?", "2: q2?"]


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_with_own_history_each_turn_sees_the_answers_before_it(own: Suite, workers: str) -> None:
    own.run("--rag-history=own", workers).assert_outcomes(passed=12)
    rows = by_turn(own)
    assert {query_id: row["llm_answer"] for query_id, row in rows.items()} == {
        f"c{n}#{turn}": f"{2 * turn - 2}: q{turn}?" for n in range(4) for turn in (1, 2, 3)
    }
    assert all(said(rows[f"c{n}#3"]) == ANSWERS for n in range(4))
    assert "conversation" in rows["c0#1"]["inputs"]
    assert not own.rows("c1_standalone")
    assert len(asked(own)) == 12
    own.run("--rag-history=own", workers).assert_outcomes(passed=12)
    assert not asked(own)


def test_both_histories_are_two_experiments_that_one_marker_selects(own: Suite) -> None:
    result = own.run("-v", "--rag-history=both", "--rag-gate=c1-own: error_rate <= 0", "-k", "c0")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*[[]c1-c0#1[]]*", "*[[]c1-own-c0#1[]]*"])
    assert said(by_turn(own, "c1_standalone")["c0#2"]) == ["q1?", "45 days"]
    assert said(by_turn(own)["c0#2"]) == ["q1?", "0: q1?"]


def test_other_histories_are_no_rivals_and_a_gate_that_compares_them_says_so(own: Suite) -> None:
    gate = "--rag-gate=c1-own: token_f1 <= c1"
    result = own.run("--rag-history=both", gate, "--rag-sections=all")
    result.stdout.fnmatch_lines(
        ["*token_f1 <= c1*", "*not the same questions: c1-own had its own*", "*answers, c1 had the reference replies*"]
    )
    suites = json.loads((own.path / "output" / "run.json").read_text())["suites"]
    assert {name: suite["history"] for name, suite in suites.items()} == {"c1": "gold", "c1-own": "own"}
    said = result.stdout.str()
    assert "c1 - c1-own" not in said
    assert "c1-own - c1" not in said


def test_an_experiment_may_be_named_with_its_own_history_and_selected_by_its_marker(own: Suite) -> None:
    own.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.e1
        @pytest.mark.rag_experiment("e1", "e1-own")
        def test_it(rag_result):
            assert rag_result.ok
        """
    )
    own.run("-m", "e1").assert_outcomes(passed=24)
    assert {len(said(row)) for row in by_turn(own, "e1-own").values()} == {0, 2, 4}
    assert said(by_turn(own, "e1-own")["c0#2"])[1] != "45 days"
    for file in own.path.glob("test_*.py"):
        file.unlink()
    own.run("--rag-run=e1-own", "--rag-output=brought").assert_outcomes(passed=12)
    own.run("--rag-run=e1", "--rag-history=own", "--rag-output=named").assert_outcomes(passed=12)
    assert (own.path / "named" / "e1-own.jsonl").exists()


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_a_turn_that_is_selected_alone_is_asked_after_those_before_it(own: Suite, workers: str) -> None:
    file = next(own.path.glob("test_*.py")).name
    nodes = [f"{file}::test_it[c1-own-{turn}]" for turn in ("c1#3", "c2#2")]
    own.run("--rag-history=own", *nodes, workers).assert_outcomes(passed=2)
    assert sorted(asked(own)) == ["c1#1", "c1#2", "c1#3", "c2#1", "c2#2"]
    rows = by_turn(own)
    assert said(rows["c1#3"]) == ANSWERS
    assert rows.keys() == {"c1#1", "c1#2", "c1#3", "c2#1", "c2#2"}  # what was paid for is kept
    own.run("--rag-history=own", workers).assert_outcomes(passed=12)
    assert len(asked(own)) == 7


def test_a_conversation_goes_on_at_the_first_turn_that_is_missing(own: Suite) -> None:
    own.run("--rag-history=own").assert_outcomes(passed=12)
    asked(own)
    file = own.path / "output" / "c1-own.jsonl"
    file.write_text("".join(line for line in file.read_text().splitlines(True) if '"c1#2"' not in line))
    own.run("--rag-history=own", "-n0").assert_outcomes(passed=12)
    assert asked(own) == ["c1#2", "c1#3"]


def test_a_turn_whose_answer_is_another_one_now_is_no_history_of_what_was_asked_after_it(own: Suite) -> None:
    own.run("--rag-history=own").assert_outcomes(passed=12)
    file = own.path / "output" / "c1-own.jsonl"
    changed = [{**row, "llm_answer": "Never."} if row["query_id"] == "c1#1" else row for row in rows_of(file)]
    file.write_text("".join(json.dumps(row) + "\n" for row in changed))
    asked(own)
    own.run("--rag-history=own").assert_outcomes(passed=12)
    assert asked(own) == ["c1#2", "c1#3"]
    assert said(by_turn(own)["c1#3"])[:2] == ["q1?", "Never."]


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_turns_after_one_that_failed_see_what_a_user_sees(
    own: Suite, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("FAILS", "c1#2")
    own.run("--rag-history=own", workers).assert_outcomes(passed=11, failed=1)
    row = by_turn(own)["c1#3"]
    assert row["inputs"]["history"][3] == {
        "role": "assistant",
        "content": "Sorry, something went wrong. Please ask again.",
        "failed": True,
    }
    # A turn that is mended changes what is asked after it.
    monkeypatch.delenv("FAILS")
    asked(own)
    own.run("--rag-history=own", workers).assert_outcomes(passed=12)
    assert asked(own) == ["c1#2", "c1#3"]
    assert said(by_turn(own)["c1#3"]) == ANSWERS


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_turns_after_one_that_failed_may_be_left_out(own: Suite, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    monkeypatch.setenv("FAILS", "c1#1")
    own.set_table("settings", failed_turn="skip")
    result = own.run("--rag-history=own", "--rag-gate=c1-own: error_rate <= 0.5", "-rs", workers)
    result.assert_outcomes(passed=9, failed=2, skipped=2)  # the turn, and the gate
    assert "c1#2" not in by_turn(own)
    result.stdout.fnmatch_lines(
        [
            "*not run: 2 trials behind turns without an answer; the first because turn 1 failed: *the service is away*",
            "SKIPPED*not run: turn 1 failed: *",
            "failed      c1-own: error_rate <= 0.5",
            "*cannot be judged: not run: 2 trials, the first because turn 1 failed: *",
        ]
    )


def test_repeats_of_a_conversation_go_on_from_their_own_answers(own: Suite) -> None:
    own.pytester.makepyfile(OWN.replace("{len(query.history)}:", "{len(asked_so_far())}:") + SO_FAR)
    own.run("--rag-history=own", "--rag-repeats=2", "-n0").assert_outcomes(passed=12)
    again = {str(row["query_id"]): row for row in own.rows("derived/c1-own+repeat2")}
    assert len(again) == 12
    for rows in (by_turn(own), again):
        assert said(rows["c1#3"])[1::2] == [rows["c1#1"]["llm_answer"], rows["c1#2"]["llm_answer"]]
    assert said(again["c1#3"]) != said(by_turn(own)["c1#3"])
    assert len(asked(own)) == 24
    own.run("--rag-history=own", "--rag-repeats=2", "-n2").assert_outcomes(passed=12)
    assert not asked(own)


SO_FAR = """

def asked_so_far():
    return pathlib.Path("asked.jsonl").read_text().splitlines()
"""


def test_whole_conversations_are_asked_in_random_order_until_gates_are_settled(own: Suite) -> None:
    own.write_queries([{**talk, "conversation": f"d{n}"} for n in range(10) for talk in TALKS[:1]])
    gate = "--rag-gate=c1-own: error_rate <= 0.6 @95%"
    result = own.run("--rag-history=own", "--rag-stop-early", "--rag-concurrency=1", gate, "-rs")
    result.stdout.fnmatch_lines(["*settled after 6 of 10 conversations, in random order, 95 % sure*"])
    turns = asked(own)
    assert 18 <= len(turns) < 30  # of four conversations that were begun ahead, all turns are asked
    begun = [each.partition("#")[0] for each in turns if each.endswith("#1")]
    assert begun != sorted(begun)
    assert all(
        [each for each in turns if each.startswith(f"{one}#")] == [f"{one}#{n}" for n in (1, 2, 3)] for one in begun[:6]
    )


def test_what_cuts_conversations_in_pieces_is_refused(own: Suite) -> None:
    result = own.run("--rag-history=own", "-n2", "--dist=worksteal")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--dist=worksteal*conversation*"])
    assert not asked(own)


def test_a_turn_that_is_run_again_has_the_history_that_it_had(own: Suite) -> None:
    own.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.rag_experiment("e3-own")
        def test_it(rag_result):
            assert rag_result.ok
        """
    )
    options = ("--rag-attribute", "--rag-metamorphic", "--rag-metamorphic-cases=0", "--rag-measures=faithfulness")
    own.run(*options).assert_outcomes(passed=12)
    derived = [row for file in own.path.glob("output/derived/*.jsonl") for row in rows_of(file)]
    rows = by_turn(own, "e3-own")
    as_it_was = [row for row in derived if not row["experiment"].endswith("+gold_history")]
    of_both = {"e3-own+no_context", "e3-own+capitals"}  # an attribution and a metamorphic check
    assert of_both <= {row["experiment"] for row in as_it_was if row["inputs"].get("history")}
    assert all(said(row) == said(rows[row["query_id"]]) for row in as_it_was)


def test_a_gate_over_whole_conversations_counts_conversations(judged: tuple[pytest.RunResult, Path]) -> None:
    result, _ = judged
    # The first turn of each has no history to repeat, so it lacks what is expected; the later ones have it.
    result.stdout.fnmatch_lines_random(
        [
            "failed *c1: conversation(all(expectations)) >= 0.1*0.000*n=4 conversations",
            "passed *c1[[]turn>=2[]]: conversation(all(expectations)) >= 0.9",
            "*1.000 [[]0.40, 1.00[]]  n=4 conversations",
            "passed *c1: drift(expectations) >= 0.1*0.500*n=4 conversations",
        ]
    )


def test_a_gate_over_conversations_is_refused_where_there_are_none(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3: conversation(all(expectations)) >= 0.1")
    assert result.ret == 4
    assert "e3 has no conversations" in result.stderr.str()


def test_a_run_with_turns_ends_with_a_measure_by_turn(judged: tuple[pytest.RunResult, Path]) -> None:
    result, output = judged
    result.stdout.fnmatch_lines(["turns    c1  expectations by turn  1 .00  2 1.00  3 1.00  +0.50 a turn*"])
    summary = json.loads((output / "summary.json").read_text())
    assert summary["c1"]["drift"]["expectations"]["slope"] == pytest.approx(0.5)
    assert summary["c1"]["by_turn"]["expectations"]["3"]["n"] == 4


def test_a_run_without_turns_says_nothing_of_them(suite: Suite) -> None:
    assert "by turn" not in suite.run().stdout.str()
    assert "by_turn" not in (suite.path / "output" / "summary.json").read_text()


def test_measures_of_turns_are_in_the_tables_of_a_run(talk: Suite) -> None:
    kinds = ("first", "correction", "underspecified")
    turns = [{**TURN, "metadata": {"turn_kind": kind}} for kind in kinds]
    talk.write_queries([{"conversation": f"c{n}", "turns": turns} for n in range(4)])
    names = ("retention", "correction", "asks_back")
    result = talk.run(f"--rag-measures={','.join(names)}", "--rag-gate=c1[turn_kind=correction]: correction >= 0.5")
    result.assert_outcomes(passed=12)
    summary = json.loads((talk.path / "output" / "summary.json").read_text())["c1"]
    # The echo says what was said before, and with it what is right.
    assert summary["correction"] == 1.0
    assert {name: [*summary["by_turn"].get(name, {})] for name in names} == {
        "retention": [],  # it also asks how long, and whether the user has said that words do not tell
        "correction": ["2"],
        "asks_back": [],
    }


CAUSES = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

PAGES = {"tents.md": "The Ridge tent costs EUR 18 a day.", "lamps.md": "A lamp costs EUR 7."}

class Finds:
    fingerprint = "1"

    def answer(self, query):
        # It searches for the words of the turn alone, and believes what was said before.
        found = [name for name in PAGES if name[:4] in query.text.lower()]
        hits = tuple(Hit(Chunk(f"{name}#0", name, PAGES[name]), 1.0, n) for n, name in enumerate(found, 1))
        wrong = any("seven" in each.content for each in query.history if each.role == "assistant")
        wrong = wrong or "seven" in query.text
        text = "It is seven." if wrong else PAGES[found[0]] if found else "I don't know."
        return PipelineOutput(Answer(text, abstained=not found and not wrong), hits, hits)

def build(parts):
    from rag_harness import Experiment
    pipeline = Finds()
    chunks = [Chunk(f"{name}#0", name, text) for name, text in PAGES.items()]
    return Experiment("finds", pipeline, chunks=lambda: chunks)
"""


def test_causes_of_turns_are_told_apart(own: Suite) -> None:
    """One turn says too little to be found, another is found and follows an earlier wrong answer."""
    package = own.path / "finder-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: finder\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[rag_harness.pipelines]\nfinds = finder:build\n")
    (own.path / "finder.py").write_text(CAUSES)
    for page, text in {"tents.md": "The Ridge tent costs EUR 18 a day.", "lamps.md": "A lamp costs EUR 7."}.items():
        (own.path / "kb" / page).write_text(f"# Page\n\n{text}\n")
    tent = {"ground_truth": "EUR 18 a day", "evidence": [{"filename": "tents.md", "quote": "costs EUR 18 a day"}]}
    gold = {**tent, "context_reference": ["tents.md"]}
    own.write_queries(
        [
            {
                "conversation": "short",
                "turns": [{"query": "Which tents are there?", **gold}, {"query": "how much?", **gold}],
            },
            {
                "conversation": "misled",
                "turns": [
                    {"query": "Do tents cost seven?", "ground_truth": "No.", "context_reference": ["tents.md"]},
                    {"query": "What do tents cost?", **gold},
                ],
            },
        ]
    )
    own.pytester.makepyfile("import pytest\n\n@pytest.mark.rag_experiment('finds')\ndef test_it(rag_result): pass\n")
    result = own.run("--rag-history=both", "--rag-attribute", "--rag-profile=mock")
    result.assert_outcomes(passed=8)
    lines = [json.loads(line) for line in (own.path / "output" / "causes.jsonl").read_text().splitlines()]
    found = {
        (line["experiment"], line["query_id"]): (line["cause"], line["detail"], line["repaired_by"]) for line in lines
    }
    assert found["finds", "short#2"] == ("Retrieval Miss", "lost the subject", "+standalone")
    assert found["finds-own", "misled#2"] == ("Logic Failure", "lost in history", "+gold_history")
    assert ("finds", "misled#2") not in found
    said = own.pytester.run(sys.executable, "-m", "rag_harness", "explain", "output", "finds-own-misled#2").stdout.str()
    assert "with the reference replies before it, it is right" in said
