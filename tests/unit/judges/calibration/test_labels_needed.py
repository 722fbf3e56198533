"""A promise of an error rate where the truth is known, and how many labels one needs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from rag_harness.evaluation.judges.calibration.confidence import (
    MANY_ANSWERS,
    AnswerSignals,
    LabelsNeeded,
    calibrated,
    labels_needed,
    read_confidence,
    split_shares,
)
from rag_harness.frontends.cli.judge import _more, run_reliability_calibrate
from rag_harness.studies.reliability_retrieval import Signals
from rag_harness.studies.reliability_verification import Checked, Confidence

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
