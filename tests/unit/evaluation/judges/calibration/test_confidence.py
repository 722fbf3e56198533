"""Fitting a confidence: what it finds, what it refuses, what it promises."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.judges.calibration.confidence import (
    MANY_ANSWERS,
    AnswerSignals,
    LabelsNeeded,
    brier,
    calibrated,
    expected_calibration_error,
    fitted,
    is_declined,
    is_right,
    labels_needed,
    read_confidence,
    save_confidence,
    split,
    split_shares,
)
from rag_harness.frontends.cli.judge import _lines, _more, run_reliability_calibrate
from rag_harness.stats.agreement import auroc
from rag_harness.studies.reliability_confidence import Confidence
from rag_harness.studies.reliability_retrieval import Signals
from rag_harness.studies.reliability_verification import Checked
from tests.unit.rows import make_chunk, make_row

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
script: Any = import_module("benchmarks.reliability")


def answers(n: int, strength: float = 2.0, seed: int = 0, declined: float = 0.2) -> list[AnswerSignals]:
    """Return answers whose relevance tells, by ``strength``, whether they are right; two a page."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        relevance, noise = rng.normal(size=2)
        is_so = bool(rng.random() < 1 / (1 + np.exp(-strength * relevance)))
        signals = {"relevance": float(relevance), "coverage": float(noise), "groundedness": None}
        found.append(
            AnswerSignals(
                f"q{number}", signals, bool(rng.random() < declined), is_so, f"p{number // 2}", 0.5, float(relevance)
            )
        )
    return found


def test_the_coefficients_are_sklearns() -> None:
    from sklearn.linear_model import LogisticRegression

    each = answers(300, declined=0)
    labels = [one.right for one in each]
    ours = fitted([one.signals for one in each], labels, {"relevance": 0, "coverage": 0}, l2=1.0)
    columns = np.array([[one.signals["relevance"], one.signals["coverage"]] for one in each], float)
    standard = (columns - columns.mean(0)) / columns.std(0)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(standard, labels)
    assert list(ours.coefficients.values()) == pytest.approx(theirs.coef_[0].tolist(), abs=1e-5)
    assert ours.intercept == pytest.approx(float(theirs.intercept_[0]), abs=1e-5)
    stated = [ours.probability(one.signals) for one in each]
    assert stated == pytest.approx(theirs.predict_proba(standard)[:, 1].tolist(), abs=1e-5)


def test_a_signal_that_speaks_the_wrong_way_is_left_out() -> None:
    each = answers(200, declined=0)
    labels = [one.right for one in each]
    assert "relevance" in fitted([one.signals for one in each], labels, {"relevance": 1}).coefficients
    assert fitted([one.signals for one in each], labels, {"relevance": -1}).coefficients == {}


def test_the_most_wrong_signal_goes_first_for_another_may_be_wrong_beside_it_alone() -> None:
    rng = np.random.default_rng(1)
    true, near = rng.normal(size=400), rng.normal(size=400) / 2
    each = [{"a": float(a), "b": float(a + more)} for a, more in zip(true, near, strict=True)]
    labels = [bool(rng.random() < 1 / (1 + np.exp(0.7 * one["a"] - 2 * one["b"]))) for one in each]
    free = fitted(each, labels, {"a": 0, "b": 0}).coefficients
    assert free["a"] < 0 < free["b"]
    assert fitted(each, labels, {"a": 1, "b": -1}).coefficients.keys() == {"a"}


def test_what_was_not_measured_says_nothing() -> None:
    model = fitted([{"x": 0.0}, {"x": 1.0}, {"x": None}, {}], [False, True, True, False], {"x": 1})
    assert model.probability({"x": None}) == model.probability({}) == model.probability({"x": model.means["x"]})


@pytest.mark.parametrize(("labels", "wanted"), [([True] * 3, 0.8), ([False] * 3, 0.2), ([], 0.5)])
def test_of_one_class_nothing_is_learned(labels: list[bool], wanted: float) -> None:
    assert fitted([{"x": float(n)} for n in range(len(labels))], labels, {"x": 1}).probability({"x": 9.0}) == (
        pytest.approx(wanted)
    )


def test_parts_share_no_page() -> None:
    parts = split(answers(100), (0.5, 0.25, 0.25))
    pages = [{one.cluster for one in part} for part in parts]
    assert [len(each) for each in pages] == [25, 13, 12]
    assert len(set().union(*pages)) == sum(map(len, pages))
    assert sum(map(len, parts)) == 100


def test_held_out_tells_right_from_wrong_and_shuffled_labels_nothing() -> None:
    each = answers(300)
    stated = script.held_out(each)
    assert stated.keys() == {one.query_id for one in each}
    answered = [one for one in each if not one.declined]
    assert auroc([one.right for one in answered], [stated[one.query_id] for one in answered]) > 0.75
    none = answers(600, strength=0.0)
    stated = script.held_out(none)
    assert 0.4 < auroc([one.right for one in none], [stated[one.query_id] for one in none]) < 0.6


