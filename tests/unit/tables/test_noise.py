"""Where the noise of repeats is, and a promise over repeats as tables count it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.evaluation.measures import measure_named
from rag_harness.pipelines.experiments import result_path, scores_path
from rag_harness.records.manifest import read_manifest, repeat_fingerprint, repeat_name
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs.gates import GateRules, Verdict, judge, parse_gate
from rag_harness.runs.gates.configuration import unit_of
from rag_harness.stats import clopper_pearson
from rag_harness.stats.agreement import Components
from rag_harness.tables.conversations import answers_said, over_repeats
from rag_harness.tables.gate_states import gates_state
from rag_harness.tables.noise import CONSTANT, JUDGE_TOO, MeasureNoise, Noise, noise_lines, noises
from rag_harness.tables.reader import read_tables
from rag_harness.tables.suite_table import CaseState, SuiteTable
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run
from tests.unit.tables.standing_tables import kinds, table

# Where the noise is, read from the files that a run leaves: known variances are found, and nothing is made up.

F = "faithfulness"
LLM, EMBEDDED = Author("fused", "gpt-x", "1"), Author("embedded", "embedded/alignment", "1")


def leave(folder: Path, values: npt.NDArray[np.float64], again: int | None = None, who: Author = LLM) -> None:
    """Leave a run with ``values`` of faithfulness by query, answer, judgement; ``again`` queries are judged J times."""
    queries, repeats, _ = values.shape
    first = [row.model_copy(update={"query_id": f"q{n}"}) for row in [make_row()] for n in range(queries)]
    write_run(folder, first, scores=lines_of("e3", values[:, 0], again, who))
    for repeat in range(2, repeats + 1):
        name = repeat_name("e3", repeat)
        again_asked = {"experiment": name, "fingerprint": print_of(repeat)}
        rows = [row.model_copy(update=again_asked) for row in first]
        write(result_path(folder, name), "".join(row.line() for row in rows).encode())
        scores = lines_of(name, values[:, repeat - 1], again, who)
        write(scores_path(folder, name), b"".join(score.line() for score in scores))


def print_of(repeat: int) -> str:
    return repeat_fingerprint("aaaa", repeat)


def write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def lines_of(name: str, values: npt.NDArray[np.float64], again: int | None, who: Author) -> list[ScoreLine]:
    digest = row_digest(make_row())
    return [
        ScoreLine(F, measure_named(F).version, name, f"q{n}", digest, "", who, float(value), repeat=turn)
        for n, said in enumerate(values)
        for turn, value in enumerate(said if again is None or n < again else said[:1])
    ]


def told(folder: Path, **settings: Any) -> Noise:
    wanted = [measure_named(name) for name in ("token_f1", F, "correct")]
    tables = read_tables(folder, lambda _: wanted)
    (found,) = noises(folder, read_manifest(folder), tables, Settings(**settings))
    return found


def made(q: int, r: int, j: int, spreads: tuple[float, float, float]) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(5)
    query, pipeline, judge = spreads
    noise = pipeline * rng.normal(size=(q, r, 1)) + judge * rng.normal(size=(q, r, j))
    return np.asarray(0.6 + query * rng.normal(size=(q, 1, 1)) + noise)


@pytest.mark.parametrize(("spreads", "buy"), [((0.3, 0.2, 0.2), "query"), ((0.2, 0.3, 0.2), "pipeline")])
def test_known_variances_are_found_within_10_per_cent(
    tmp_path: Path, spreads: tuple[float, float, float], buy: str
) -> None:
    leave(tmp_path, made(1500, 2, 2, spreads))
    (f, _) = told(tmp_path, repeats=2, judge_repeats=1, judge="fused").measures
    assert f.found is not None
    found = f.found.query, f.found.pipeline, f.found.judge
    assert found == pytest.approx([spread**2 for spread in spreads], rel=0.1)
    assert f.largest == buy
    assert f.rerun == pytest.approx(np.sqrt((spreads[1] ** 2 + spreads[2] ** 2) / 1500), rel=0.1)


@pytest.mark.parametrize(
    ("variances", "buy"),
    [((0.4, 1.1, 0), "query"), ((0.4, 1.3, 0), "pipeline"), ((0.2, 0, 1.1), "query"), ((0.2, 0, 1.3), "judge")],
)
def test_more_is_bought_of_what_the_error_still_owes_most_to(variances: tuple[float, ...], buy: str) -> None:
    """With 3 answers of each query and 2 judgements of each, a third and a sixth of two variances are left."""
    query, pipeline, judge = variances
    found = Components(10, 3, 2, 0.5, query, pipeline, judge, {})
    assert MeasureNoise(F, found).largest == buy


def test_a_judge_that_looked_again_at_some_answers_is_known_by_those(tmp_path: Path) -> None:
    values = made(1500, 2, 3, (0.3, 0.2, 0.2))
    leave(tmp_path, values, again=400)
    (f, _) = told(tmp_path, repeats=2, judge_repeats=2, judge="fused").measures
    assert f.found is not None
    assert (f.found.query, f.found.pipeline, f.found.judge) == pytest.approx((0.09, 0.04, 0.04), rel=0.12)
    assert (f.found.queries, f.found.reasons) == (1500, {})


def test_a_judge_asked_once_leaves_its_noise_with_the_pipeline_and_says_so(tmp_path: Path) -> None:
    leave(tmp_path, made(40, 3, 1, (0.3, 0.2, 0.1)))
    noise = told(tmp_path, repeats=3, judge="fused")
    said = "\n".join(noise_lines([noise]))
    assert "F: each answer was judged once (J = 1), so that pipeline holds the judge's noise too" in said
    assert "token_f1: no value differed" in said


def test_a_judge_that_computes_has_no_noise(tmp_path: Path) -> None:
    leave(tmp_path, made(40, 3, 1, (0.3, 0.2, 0.0)), who=EMBEDDED)
    (f, _) = told(tmp_path, repeats=3, judge="embedded").measures
    assert f.found is not None
    assert (f.found.judge, f.judge_computes, f.found.reasons) == (0.0, True, {})


def test_answers_and_judgements_that_are_computed_are_said_to_be(tmp_path: Path) -> None:
    leave(tmp_path, made(5, 1, 1, (0.3, 0.0, 0.0)), who=EMBEDDED)
    noise = told(tmp_path, repeats=3, judge="embedded", chat_base_url=EMBEDDED_URL)
    said = " ".join(noise_lines([noise]))
    assert said.startswith("e3: the embedded reader computes its answers")
    assert noise.reason.endswith(JUDGE_TOO)
    assert "%" not in said


@pytest.mark.parametrize(("answers", "why"), [(1, "answered once (R = 1)"), (3, CONSTANT)])
def test_where_nothing_can_vary_or_did_there_are_no_zeros(tmp_path: Path, answers: int, why: str) -> None:
    leave(tmp_path, np.full((5, answers, 1), 0.5))
    noise = told(tmp_path, repeats=answers, judge="fused")
    assert all(each.found is None and why in each.reason for each in noise.measures)
    assert not any("%" in line for line in noise_lines([noise]))


def test_one_answer_judged_again_knows_the_judge_alone(tmp_path: Path) -> None:
    leave(tmp_path, made(1000, 1, 3, (0.3, 0.2, 0.1)))
    (f, _) = told(tmp_path, repeats=1, judge_repeats=2, judge="fused").measures
    assert f.found is not None
    assert (f.found.query, f.found.pipeline, f.error, f.rerun) == (None, None, None, None)
    assert f.found.judge == pytest.approx(0.01, rel=0.1)
    assert "answered once (R = 1)" in f.found.reasons["query"]


def test_flaky_queries_are_those_right_in_some_answers(tmp_path: Path) -> None:
    """Whether an answer is right does not follow what a judge gave it, for the ground truth tells."""
    leave(tmp_path, made(3, 3, 1, (0.3, 0.2, 0.1)))
    for repeat, said in ((2, "a fortnight"), (3, "a month")):
        name = repeat_name("e3", repeat)
        texts = {"q0": said, "q2": "30 days"}
        rows = [make_row(query_id=f"q{n}", llm_answer=texts.get(f"q{n}", "Within 30 days.")) for n in range(3)]
        again = {"experiment": name, "fingerprint": print_of(repeat)}
        write(result_path(tmp_path, name), "".join(row.model_copy(update=again).line() for row in rows).encode())
    noise = told(tmp_path, repeats=3, judge="fused")
    assert [(each.query_id, each.right, each.answers) for each in noise.flaky] == [("q0", 1, 3)]
    assert "    q0  right in 1 of 3" in noise_lines([noise])
    assert noise.as_json()["flaky"] == [{"query_id": "q0", "right": 1, "of": 3}]


def test_where_nothing_tells_what_is_right_no_query_is_flaky_and_that_is_said(tmp_path: Path) -> None:
    rows = [make_row(query_id=f"q{n}", ground_truth="") for n in range(3)]
    write_run(tmp_path, [*rows, failed_row(query_id="q3", ground_truth="")])
    write(result_path(tmp_path, "e3+repeat2"), b"")
    said = noise_lines([told(tmp_path, repeats=2, judge="fused")])
    assert "  no answer was checked as right or wrong, so no query can be called flaky" in said


def test_answers_that_did_not_come_leave_their_query_out_and_are_counted(tmp_path: Path) -> None:
    leave(tmp_path, made(6, 2, 1, (0.3, 0.2, 0.1)))
    file = result_path(tmp_path, "e3+repeat2")
    kept = file.read_text().splitlines(keepends=True)[2:]
    failed = failed_row(query_id="q0", experiment="e3+repeat2", fingerprint=print_of(2))
    file.write_text("".join([failed.line(), *kept]))  # q0 failed, q1 was not run
    noise = told(tmp_path, repeats=2, judge="fused")
    assert noise.missing == 2
    found = noise.measures[0].found
    assert found is not None
    assert found.queries == 4
    assert "2 answers after the first did not come" in " ".join(noise_lines([noise]))


def test_rows_of_another_pipeline_are_not_taken_for_repeats(tmp_path: Path) -> None:
    leave(tmp_path, made(4, 2, 1, (0.3, 0.2, 0.1)))
    file = result_path(tmp_path, "e3+repeat2")
    file.write_text(file.read_text().replace(print_of(2), "0000"))
    assert told(tmp_path, repeats=2, judge="fused").missing == 4


def test_a_query_that_some_answer_has_no_score_of_is_left_out_and_counted(tmp_path: Path) -> None:
    leave(tmp_path, made(6, 2, 1, (0.3, 0.2, 0.1)))
    file = scores_path(tmp_path, "e3+repeat2")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    noise = told(tmp_path, repeats=2, judge="fused")
    assert noise.measures[0].left_out == 1
    assert "  F: 1 queries lack a value of some answer, and are left out" in noise_lines([noise])


def test_what_the_answers_after_the_first_cost_is_said(tmp_path: Path) -> None:
    leave(tmp_path, made(4, 2, 1, (0.3, 0.2, 0.1)))
    file = result_path(tmp_path, "e3+repeat2")
    rows = [
        make_row(query_id=f"q{n}", experiment="e3+repeat2", fingerprint=print_of(2), cost_usd=0.5) for n in range(4)
    ]
    file.write_text("".join(row.line() for row in rows))
    noise = told(tmp_path, repeats=2, judge="fused")
    assert noise.cost_usd == 2.0
    assert noise_lines([noise])[0].startswith("e3: 2 answers to each query; those after the first cost $2.00")


def test_without_the_option_nothing_is_said(tmp_path: Path) -> None:
    leave(tmp_path, made(4, 1, 1, (0.3, 0.2, 0.1)))
    tables = read_tables(tmp_path, lambda _: [measure_named(F)])
    assert noises(tmp_path, read_manifest(tmp_path), tables, Settings()) == []


def test_the_lines_fit_100_columns_whatever_is_said(tmp_path: Path) -> None:
    leave(tmp_path, made(40, 3, 2, (0.3, 0.2, 0.1)), again=20)
    lines = noise_lines([told(tmp_path, repeats=3, judge_repeats=1, judge="fused")])
    assert max(map(len, lines)) <= 100
    assert any("buy more queries for F" in line for line in lines)


# A suite as a promise over repeats counts it: one value a case, and none where an answer is missing.

LABELS = kinds(a=2, b=2)
Values = Sequence[float | None]


def suite(*answers: Values, measure: str = "token_f1") -> SuiteTable:
    """Return a table whose cases have so many answers."""
    labels = kinds(a=len(answers[0]) - len(answers[0]) // 2, b=len(answers[0]) // 2)
    first, *later = [table(labels, **{measure: each}) for each in answers]
    first.later = lambda: later
    return first


def verdict(text: str, rules: GateRules | None = None, **tables: SuiteTable) -> Verdict:
    gate = parse_gate(text, 5)
    return judge(gate, over_repeats(gate, tables), unit=unit_of(gate), rules=rules)


def values(text: str, found: SuiteTable) -> dict[str, float]:
    gate = parse_gate(f"e3: {text} >= 0", 5)
    return dict(over_repeats(gate, {"e3": found})["e3"].values(gate.measure, {}))


THREE = suite([1, 1, 0.6, 0], [1, 0.5, 1, 0.2], [1, 0.7, 0.2, 0.1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass^3(token_f1)", [1, 0, 0, 0]),
        ("pass^2(token_f1)", [1, 0, 0, 0]),
        ("pass^1(token_f1)", [1, 1 / 3, 1 / 3, 0]),
        ("pass^3(token_f1>=0.5)", [1, 1, 0, 0]),
        ("pass^3(token_f1>0.5)", [1, 0, 0, 0]),
        ("pass^2(token_f1>0.5)", [1, 1 / 3, 1 / 3, 0]),
        ("pass^3(token_f1<=0.2)", [0, 0, 0, 1]),
        ("pass^3(token_f1<0.2)", [0, 0, 0, 0]),
        ("worst_of_3(token_f1)", [1, 0.5, 0.2, 0]),
        ("worst_of_2(token_f1)", [1, (0.5 + 0.5 + 0.7) / 3, (0.2 + 0.2 + 0.6) / 3, 0.1 / 3]),
        ("flip_rate(token_f1)", [0, 2 / 3, 2 / 3, 0]),
        ("flip_rate(token_f1>=0.5)", [0, 0, 2 / 3, 0]),
    ],
)
def test_a_case_has_one_value(text: str, expected: list[float]) -> None:
    assert [*values(text, THREE).values()] == pytest.approx(expected)


def test_where_lower_is_better_the_best_is_0_and_the_worst_is_the_highest() -> None:
    found = suite([0, 1], [0, 0], measure="error_rate")
    assert [*values("pass^2(error_rate)", found).values()] == [1, 0]
    assert [*values("worst_of_2(error_rate)", found).values()] == [0, 1]
    slow = suite([1000.0, 2000.0], [3000.0, 2000.0], measure="total_ms")
    assert [*values("worst_of_2(total_ms)", slow).values()] == [3000, 2000]
    assert [*values("pass^2(total_ms<=2500)", slow).values()] == [0, 1]


def test_what_equals_the_limit_but_for_rounding_is_equal() -> None:
    assert [*values("pass^1(token_f1>=0.3)", suite([0.1 + 0.2, 0.3 - 1e-13, 0.3 - 1e-9])).values()] == [1, 1, 0]
    assert [*values("pass^1(token_f1)", suite([1 - 1e-13, 1 - 1e-9])).values()] == [1, 0]


def test_a_gate_weighs_cases_and_not_answers() -> None:
    """All answers to a case are alike: 40 cases tell no more because each was asked 5 times."""
    right = [float(n < 36) for n in range(40)]
    found = verdict("e3: pass^3(token_f1) >= 0.8 @95%", e3=suite(*[right] * 5))
    assert (found.value, found.n) == (0.9, 40)
    assert found.interval == pytest.approx(clopper_pearson(36, 40))
    assert verdict("e3: pass^3(token_f1) >= 0.8 @95%", e3=suite(right)).state == "failed"  # fewer than 3 answers


@pytest.mark.parametrize(
    ("tries", "cases"),
    [(3, 40), (5, 200), *(pytest.param(*each, marks=pytest.mark.long) for each in ((5, 40), (3, 200)))],
)
def test_verdicts_are_seldom_wrong_where_answers_to_a_case_are_alike(
    tries: int, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chances of Beta(0.5, 0.5): most cases are sure or hopeless. The mean of chance^3 is 5/16, the threshold.

    At 5 % each, 100 runs give 5 of each verdict, and more than 12 with a chance of 0.2 %. benchmarks/promises.py has
    more populations and runs.
    """
    # How many cases more would settle a gate: most of the time, and no reason is looked at.
    monkeypatch.setattr("rag_harness.runs.gates.evidence._needed", lambda *_: None)
    rng, states = np.random.default_rng(1), []
    for _ in range(100):
        chances = rng.beta(0.5, 0.5, cases)
        answers = (rng.random((tries, cases)) < chances).astype(float)
        states.append(verdict("e3: pass^3(token_f1) >= 0.3125 @95%", e3=suite(*map(list, answers))).state)
    assert states.count("passed") <= 12
    assert states.count("failed") <= 12
    assert states.count("undecided") < 100


