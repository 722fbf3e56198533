"""Scoring of units: IDF-weighted overlap with the question, and a greedy choice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.models.reader.question import BOOSTS, QuestionTerms
from rag_harness.models.reader.units import Unit
from rag_harness.words.terms import terms

# None of these numbers was fitted to the study's questions. Each is a round number with a reason.
MAX_ANSWER_UNITS = 3  # a fact, its condition, and a second hop
ABOVE_WEIGHT = 0.5  # a heading names the topic of its lines, not their content
KIND_WEIGHT = 0.25  # "how long" weighs a quarter of the words: it chooses among units on topic
EARLY_BONUS = 0.05  # retrieval's order decides only near-ties
POOL = 40  # a unit worse than forty others adds no third hop
TOPIC_BONUS = 0.1  # of units that add the same, prefer the one on topic
MIN_GAIN = 0.15  # a unit that adds less than a seventh of the question is padding

ABSENT_WEIGHT = 0.5
"""Weight of a word that the context lacks: the context may use another word. A product code has its full weight.

Best of 0.3, 0.5 and 1 on the development half of ``benchmarks/reader_calibration.py`` (balanced accuracy 0.65, 0.66,
0.65).
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit and its terms: ``said`` in its text, ``framed`` only above. ``typed``: it has the kind of token."""

    unit: Unit
    said: frozenset[str]
    framed: frozenset[str]
    typed: bool


@dataclass(slots=True)
class Coverage:
    """Coverage by the chosen units, between 0 and 1 for each term; ``kind`` is that of the requested kind of token."""

    share: dict[str, float] = field(default_factory=dict)
    kind: float = 0.0


def candidates(question: QuestionTerms, units: Sequence[Unit]) -> list[Candidate]:
    """Return a candidate for each unit that shares a term with the question and says more than the question."""
    wanted, pattern = question.terms, question.pattern
    # "returns-policy-2024.md" is three words here, and "lamp-HK-204.md" keeps its code.
    above = {
        unit.above: terms(" ".join((*unit.above, unit.above[0].replace("-", " ").replace("_", " "))), unit.language)
        for unit in {unit.above: unit for unit in units}.values()
    }
    found: list[Candidate] = []
    for unit in units:
        words = terms(unit.text, unit.language)
        said, framed = words & wanted, (above[unit.above] & wanted) - words
        if (said or framed) and words - wanted:
            found.append(Candidate(unit, said, framed, bool(pattern and pattern.search(unit.text))))
    return found


def weigh(question: QuestionTerms, found: Sequence[Candidate], units: int) -> dict[str, float]:
    """Return each term's weight: BM25's IDF over the units of the context, times its boost.

    A term that the context lacks is multiplied by ABSENT_WEIGHT, unless it is a code. If it is only of the story, its
    weight is 0.
    """
    said = Counter(key for candidate in found for key in candidate.said)
    there = said.keys() | {key for candidate in found for key in candidate.framed}
    plain = {key for key, boost in question.boosts.items() if boost < BOOSTS["code"]}
    lacking = dict.fromkeys(plain - there, ABSENT_WEIGHT) | dict.fromkeys(question.story - there, 0.0)
    # A term that occurs nowhere counts as if in two units. Many are only wording and would outweigh the others.
    counts = {key: min(max(said[key], 2), units) for key in question.words}
    return {
        key: lacking.get(key, 1.0) * question.boosts[key] * math.log(1 + (units - n + 0.5) / (n + 0.5))
        for key, n in counts.items()
    }


def kind_weight(question: QuestionTerms, weights: Mapping[str, float]) -> float:
    """Return the weight of the requested kind of token; 0 if the question asks for none."""
    return KIND_WEIGHT * sum(weights.values()) if question.kind else 0.0


def best(question: QuestionTerms, found: Sequence[Candidate], weights: Mapping[str, float]) -> list[Candidate]:
    """Return the candidates by what each covers by itself, best first."""
    kind, nothing = kind_weight(question, weights), Coverage()
    return sorted(found, key=lambda candidate: -gain(candidate, nothing, weights, kind))


def choose(
    question: QuestionTerms, found: Sequence[Candidate], weights: Mapping[str, float]
) -> tuple[list[Candidate], Coverage]:
    """Choose up to MAX_ANSWER_UNITS of ``found`` greedily, by what each adds; return them and their coverage."""
    total, kind = sum(weights.values()), kind_weight(question, weights)
    chosen, covered, rest = list[Candidate](), Coverage(), list(found[:POOL])
    alone = {id(c): TOPIC_BONUS * gain(c, covered, weights, kind) + EARLY_BONUS * total / c.unit.source for c in rest}
    while rest and len(chosen) < MAX_ANSWER_UNITS:
        gains = [gain(candidate, covered, weights, kind) for candidate in rest]
        ranked = [value + alone[id(candidate)] for value, candidate in zip(gains, rest, strict=True)]
        top = ranked.index(max(ranked))
        # The first unit may count its heading. A further one must add terms in its own text.
        if chosen and (gains[top] < MIN_GAIN * total or not rest[top].said):
            break
        cover(covered, rest[top], weights)
        chosen.append(rest.pop(top))
    return chosen, covered


def gain(candidate: Candidate, covered: Coverage, weights: Mapping[str, float], kind: float) -> float:
    """Return the weight that ``candidate`` adds to the coverage."""
    said = sum(weights[key] * (1 - covered.share.get(key, 0.0)) for key in sorted(candidate.said))
    framed = sum(
        weights[key] * max(0.0, ABOVE_WEIGHT - covered.share.get(key, 0.0)) for key in sorted(candidate.framed)
    )
    return said + framed + (kind and kind * max(0.0, _typed(candidate, weights) - covered.kind))


def cover(covered: Coverage, candidate: Candidate, weights: Mapping[str, float]) -> None:
    """Return the coverage with ``candidate`` added."""
    for keys, share in ((candidate.said, 1.0), (candidate.framed, ABOVE_WEIGHT)):
        for key in keys:
            covered.share[key] = max(share, covered.share.get(key, 0.0))
    covered.kind = max(covered.kind, _typed(candidate, weights))


def _typed(candidate: Candidate, weights: Mapping[str, float]) -> float:
    """Return the credit for a number, date or price. It depends on the topic of its unit, as any page has numbers."""
    if not candidate.typed:
        return 0.0
    total = sum(weights.values())
    said = sum(weights[key] for key in sorted(candidate.said))
    framed = sum(weights[key] for key in sorted(candidate.framed))
    return min(1.0, 2 * (said + ABOVE_WEIGHT * framed) / total) if total else 0.0