def test_what_is_stated_of_a_page_does_not_hang_on_its_labels() -> None:
    each = answers(60)
    turned = [replace(one, right=not one.right) if one.cluster == "p3" else one for one in each]
    before, after = script.held_out(each), script.held_out(turned)
    assert [after[one.query_id] for one in each if one.cluster == "p3"] == [
        before[one.query_id] for one in each if one.cluster == "p3"
    ]
    assert before != after


def test_error_and_brier_by_hand() -> None:
    assert expected_calibration_error([1, 0, 1, 1], [0.9, 0.95, 0.2, 1.0]) == pytest.approx((0.85 + 0.8) / 4)
    assert brier([1, 0], [0.8, 0.4]) == pytest.approx((0.04 + 0.16) / 2)


def test_kept_and_read_again(tmp_path: Path) -> None:
    found = calibrated("r1", answers(400))
    assert found.promise.threshold is None or 0 <= found.promise.threshold <= 1
    assert found.weights["alpha"] == pytest.approx(1)
    save_confidence(tmp_path / "r1.json", found)
    again = read_confidence(tmp_path / "r1.json")
    assert again is not None
    signals = {"relevance": 1.0, "coverage": 0.0}
    assert again.answered is not None
    assert found.answered is not None
    assert again.answered.probability(signals) == pytest.approx(found.answered.probability(signals), abs=1e-5)
    assert read_confidence(tmp_path / "none.json") is None
    (tmp_path / "r1.json").write_text("{}")
    with pytest.raises(DataError, match="Make it again"):
        read_confidence(tmp_path / "r1.json")


def test_what_is_kept_has_six_digits(tmp_path: Path) -> None:
    found = calibrated("r1", answers(400))
    save_confidence(tmp_path / "r1.json", found)
    saved = json.loads((tmp_path / "r1.json").read_text())
    assert found.answered is not None
    assert saved["answered"]["intercept"] == round(found.answered.intercept, 6) != found.answered.intercept
    assert saved["experiment"] == "r1"


def test_what_was_found_is_shown() -> None:
    shown = list(_lines(calibrated("r1", answers(400))))
    assert shown[0] == "r1: 400 answers that gold calls right or not"
    assert shown[3].startswith("  as weights of the formula: alpha 1.00, ")


@pytest.mark.parametrize("lacks", ["mean", "spread"])
def test_an_edited_file_that_lacks_a_number_is_refused_when_it_is_read(lacks: str, tmp_path: Path) -> None:
    file = tmp_path / "r1.json"
    save_confidence(file, calibrated("r1", answers(400)))
    saved = json.loads(file.read_text())
    del saved["answered"][f"{lacks}s"]["relevance"]
    file.write_text(json.dumps(saved))
    with pytest.raises(DataError, match=f"the feature relevance has no {lacks}.*Make it again"):
        read_confidence(file)


def test_a_model_needs_enough_of_its_own() -> None:
    few = calibrated("r1", answers(100, declined=0.1))
    assert few.declined is None
    assert few.answered is not None
    assert few.answered.n >= 20
    assert few.tested.n == sum(not one.declined for one in split(answers(100, declined=0.1), (0.5, 0.25, 0.25))[2])
    none = calibrated("r1", answers(100, declined=1.0))
    assert none.answered is None
    assert none.promise.reason == "0 answers are too few to fit a confidence"


def test_few_data_promise_nothing() -> None:
    assert calibrated("r1", answers(60)).promise.threshold is None
    with pytest.raises(DataError, match="too few to calibrate: 40"):
        calibrated("r1", answers(39))


def test_rows_of_two_embedders_are_refused() -> None:
    one = answers(60)
    other = [replace(each, made_of={"embedder": "x"}) for each in one[:1]]
    with pytest.raises(DataError, match="2 different sets"):
        calibrated("r1", [*one, *other])


CASE = Case(
    Query("q1", "How long?"), qrels={"returns.md": 1}, evidence=(Evidence("returns.md", "within **45 days** of it"),)
)


def row(answer: str, **changes: Any) -> Any:
    return make_row(llm_answer=answer, **changes)


def test_right_is_an_evidence_quote_with_a_gold_page_cited() -> None:
    said = "Return it within 45 days of it [Source 1]."
    assert is_right(CASE, row(said))
    assert not is_right(CASE, row(said, citations=[]))
    assert not is_right(CASE, row(said, retrieved_chunks=[make_chunk("other.md#chunk_0")]))
    assert not is_right(CASE, row("Return it within 30 weeks [Source 1]."))


def test_declining_is_right_where_there_is_no_answer() -> None:
    unknown = {"abstained": True, "citations": []}
    assert not is_right(CASE, row("I don't know.", **unknown))
    assert is_right(Case(CASE.query, "negative", answerable=False), row("I don't know.", **unknown))
    assert not is_right(Case(CASE.query, "negative", answerable=False), row("45 days [Source 1]."))


def test_what_was_withheld_is_what_counts() -> None:
    kept = {"withheld": "within 45 days of it [Source 1]", "withheld_citations": [1]}
    held = row("I don't know.", abstained=True, citations=[], stages=[{"name": "decide", "ms": 0, "detail": kept}])
    assert not is_declined(held)
    assert is_right(CASE, held)


