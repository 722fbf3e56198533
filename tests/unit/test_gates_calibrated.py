"""Gates on what people would say: what may be written, and that none is green without a calibration of that judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.evaluation.judges.calibration.agreement import (
    CalibrationSubject,
    JudgeScores,
    calibrate,
    save_calibration,
)
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, read_scored
from rag_harness.records.scores import Author, row_digest
from rag_harness.runs.gates import Gate, Verdict, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import read_gates
from rag_harness.runs.gates.evidence import PeoplesMean, corrections
from tests.unit.judges.calibration.runs import JUDGE, write_judged, write_run_file
from tests.unit.test_gates import Scores, gates

OURS = "e3: faithfulness~calibrated >= 0.8"


def fixed(value: float) -> PeoplesMean:
    return PeoplesMean(value, (value - 0.1, value + 0.05), "calibrated on 50 labels, λ = 0.83")


def verdict(text: str, values: Mapping[str, float | None], value: float = 0.85, lost: int = 0) -> Verdict:
    suites = {"e3": Scores(values, lost=lost)}
    return judge(parse_gate(text, 5), suites, correct=lambda gate, found: fixed(value))


@pytest.mark.parametrize("text", [OURS, "e3 : faithfulness ~ calibrated>=.8", "e3:faithfulness~calibrated >= 0.80"])
def test_what_may_be_written(text: str) -> None:
    assert parse_gate(text, 5) == Gate("e3", (), "faithfulness", ">=", 0.8, calibrated=True)
    assert str(parse_gate(text, 5)) == OURS


@given(gates, st.floats(0, 1))
def test_its_text_parses_back_to_it(gate: Gate, right: float) -> None:
    ours = Gate(gate.suite, gate.slice, gate.measure, gate.op, right, calibrated=True)
    assert parse_gate(str(ours), 3) == ours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "e3: faithfulness~corrected >= 0.8",
            "'~corrected' behind 'faithfulness' is unknown; write faithfulness~calib",
        ),
        ("e3: ~calibrated >= 0.8", "is no measure"),
        ("e3: p95(faithfulness~calibrated) >= 0.8", "is a mean, to be held against a number"),
        ("e3: faithfulness~calibrated >= e2", "is a mean, to be held against a number"),
        ("e3: faithfulness~calibrated >= baseline - 0.02", "is a mean, to be held against a number"),
    ],
)
def test_what_may_not(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_gate(text, 5)


def test_both_values_of_a_measure_may_be_gated() -> None:
    texts = [OURS, "e3: faithfulness >= 0.7", "e3: faithfulness~calibrated >= 0.75"]
    found = read_gates(texts, 5, ["e3"], lambda _: {})
    assert [str(gate) for gate in found] == ["e3: faithfulness~calibrated >= 0.75", "e3: faithfulness >= 0.7"]


@pytest.mark.parametrize(("value", "state"), [(0.85, "passed"), (0.8, "passed"), (0.79, "failed")])
def test_the_corrected_value_decides(value: float, state: str) -> None:
    found = verdict(OURS, {"a": 0.1, "b": 0.2}, value)
    assert (found.state, found.value, found.n) == (state, value, 2)


def test_its_line_says_by_what_it_was_corrected() -> None:
    (line,) = verdict_lines([verdict(OURS, {"a": 0.1, "b": 0.2})])
    assert line == (
        "passed      e3: faithfulness~calibrated >= 0.8   0.850 [0.75, 0.90]  n=2\n"
        "            calibrated on 50 labels, λ = 0.83"
    )


def test_a_lost_case_still_fails_it() -> None:
    found = verdict(OURS, {"a": 0.9}, 0.9, lost=1)
    assert found.state == "failed"
    assert found.reason == "calibrated on 50 labels, λ = 0.83, 1 case lost to a crash, so it cannot pass"


def test_without_calibrations_at_hand_it_fails() -> None:
    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9})})
    assert (found.state, found.value) == ("failed", None)
    assert found.reason == "cannot be calibrated: no calibration is at hand here"


def test_it_is_judged_on_all_cases_or_not_at_all() -> None:
    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9}, total=2)}, correct=lambda gate, values: fixed(0.9))
    assert found.state == "not judged"


Labelled = Callable[..., dict[str, float]]


def write_labelled(output: Path, judges: Path, author: Author) -> dict[str, float]:
    """Leave a judged run and a calibration by the labels of a third of it; return the run's values."""
    truth = write_judged(output)
    scored = read_scored(output, "faithfulness")
    items = sorted(truth)[::3]
    labels = [AnswerLabel(*item, float(truth[item])) for item in items]
    digests = {item: row_digest(scored.rows[item]) for item in items}
    subject = CalibrationSubject("mine", "faithfulness", 1, author, "2026-01-01")
    save_calibration(judges, calibrate(subject, labels, JudgeScores(scored.scores, digests=digests)))
    return {query: value for (_, query), value in scored.scores.items()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Author], tuple[Path, dict[str, float]]]:
    """Return what leaves such a run and such a calibration in a folder: calibrating is most of the time."""

    def write(author: Author) -> tuple[Path, dict[str, float]]:
        folder = tmp_path_factory.mktemp("labelled")
        return folder, write_labelled(folder / "output", folder / "judges", author)

    return cache(write)


