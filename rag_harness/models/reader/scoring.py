"""How much of a question each unit answers: IDF-weighted overlap, and a greedy choice of units."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.models.reader.question import BOOSTS, Question
from rag_harness.models.reader.units import Unit
from rag_harness.words.terms import terms

# None of these was fitted to the study's questions; each is a round number for the reason it gives.
MAX_ANSWER_UNITS = 3  # a fact, its condition, and a second hop
ABOVE_WEIGHT = 0.5  # a heading says what the lines are about, not what they say
KIND_WEIGHT = 0.25  # "how long" is worth a quarter of the words: it chooses among units on topic, never the topic
EARLY_BONUS = 0.05  # retrieval's order breaks near-ties only
POOL = 40  # a unit that forty others outdo alone adds no third hop
TOPIC_BONUS = 0.1  # of units that add the same, the one that is on topic as a whole
MIN_GAIN = 0.15  # a further unit must add a seventh of the question, or it is padding

ABSENT_WEIGHT = 0.5
"""What a word counts that the context lacks: it may be only worded otherwise there. A product code counts in full.

Of 0.3, 0.5 and 1 the best on the development half of ``benchmarks/reader_calibration.py`` (balanced accuracy 0.65,
0.66, 0.65).
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit and what it covers: ``said`` in its text, ``framed`` only above it; ``typed``: has the token asked for."""

    unit: Unit
    said: frozenset[str]
    framed: frozenset[str]
    typed: bool


@dataclass(slots=True)
class Coverage:
    """What the chosen units cover so far, between 0 and 1 per term; ``kind`` likewise for the token asked for."""

    share: dict[str, float] = field(default_factory=dict)
    kind: float = 0.0


def candidates(question: Question, units: Sequence[Unit]) -> list[Candidate]:
    """Return one candidate per unit that touches the question and says more than the question itself."""
    wanted, pattern = question.terms, question.pattern
    # "returns-policy-2024.md" is three words here, and "lamp-HK-204.md" keeps its code.
    above = {
        unit.above: terms(" ".join((*unit.above, unit.above[0].replace("-", " ").replace("_", " "))))
        for unit in {unit.above: unit for unit in units}.values()
    }
    found: list[Candidate] = []
    for unit in units:
        words = terms(unit.text)
        said, framed = words & wanted, (above[unit.above] & wanted) - words
        if (said or framed) and words - wanted:
            found.append(Candidate(unit, said, framed, bool(pattern and pattern.search(unit.text))))
    return found


def weigh(question: Question, found: Sequence[Candidate], units: int) -> dict[str, float]:
    """Return each term's weight: BM25's IDF over the units of the context, times its boost.

    A term that the context lacks weighs ABSENT_WEIGHT of that (a code all), and nothing if it is only of the story.
    """
    said = Counter(key for candidate in found for key in candidate.said)
    there = said.keys() | {key for candidate in found for key in candidate.framed}
    plain = {key for key, boost in question.boosts.items() if boost < BOOSTS["code"]}
    lacking = dict.fromkeys(plain - there, ABSENT_WEIGHT) | dict.fromkeys(question.story - there, 0.0)
    # Terms that occur nowhere count as if in two units: many are only wording, and would drown the words that matter.
    counts = {key: min(max(said[key], 2), units) for key in question.words}
    return {
        key: lacking.get(key, 1.0) * question.boosts[key] * math.log(1 + (units - n + 0.5) / (n + 0.5))
        for key, n in counts.items()
    }


def kind_weight(question: Question, weights: Mapping[str, float]) -> float:
    """Return what the token asked for is worth; 0 where the question asks for no kind of token."""
    return KIND_WEIGHT * sum(weights.values()) if question.kind else 0.0


def best(question: Question, found: Sequence[Candidate], weights: Mapping[str, float]) -> list[Candidate]:
    """Return the candidates by what each covers alone, best first."""
    kind, nothing = kind_weight(question, weights), Coverage()
    return sorted(found, key=lambda candidate: -gain(candidate, nothing, weights, kind))


def choose(
    question: Question, found: Sequence[Candidate], weights: Mapping[str, float]
) -> tuple[list[Candidate], Coverage]:
    """Return up to MAX_ANSWER_UNITS of ``found``, best first, greedily by what each adds; and what they cover."""
    total, kind = sum(weights.values()), kind_weight(question, weights)
    chosen, covered, rest = list[Candidate](), Coverage(), list(found[:POOL])
    alone = {id(c): TOPIC_BONUS * gain(c, covered, weights, kind) + EARLY_BONUS * total / c.unit.source for c in rest}
    while rest and len(chosen) < MAX_ANSWER_UNITS:
        gains = [gain(candidate, covered, weights, kind) for candidate in rest]
        ranked = [value + alone[id(candidate)] for value, candidate in zip(gains, rest, strict=True)]
        top = ranked.index(max(ranked))
        # A first unit may stand under its heading; a further one must say something itself.
        if chosen and (gains[top] < MIN_GAIN * total or not rest[top].said):
            break
        cover(covered, rest[top], weights)
        chosen.append(rest.pop(top))
    return chosen, covered


def gain(candidate: Candidate, covered: Coverage, weights: Mapping[str, float], kind: float) -> float:
    """Return the weight that ``candidate`` adds to what is covered."""
    said = sum(weights[key] * (1 - covered.share.get(key, 0.0)) for key in sorted(candidate.said))
    framed = sum(
        weights[key] * max(0.0, ABOVE_WEIGHT - covered.share.get(key, 0.0)) for key in sorted(candidate.framed)
    )
    return said + framed + (kind and kind * max(0.0, _typed(candidate, weights) - covered.kind))


def cover(covered: Coverage, candidate: Candidate, weights: Mapping[str, float]) -> None:
    """Add what ``candidate`` covers."""
    for keys, share in ((candidate.said, 1.0), (candidate.framed, ABOVE_WEIGHT)):
        for key in keys:
            covered.share[key] = max(share, covered.share.get(key, 0.0))
    covered.kind = max(covered.kind, _typed(candidate, weights))


def _typed(candidate: Candidate, weights: Mapping[str, float]) -> float:
    """Credit a number, date or price by how far its unit is on topic: any page has some number."""
    if not candidate.typed:
        return 0.0
    total = sum(weights.values())
    said = sum(weights[key] for key in sorted(candidate.said))
    framed = sum(weights[key] for key in sorted(candidate.framed))
    return min(1.0, 2 * (said + ABOVE_WEIGHT * framed) / total) if total else 0.0