# A promise of an error rate where the truth is known, and how many labels one needs.

RISK = 0.05


def drawn(n: int, seed: int, steep: float = 8.0) -> list[AnswerSignals]:
    """Return answers that are right with a chance that grows with relevance, four a page; one in five is declined."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        relevance = float(rng.uniform(-1.0, 1.0))
        right = bool(rng.random() < chance(relevance, steep))
        found.append(
            AnswerSignals(
                f"q{number}", {"relevance": relevance}, bool(rng.random() < 0.2), right, f"p{number // 4}", None, 0.5
            )
        )
    return found


def chance(relevance: float, steep: float = 8.0) -> float:
    return float(1 / (1 + np.exp(-steep * relevance - 1)))


def risk_from(least: float) -> float:
    """Return the true share of wrong answers among those whose relevance, uniform up to 1, is ``least`` or more."""
    return float(np.mean([1 - chance(value) for value in np.linspace(least, 1.0, 400)]))


def test_what_is_promised_of_a_thousand_labels_holds_in_95_of_100_splits() -> None:
    """``benchmarks/promised_error.py`` does the same with 200 splits and a simulated model."""
    risk, promised, broken = 0.1, 0, 0
    for seed in range(20):
        saved = calibrated("r1", drawn(1_000, seed), risk, seed)
        if saved.promise.threshold is None or saved.answered is None:
            continue
        promised += 1
        reached = [
            value
            for value in np.linspace(-1, 1, 400)
            if saved.answered.probability({"relevance": float(value)}) >= saved.promise.threshold
        ]
        broken += risk_from(float(reached[0])) > risk
    assert promised >= 10
    assert broken <= 1  # 5 % of 20


def test_the_command_makes_the_promise_and_an_answer_says_whether_it_is_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rag_harness.evaluation.judges.calibration.confidence.read_labels", lambda *_: drawn(1_000, 1))
    file = tmp_path / "r1.json"
    run_reliability_calibrate(Namespace(output=[tmp_path], experiment="r1", risk=0.1, file=file))
    said = capsys.readouterr().out
    assert "at most 10% are wrong, at 95 %" in said
    assert "labelled answers more" not in said
    confidence = Confidence(read_confidence(file), lambda: {"experiment": "r1"})
    outcomes = {}
    for relevance in (0.95, -0.9):
        outcome = confidence.stated(0.5, Signals(relevance=relevance), Checked(), declined=False).decisions[1]
        outcomes[relevance] = outcome.name, outcome.outcome
    assert outcomes == {0.95: ("promise", "kept"), -0.9: ("promise", "not kept")}


def test_with_more_labels_than_it_names_there_is_a_promise_and_with_a_third_of_them_there_is_none() -> None:
    needed = labels_needed(drawn(4_000, 1), RISK)
    assert needed is not None
    assert needed.more == 0
    made = [
        sum(calibrated("r1", drawn(n, seed), RISK, seed).promise.threshold is not None for seed in range(10))
        for n in (2 * needed.labels, needed.labels // 3)
    ]
    assert made[0] >= 8
    assert made[1] <= 2


def test_the_numbers_by_hand() -> None:
    each = [
        AnswerSignals(f"q{number}", {"relevance": float(number % 10)}, False, number % 10 > 0, f"p{number}")
        for number in range(200)
    ]
    needed = labels_needed(each, RISK)
    assert needed is not None
    assert needed.tested == 59
    assert needed.wrong == 0
    # 50 answers choose the threshold; with 400 and more labels a quarter of all is tested, with fewer an eighth.
    share = needed.accepted / 50
    assert needed.labels == max(MANY_ANSWERS, int(np.ceil(59 / (share / 4) - 1e-9)))
    assert needed.more == needed.labels - 200


def test_where_too_many_are_wrong_at_each_confidence_no_number_would_do() -> None:
    each = [AnswerSignals(f"q{n}", {"relevance": n / 200}, False, n % 2 == 0, f"p{n}") for n in range(200)]
    assert labels_needed([one for one in each if not one.right], RISK) is None
    assert labels_needed([], RISK) is None


def test_it_is_said_in_words() -> None:
    said = _more(LabelsNeeded(0.754, 0, 6, 59, 2_006, 1_806), RISK)
    assert said.startswith("about 1,806 labelled answers more, 2,006 in all, would give it at confidence >= 0.754")
    assert "0 of 6 were wrong there" in said
    assert "59 are needed in the half that tests" in said
    assert _more(None, RISK).startswith("no number of labels would give it: at every confidence almost 5% or more")
    assert "did not bear it out" in _more(LabelsNeeded(0.7, 1, 60, 93, 900, 0), RISK)


@pytest.mark.parametrize(("n", "shares"), [(399, (0.5, 0.25, 0.25)), (400, (0.25, 0.5, 0.25))])
def test_with_many_labels_more_of_them_choose_and_test(n: int, shares: tuple[float, ...]) -> None:
    assert split_shares(n) == shares
    assert sum(shares) == 1
