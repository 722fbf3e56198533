"""Where the noise is, read from the files that a run leaves: known variances are found, and nothing is made up."""

from __future__ import annotations

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
from rag_harness.stats.agreement import Components
from rag_harness.tables.noise import CONSTANT, JUDGE_TOO, MeasureNoise, Noise, noise_lines, noises
from rag_harness.tables.reader import read_tables
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run

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
