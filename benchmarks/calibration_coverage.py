"""How often does the interval of a corrected mean hold the mean that people gave to everything?

    python benchmarks/calibration_coverage.py PATH [draws]

PATH is the folder or file of MTRAG's human evaluation (reference_subset_with_human_evaluations.json): 477 answers in 20
conversations, their faithfulness rated 1 to 4 by three people (the mean, scaled to 0 … 1), and RAGAS' faithfulness with
a GPT judge (rl_f) as the judge's score. Each draw takes labels, and the judge's scores of the other answers, and asks
whether a nominal 95 % interval holds the mean of all 477 ratings. Shuffled: the judge's scores, dealt out at random.

At the end the same of made-up verdicts, 0 or 1, most of them 1, with a judge that follows them and 200 answers more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.stats import Interval
from rag_harness.stats.prediction import ppi_mean

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Design = Callable[["Answers", np.random.Generator], tuple[Places, Places]]
"""Picks the places of the labelled answers and of those that only the judge has seen."""
RESAMPLES = 1000
Z = NormalDist().inv_cdf(0.975)
FILE = "reference_subset_with_human_evaluations.json"


class Answers(NamedTuple):
    """Ratings of people, scores of the judge, and the conversation of each answer."""

    human: Floats
    judge: Floats
    conversation: Places


def read(path: Path) -> Answers:
    told = json.loads((path / FILE if path.is_dir() else path).read_text(encoding="utf-8"))["evaluations"]
    human = [np.mean([float(rated["value"]) for rated in of(each, "faithfulness").values()]) for each in told]
    judge = [float(of(each, "rl_f")["composite"]["value"]) for each in told]
    _, conversation = np.unique([each["task_id"].split("<::>")[0] for each in told], return_inverse=True)
    return Answers((np.array(human) - 1) / 3, np.array(judge), conversation)


def of(evaluation: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(evaluation["annotations"][name])


def any_answers(labels: int) -> Design:
    """Any answers, as rows are picked from a run; the others are the run."""

    def draw(answers: Answers, rng: np.random.Generator) -> tuple[Places, Places]:
        order = rng.permutation(len(answers.human))
        return order[:labels], order[labels:]

    return draw


def by_conversation(conversations: int, each: int) -> Design:
    """Some conversations, and a few answers of each of them; the others are the run."""

    def draw(answers: Answers, rng: np.random.Generator) -> tuple[Places, Places]:
        chosen = rng.choice(answers.conversation.max() + 1, conversations, replace=False)
        places = [rng.choice(np.flatnonzero(answers.conversation == number), each, replace=False) for number in chosen]
        labelled = np.concatenate(places)
        return labelled, np.setdiff1d(np.arange(len(answers.human)), labelled)

    return draw


def with_replacement(labels: int) -> Design:
    """Labels and run drawn anew from all answers: what an interval that is about other questions promises to hold."""

    def draw(answers: Answers, rng: np.random.Generator) -> tuple[Places, Places]:
        n = len(answers.human)
        return rng.integers(0, n, labels), rng.integers(0, n, n - labels)

    return draw


def people(answers: Answers, labelled: Places, _rest: Places, seed: int) -> tuple[Interval | None, float]:
    """People only: the same interval without a judge."""
    y = answers.human[labelled]
    found = ppi_mean(y, np.zeros_like(y), [], list(answers.conversation[labelled]), resamples=RESAMPLES, seed=seed)
    return found.interval, found.lam


def harness(answers: Answers, labelled: Places, rest: Places, seed: int) -> tuple[Interval | None, float]:
    """PPI++ as the harness has it, by conversation."""
    y, f, clusters = answers.human[labelled], answers.judge[labelled], list(answers.conversation[labelled])
    found = ppi_mean(y, f, answers.judge[rest], clusters, resamples=RESAMPLES, seed=seed)
    return found.interval, found.lam


def unclustered(answers: Answers, labelled: Places, rest: Places, seed: int) -> tuple[Interval | None, float]:
    """The same, as if the answers of a conversation had nothing in common."""
    y, f = answers.human[labelled], answers.judge[labelled]
    found = ppi_mean(y, f, answers.judge[rest], resamples=RESAMPLES, seed=seed)
    return found.interval, found.lam


def normal(answers: Answers, labelled: Places, rest: Places, _seed: int) -> tuple[Interval | None, float]:
    """PPI++ with z and no conversations, as ppi-python has it."""
    y, f, others = answers.human[labelled], answers.judge[labelled], answers.judge[rest]
    found = ppi_mean(y, f, others, resamples=1)
    residual = float((y - found.lam * f).std() / np.sqrt(len(y)))
    half = Z * np.hypot(residual, found.lam * others.std() / np.sqrt(len(others)))
    return Interval(found.value - half, found.value + half), found.lam


def plain_bootstrap(answers: Answers, labelled: Places, _rest: Places, seed: int) -> tuple[Interval, float]:
    """People only, a bootstrap-t as textbooks have it; resamples without spread are left out."""
    y = answers.human[labelled]
    drawn = np.random.default_rng(seed).choice(y, (RESAMPLES, len(y)))
    spread = drawn.std(axis=1)
    if not spread.any():
        return Interval(float(y.mean()), float(y.mean())), 0.0
    ratios = (drawn.mean(axis=1) - y.mean())[spread > 0] / spread[spread > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Interval(float(y.mean() - high * y.std()), float(y.mean() - low * y.std())), 0.0


DESIGNS: dict[str, Design] = {
    "any 50 answers": any_answers(50),
    "any 50, drawn with replacement": with_replacement(50),
    "10 conversations x 5 answers": by_conversation(10, 5),
    "5 conversations x 10 answers": by_conversation(5, 10),
    "any 30 answers": any_answers(30),
}
METHODS = {
    "people only, bootstrap-t by conversation": people,
    "PPI++, z": normal,
    "PPI++, bootstrap-t": unclustered,
    "PPI++, bootstrap-t by conversation": harness,
}
VERDICT_METHODS = {
    "people only, bootstrap-t": plain_bootstrap,
    "people only, t with two labels added": people,
    "PPI++, z": normal,
    "PPI++, t with two labels added": harness,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("draws", type=int, nargs="?", default=1000)
    chosen = parser.parse_args()
    answers = read(chosen.path)
    truth = answers.human.mean()
    print(f"{len(answers.human)} answers, {answers.conversation.max() + 1} conversations, mean of people {truth:.4f}")
    rng = np.random.default_rng(0)
    dealt = answers._replace(judge=rng.permutation(answers.judge))
    for name, design in DESIGNS.items():
        print(f"\n{name + f', {chosen.draws} draws':<48}{'coverage':>10}{'half-width':>14}{'lambda':>8}")
        for method, interval_of in METHODS.items():
            report(method, answers, design, interval_of, chosen.draws)
        report("the same with a shuffled judge", dealt, design, harness, chosen.draws)
    for share, labels in ((0.7, 50), (0.9, 50), (0.95, 50), (0.9, 20), (0.95, 20)):
        head = f"{share:.0%} of the verdicts are 1, {labels} labels"
        print(f"\n{head:<48}{'coverage':>10}{'half-width':>14}{'lambda':>8}")
        for method, interval_of in VERDICT_METHODS.items():
            of_verdicts(method, interval_of, share, labels, chosen.draws)


def report(name: str, answers: Answers, design: Design, interval_of: Any, draws: int) -> None:
    rng = np.random.default_rng(1)
    tell(name, [interval_of(answers, *design(answers, rng), seed) for seed in range(draws)], answers.human.mean())


def of_verdicts(name: str, interval_of: Any, share: float, labels: int, draws: int) -> None:
    rng, everything = np.random.default_rng(1), np.arange(labels + 200)
    found = []
    for seed in range(draws):
        human = (rng.random(len(everything)) < share).astype(float)
        answers = Answers(human, np.clip(0.6 * rng.beta(2, 2, len(human)) + 0.4 * human, 0, 1), everything)
        found.append(interval_of(answers, everything[:labels], everything[labels:], seed))
    tell(name, found, share)


def tell(name: str, found: Sequence[tuple[Interval, float]], truth: float) -> None:
    held = np.mean([interval.low <= truth <= interval.high for interval, _ in found])
    half = np.mean([(interval.high - interval.low) / 2 for interval, _ in found])
    print(f"  {name:<46}{held:10.1%}{half:14.4f}{np.mean([lam for _, lam in found]):8.2f}", flush=True)


if __name__ == "__main__":
    main()