def test_a_verdict_on_these_cases_allows_for_other_answers() -> None:
    found = suite([1.0] * 8, [1.0] * 8)
    rules = GateRules(population="finite")
    bounded = verdict("e3: pass^2(token_f1) >= 0.9 @95%", rules, e3=found)
    assert bounded.state == "undecided"
    assert bounded.bounds == pytest.approx((0.05 ** (1 / 8), 1.0))
    assert verdict("e3: token_f1 >= 0.9 @95%", rules, e3=found).state == "passed"


def test_two_experiments_are_compared_case_by_case() -> None:
    worse = suite([1, 0, 0, 0], [1, 0.5, 1, 0.2], [1, 0.7, 0.2, 0.1])
    found = verdict("e3: pass^3(token_f1>=0.5) >= e2 + 0.1", e3=THREE, e2=worse)
    assert (found.value, found.state) == (0.5, "passed")
    assert found.threshold == pytest.approx(0.35)


def test_slices_are_of_the_same_cases() -> None:
    found = verdict("e3[kind=b]: pass^1(token_f1) >= 0.1", e3=THREE)
    assert found.value == pytest.approx(1 / 6)
    assert found.n == 2


def test_a_case_without_a_value_of_each_answer_is_left_out_and_counted() -> None:
    found = suite([1, None, None, 0], [1, 1, None, 0])
    assert values("pass^2(token_f1)", found) == {"q000": 1, "q003": 0}
    assert (
        verdict_of(found).reason
        == "1 could not be measured: 1 of 4 have no ground truth, 1 of 4 have no value of each answer"
    )


