"""Gates over unreviewed questions: a gate is judged on its reviewed questions, and not judged where there are none.

A draft may ask what no page answers, or copy its page. So a draft makes no gate pass and no gate fail, and one draft
among 200 questions does not keep the others from being judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.scores import SuiteScores
from rag_harness.gates.units import value_said
from rag_harness.gates.verdict import Verdict
from rag_harness.types import PLACEHOLDER, REVIEWED

if TYPE_CHECKING:
    from rag_harness.gates.evidence import GateRules

_OTHER = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True)
class _Parts:
    """A gate's cases in two groups: those that it is judged on, and those that were set apart."""

    gate: Gate
    judged: Gate
    kept: int
    apart: int
    placeholders: int


def judged_part(gate: Gate, counts_drafts: bool) -> Gate:
    """Return the gate over its judged cases only. Placeholders are never judged, drafts only where asked for."""
    named = dict(gate.slice)
    takes_drafts = (counts_drafts or REVIEWED in named) and PLACEHOLDER not in named
    pair = (PLACEHOLDER, "no") if takes_drafts else (REVIEWED, "yes")
    return replace(gate, slice=(*gate.slice, pair))


def with_drafts(
    gate: Gate, scores: SuiteScores | None, judged: Callable[[Gate], Verdict], rules: GateRules, unit: str
) -> Verdict:
    """Return the verdict of ``judged`` over the reviewed cases, and say how many cases were set apart."""
    if scores is None:
        return judged(gate)
    parts = _parts(gate, scores, rules)
    if not parts.apart:
        return _none_reviewed(gate, scores, rules) or judged(gate)
    verdict = judged(parts.judged)
    if verdict.value is not None:
        return replace(
            verdict, gate=gate, unreviewed=parts.apart, reason=_joined(_beside(parts, scores, unit), verdict)
        )
    if verdict.state == "not judged":
        return replace(verdict, gate=gate, reason=f"of the reviewed: {verdict.reason}")
    whole = judged(gate)
    if whole.value is None and (parts.kept or whole.state != "failed"):
        return whole
    said = _all_drafts(parts, rules.review(gate.suite))
    return replace(whole, state="not judged", unreviewed=parts.apart, reason=_joined(said, whole), excuse="drafts")


def _parts(gate: Gate, scores: SuiteScores, rules: GateRules) -> _Parts:
    part = judged_part(gate, rules.counts_drafts)
    every, (key, value) = dict(gate.slice), part.slice[-1]
    apart = scores.selected_of({**every, key: _OTHER[value]})
    placeholders = scores.selected_of({**every, PLACEHOLDER: "yes"})
    return _Parts(gate, part, scores.selected_of(every) - apart, apart, placeholders)


def _none_reviewed(gate: Gate, scores: SuiteScores, rules: GateRules) -> Verdict | None:
    """Return the verdict of a gate on reviewed cases where no case is reviewed; None where some are."""
    where = dict(gate.slice)
    if where.get(REVIEWED) != "yes" or scores.total_of(where):
        return None
    others = {key: value for key, value in where.items() if key != REVIEWED}
    drafts = scores.selected_of(others)
    if not drafts:
        return None
    said = f"none of {_cases(gate, drafts)} is reviewed: {rules.review(gate.suite)}"
    return Verdict(gate, "not judged", reason=said, unreviewed=drafts, excuse="drafts")


def _beside(parts: _Parts, scores: SuiteScores, unit: str) -> str:
    """Say which cases the verdict is about, and what the value would be with the others."""
    said = f"on the {parts.kept} reviewed of {_cases(parts.gate, parts.kept + parts.apart)}"
    where, quantile = dict(parts.gate.slice), parts.gate.quantile is not None
    values = list(scores.values(parts.gate.measure, where).values())
    more = len(values) - len(scores.values(parts.gate.measure, dict(parts.judged.slice)))
    if not more or quantile or isinstance(parts.gate.right, Reference):
        return said
    return f"{said}; with the drafts {value_said(fsum(values) / len(values), unit)}"


def _all_drafts(parts: _Parts, remedy: str) -> str:
    if parts.placeholders == parts.apart == 1:
        return f"its one {parts.gate.counts[:-1]} is a placeholder: write a question in its place"
    if parts.placeholders == parts.apart:
        return f"all {parts.apart} {parts.gate.counts} are placeholders: write questions in their place"
    kept = f", and none of the others has a value ({parts.kept})" if parts.kept else ""
    what = "is an unreviewed draft" if parts.apart == 1 else "are unreviewed drafts"
    return f"{parts.apart} of {_cases(parts.gate, parts.kept + parts.apart)} {what}{kept}: {remedy}"


def _cases(gate: Gate, number: int) -> str:
    return f"{number} {gate.counts if number != 1 else gate.counts[:-1]}"


def _joined(said: str, verdict: Verdict) -> str:
    return "; ".join(part for part in (said, verdict.reason) if part)
