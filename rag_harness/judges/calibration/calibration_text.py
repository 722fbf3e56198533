"""Writes a calibration for people, in at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from math import floor

from rag_harness.judges.calibration.correct import CorrectedMean
from rag_harness.judges.calibration.saved import Calibration, SavedEstimate
from rag_harness.judges.calibration.scored_answers import whole_name

_WIDTH = 100
_NAME = 30
_NAMES = {
    "accuracy": "accuracy at {threshold:g}",
    "kappa": "Cohen's κ",
    "weighted_kappa": "κ, quadratic weights",
    "f1": "F1",
    "auroc": "AUROC",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mean_error": "judge - people, mean",
    "error_with_length": "its Spearman with answer length",
    "alpha": "Krippendorff's α",
    "one_against_others": "one against the others",
}


def calibration_lines(
    calibration: Calibration, corrected: Mapping[str, CorrectedMean | str], means: Mapping[str, float]
) -> list[str]:
    """Return the lines. ``corrected`` has each experiment's mean, or why there is none; ``means`` has the judge's."""
    return [
        *textwrap.wrap(f"{calibration.measure} by {whole_name(calibration.judge.author)}", _WIDTH),
        _counts(calibration),
        "",
        *_table("judge with people", calibration.agreement, calibration),
        *_confusion(calibration),
        *_table("people with each other", calibration.humans, calibration),
        *_corrected(corrected, means),
    ]


def gate_lines(calibration: Calibration, corrected: Mapping[str, CorrectedMean | str]) -> list[str]:
    """Return gates that pass today: each has the lower bound of the mean that people would give as its threshold."""
    found = {name: mean for name, mean in corrected.items() if isinstance(mean, CorrectedMean)}
    return [
        f"{name}: {calibration.measure}~calibrated >= {floor(mean.interval.low * 100) / 100:g}"
        for name, mean in found.items()
    ]


def _counts(calibration: Calibration) -> str:
    several = f" by {calibration.raters} people" if calibration.raters > 1 else ""
    left = f"; {calibration.unscored} labelled answers have no score" if calibration.unscored else ""
    clusters = f"{calibration.clusters} cluster{'s' * (calibration.clusters != 1)}"
    return f"{calibration.n} labelled answers{several}, in {clusters}{left}"


def _table(title: str, estimates: Mapping[str, SavedEstimate], calibration: Calibration) -> Iterator[str]:
    if not estimates:
        return
    yield f"{title:<{_NAME + 4}}{'value':>7}  95 % interval"
    for name, found in estimates.items():
        shown = _NAMES[name].format(threshold=calibration.threshold)
        value = "-" if found.value is None else f"{found.value:.3f}"
        yield from _wrapped(f"  {shown:<{_NAME + 2}}{value:>7}  ", _bounds(found))
    yield ""


def _wrapped(head: str, text: str) -> list[str]:
    first, *more = textwrap.wrap(text, _WIDTH - len(head)) or [""]
    return [f"{head}{first}".rstrip(), *(" " * len(head) + line for line in more)]


def _bounds(found: SavedEstimate) -> str:
    if found.low is None or found.high is None:
        return found.reason
    return f"[{found.low:.3f}, {found.high:.3f}]"


def _confusion(calibration: Calibration) -> list[str]:
    found = calibration.confusion
    if found is None:
        return []
    head = f"{'verdicts':<{_NAME + 4}}{'judge 1':>7}{'judge 0':>10}"
    ones = f"  {'people 1':<{_NAME + 2}}{found.true_positive:>7}{found.false_negative:>10}"
    zeros = f"  {'people 0':<{_NAME + 2}}{found.false_positive:>7}{found.true_negative:>10}"
    even = calibration.n - sum(dict(found).values())
    return [head, ones, zeros, *([f"  left out, people are even on them: {even}"] if even else []), ""]


def _corrected(corrected: Mapping[str, CorrectedMean | str], means: Mapping[str, float]) -> Iterator[str]:
    if not corrected:
        return
    title = f"{'mean of all answers':<24}{'judge':>7}{'corrected':>11}  {'95 % interval':<18}"
    yield f"{title}{'λ':>5}{'labels':>8}{'people':>8}"
    for name, mean in corrected.items():
        head = f"  {name:<22}{means[name]:>7.3f}"
        if isinstance(mean, str):
            yield from _wrapped(f"{head}    ", mean)
            continue
        interval = f"[{mean.interval.low:.3f}, {mean.interval.high:.3f}]"
        found = mean.found
        yield f"{head}{mean.value:>11.3f}  {interval:<18}{found.lam:>5.2f}{found.labels:>8}{found.people:>8.3f}"
    yield ""