def verdict_of(found: SuiteTable) -> Verdict:
    return verdict("e3: pass^2(token_f1) >= 0.1", e3=found)


def test_what_could_not_be_measured_in_any_answer_could_not_be_measured() -> None:
    first, second = (table(LABELS, token_f1=[1, None, 1, 1]) for _ in range(2))
    for each in (first, second):
        each.columns = {"token_f1": replace(each.columns["token_f1"], unmeasured=frozenset({1}))}
    first.later = lambda: [second]
    gate = parse_gate("e3: pass^2(token_f1) >= 0.1", 5)
    assert over_repeats(gate, {"e3": first})["e3"].unmeasured("token_f1", {}) == 1
    assert "no value of each answer" not in verdict("e3: pass^2(token_f1) >= 0.1", e3=first).reason


def test_an_answer_that_did_not_come_lets_the_gate_fail() -> None:
    found = suite([1.0] * 4, [1.0] * 4)
    found.later()[0].states[2] = CaseState.LOST
    assert verdict_of(found).state == "failed"
    assert verdict_of(found).reason == "1 case without all answers, so it cannot pass"
    found.states[2] = CaseState.LEFT_OUT  # it was not selected, so nobody has waited for it
    gate = parse_gate("e3: pass^2(token_f1) >= 0.1", 5)
    assert over_repeats(gate, {"e3": found})["e3"].lost_of({}) == 0


