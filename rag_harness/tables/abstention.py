"""Selective answering: risk and coverage of experiments that state a confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.stats.agreement import auroc
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.prediction import Promise, RiskCoverage, promise, risk_coverage
from rag_harness.tables.pairwise import measure_said
from rag_harness.tables.suite_table import SuiteTable

CONFIDENCE_MEASURE = "confidence"
RISK = 0.05
_SHOWN = (0.25, 0.5, 0.75, 1.0)
_WIDTH = 100
_ALIKE = (
    "no threshold: its promise is of answers that are independent, and these are of conversations or other clusters"
)


@dataclass(frozen=True, slots=True)
class Abstention:
    """An experiment's confidence, compared with whether its answers are right by the measure ``correct``.

    ``auroc`` is the probability that a right answer has a higher confidence than a wrong one. ``promise`` is a
    threshold for a risk of 5 %. Where one of them is None, ``reasons`` say why. ``left_out`` counts answers that were
    not checked. ``stated`` has for each other answer its confidence, and 1 where it is wrong, else 0. ``by_judge``
    counts those of them that a judge decided, by its measure.
    """

    experiment: str
    left_out: int
    curve: RiskCoverage
    auroc: float | None
    promise: Promise | None
    reasons: tuple[str, ...]
    stated: tuple[tuple[float, float], ...] = ()
    by_judge: Mapping[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the lines for the terminal."""
        curve, n = self.curve, len(self.curve.risk)
        left = f", {self.left_out} not checked" if self.left_out else ""
        judged = "".join(f", {count} of them checked by {measure_said(name)}" for name, count in self.by_judge.items())
        yield f"{self.experiment}: {n} answers with a confidence{left}; {1 - curve.by_chance:.0%} right{judged}"
        told = "-" if self.auroc is None else f"{self.auroc:.2f}"
        yield (
            f"  AUROC {told}; AURC {curve.aurc:.3f}, in the best order {curve.best:.3f}, "
            f"in no order {curve.by_chance:.3f}"
        )
        wrong = ", ".join(f"{curve.risk_at(share):.0%} of {share:.0%}" for share in _SHOWN)
        yield f"  wrong among the most confident: {wrong}"
        yield from (f"  {reason}" for reason in self.reasons)
        if self.promise is not None and self.promise.threshold is not None:
            kept = self.promise
            yield (
                f"  at confidence >= {kept.threshold:.3g} at most {kept.risk:.0%} are wrong, at {1 - kept.delta:.0%}: "
                f"{kept.wrong} of {kept.accepted} tested"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        curve = self.curve
        return {
            "n": len(curve.risk),
            "by_judge": dict(self.by_judge),
            "left_out": self.left_out,
            "auroc": self.auroc,
            "aurc": curve.aurc,
            "aurc_best": curve.best,
            "risk": curve.by_chance,
            "risk_at": {f"{share:.2f}": curve.risk_at(share) for share in _SHOWN},
            "promise": self.promise._asdict() if self.promise else None,
            "reasons": list(self.reasons),
        }


def abstentions(tables: Mapping[str, SuiteTable]) -> list[Abstention]:
    """Return one for each experiment whose answers state a confidence and were checked as right or wrong."""
    found = (_abstention(name, table) for name, table in sorted(tables.items()) if name != GOLDEN)
    return [each for each in found if each is not None]


def abstention_lines(found: list[Abstention]) -> list[str]:
    """Return the lines, at most 100 columns wide."""
    return [part for each in found for line in each.lines() for part in wrap(line, _WIDTH, subsequent_indent="    ")]


def _abstention(name: str, table: SuiteTable) -> Abstention | None:
    confidence = _answered(table)
    right = table.values(CORRECT, {}) if CORRECT in table.columns else {}
    wrong = {case: 1 - right[case] for case in confidence if case in right}
    if not wrong:
        return None
    found = _of(name, confidence, wrong, table.are_named_alike)
    by_judge = Counter(table.correct_by_judge[case] for case in wrong if case in table.correct_by_judge)
    return replace(found, by_judge=by_judge)


def _answered(table: SuiteTable) -> dict[str, float]:
    """Return the confidence of each answer. Declined questions are left out: declining cannot be wrong."""
    if CONFIDENCE_MEASURE not in table.columns:
        return {}
    declined = table.values("abstention_rate", {}) if "abstention_rate" in table.columns else {}
    return {case: value for case, value in table.values(CONFIDENCE_MEASURE, {}).items() if not declined.get(case)}


def _of(name: str, confidence: Mapping[str, float], wrong: Mapping[str, float], are_alike: bool) -> Abstention:
    scores, errors = [confidence[case] for case in wrong], list(wrong.values())
    reasons: list[str] = []
    chance = kept = None
    try:
        chance = auroc([1 - error for error in errors], scores)
    except UndefinedError:
        reasons.append(f"no AUROC: all answers are {'wrong' if errors[0] else 'right'}")
    try:
        kept = None if are_alike else promise(scores, errors, RISK)
        if kept is None:
            reasons.append(_ALIKE)
        elif kept.threshold is None:
            reasons.append(f"no confidence promises at most {RISK:.0%} wrong at 95 %: {kept.reason}")
    except UndefinedError as why:
        reasons.append(f"no threshold: {why}")
    left = len(confidence) - len(wrong)
    stated = tuple(zip(scores, errors, strict=True))
    return Abstention(name, left, risk_coverage(scores, errors), chance, kept, tuple(reasons), stated)