@pytest.fixture
def labelled(tmp_path: Path, written: Callable[[Author], tuple[Path, dict[str, float]]]) -> Labelled:
    """Return what copies them into the folder of a test, and returns the run's values."""

    def copy(author: Author = JUDGE) -> dict[str, float]:
        folder, values = written(author)
        copytree(folder, tmp_path, dirs_exist_ok=True)
        return dict(values)

    return copy


def judged(output: Path, judges: Path, values: Mapping[str, float], text: str = OURS) -> Verdict:
    return judge(parse_gate(text, 5), {"e3": Scores(values)}, correct=corrections(judges, output))


def test_a_run_is_corrected_by_the_calibration_of_its_judge(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5")
    assert found.state == "passed"
    assert found.n == 60
    assert found.reason.startswith("calibrated on 20 labels, λ = ")
    # People say 1 of three quarters, and the judge is too strict.
    assert sum(values.values()) / 60 < 0.61
    assert found.value is not None
    assert 0.68 < found.value < 0.87


def test_each_bound_of_a_gate_with_evidence_holds_by_itself(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5 @95%")
    assert found.interval is not None
    assert found.bounds is not None
    assert found.interval[0] < found.bounds[0] < found.bounds[1] < found.interval[1]
    surer = judged(tmp_path / "output", tmp_path / "judges", values, "e3: faithfulness~calibrated >= 0.5 @97.5%")
    assert surer.bounds == pytest.approx(surer.interval)


def test_cases_without_an_answer_count_as_they_are(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    whole, with_errors = (
        judged(tmp_path / "output", tmp_path / "judges", more) for more in (values, values | {"failed": 0.0})
    )
    assert whole.value is not None
    assert with_errors.value == pytest.approx(whole.value * 60 / 61)


def test_another_judge_s_calibration_is_refused(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled(Author("embedded", "minilm", "older"))
    found = judged(tmp_path / "output", tmp_path / "judges", values)
    assert found.state == "failed"
    assert "mine.json is of another judge: revision older, here 1a2b" in found.reason
    assert "rag-harness judge calibrate LABELS.jsonl" in found.reason


def test_no_calibration_fails_with_the_command(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    found = judged(tmp_path / "output", tmp_path / "nowhere", values)
    assert found.state == "failed"
    assert "no calibration of faithfulness" in found.reason
    assert all(len(line) <= 100 for line in found.line().splitlines())


@pytest.mark.parametrize(
    ("authors", "message"), [([], "no judge has scored"), ([JUDGE, Author("b", "", "")], "2 judges")]
)
def test_scores_are_of_one_judge_of_this_run(
    tmp_path: Path, labelled: Labelled, authors: list[Author], message: str
) -> None:
    values = labelled()
    scores = tmp_path / "output" / "scores" / "e3.jsonl"
    first = json.loads(scores.read_text().splitlines()[0])
    scores.write_text(scores.read_text() + json.dumps(first | {"judge": "b", "model": "", "revision": ""}) + "\n")
    write_run_file(tmp_path / "output", {"e3": authors})
    found = judged(tmp_path / "output", tmp_path / "judges", values)
    assert found.state == "failed"
    assert message in found.reason


def test_a_damaged_calibration_is_named(tmp_path: Path, labelled: Labelled) -> None:
    values = labelled()
    (tmp_path / "judges" / "bad.json").write_text("{}")
    assert "bad.json: no calibration of a judge" in judged(tmp_path / "output", tmp_path / "judges", values).reason


def test_what_corrects_may_refuse_only_with_a_reason() -> None:
    def refuse(gate: Gate, values: Mapping[str, float]) -> PeoplesMean:
        raise DataError("too few labels")

    found = judge(parse_gate(OURS, 5), {"e3": Scores({"a": 0.9})}, correct=refuse)
    assert (found.state, found.reason) == ("failed", "cannot be calibrated: too few labels")