def test_fewer_answers_than_the_promise_has_leave_no_value() -> None:
    """An earlier run left the suite, and asked fewer times."""
    found = verdict("e3: pass^3(token_f1) >= 0.1", e3=suite([1, 1], [1, 1]))
    assert found.reason == "no case has a value of token_f1: 2 of 2 have fewer than 3 answers"


def test_cases_move_by_any_of_their_answers() -> None:
    mine, theirs = (suite([1, 1, 1, 1], [1, 1, 1, 1]) for _ in range(2))
    for each in (mine, theirs):
        for answer in (each, *each.later()):
            answer.totals.outcomes = np.array([1, 2, 3, 4])
    theirs.later()[0].totals.outcomes = np.array([1, 2, 9, 0])
    found = verdict("e3: pass^2(token_f1) >= e2", e3=mine, e2=theirs)
    assert found.reason.startswith("of 4 cases, 2 can move")


def test_a_failed_promise_names_the_case_that_broke_it() -> None:
    """The first answers are right; q001 is wrong when it is asked again."""
    said = {"gate": "e1: pass^2(token_f1) >= 0.9", "state": "failed", "value": 0.75, "threshold": 0.9, "n": 4}
    (failed,) = gates_state([said], {"e1": suite([1, 1, 1, 1], [1, 0, 1, 1])}, [], 10).failed
    assert failed.worst == "e1-q001"


def test_answers_are_counted_in_words() -> None:
    gate = parse_gate("e3: pass^2(token_f1) >= 0.9", 5)
    assert answers_said(gate, {"e3": THREE}) == "3 answers to each case"
    assert answers_said(gate, {"e3": suite([1])}) == "1 answer to each case"
    computed = suite([1])
    computed.later = lambda: [computed] * 2
    assert answers_said(gate, {"e3": computed}) == "3 answers to each case, computed and so all the same"
    assert answers_said(parse_gate("e3: token_f1 >= 0.9", 5), {"e3": THREE}) == ""
