"""The evidence for an answer: the units to quote, after outdated sources are removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from rag_harness.models.reader import scoring
from rag_harness.models.reader.current_source import Version, asks_for_history, same_thing, versions
from rag_harness.models.reader.prompt import Prompt
from rag_harness.models.reader.question import QuestionTerms
from rag_harness.models.reader.scoring import Candidate, Coverage
from rag_harness.models.reader.units import split_sources

SOURCE_SHARE = 0.6
"""Share of the support that comes from the whole page: a page names its subject once and then says "it".

Best of 0.4, 0.5 and 0.6 on the development half of ``benchmarks/reader_calibration.py`` (AUC 0.69, 0.69, 0.70).
"""
TERMS_THAT_COUNT = 5
"""Support is measured on this many of the question's heaviest terms, because no answer repeats a long letter.

Best of 4, 5 and 6 on the same half (AUC 0.69, 0.70, 0.70; balanced accuracy 0.65, 0.66, 0.66).
"""
# Most units that are compared for conflicts. Every pair is compared, and only units that may be quoted matter.
COMPARED = 12


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that disagree. ``kept`` is the current one, or 0 if that is unknown."""

    first: int
    second: int
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """The evidence for a question. ``relevant`` are the sources about it, with the terms that each covers."""

    chosen: tuple[Candidate, ...]
    relevant: Mapping[int, frozenset[str]]
    conflicts: tuple[Conflict, ...]
    covered: Coverage
    support: float


def gather(prompt: Prompt, question: QuestionTerms, languages: Mapping[int, str] | None = None) -> Findings:
    """Find candidates, resolve conflicts, choose units, and measure the support. ``languages``: by source."""
    units = split_sources(prompt.sources, languages or {})
    found = scoring.candidates(question, units)
    weights = scoring.weigh(question, found, len(units))
    known = {} if asks_for_history(prompt.question) else versions(prompt.sources)
    conflicts = _old_siblings(found, known)
    found = scoring.best(question, _without_losers(found, conflicts), weights)
    conflicts += _disagreements(found[:COMPARED], known)
    found = _without_losers(found, conflicts)
    chosen, covered = scoring.choose(question, found, weights)
    relevant = _relevant(found)
    support = _support(chosen, covered, relevant, weights, scoring.kind_weight(question, weights))
    return Findings(tuple(chosen), relevant, tuple(conflicts), covered, support)


def _old_siblings(found: list[Candidate], known: Mapping[int, Version]) -> list[Conflict]:
    """Return each source that is an old version of a page whose current version is also in the context."""
    touched = {candidate.unit.source for candidate in found}
    losers: dict[int, Conflict] = {}
    for one, other in combinations(sorted(known), 2):
        if known[one].family == known[other].family:
            kept = _current(one, other, known)
            loser = one + other - kept
            if kept and loser in touched:
                losers.setdefault(loser, Conflict(one, other, kept))
    return list(losers.values())


def _disagreements(top: list[Candidate], known: Mapping[int, Version]) -> list[Conflict]:
    """Compare all pairs of units that may be quoted, and return one conflict per pair of sources."""
    pairs: dict[tuple[int, int], Conflict] = {}
    for one, other in combinations((candidate.unit for candidate in top), 2):
        first, second = sorted((one.source, other.source))
        apart = first in known and known[first] != known[second]
        if apart and (first, second) not in pairs and same_thing(one, other):
            pairs[first, second] = Conflict(first, second, _current(first, second, known))
    return list(pairs.values())


def _current(one: int, other: int, known: Mapping[int, Version]) -> int:
    if known[one].supersedes(known[other]):
        return one
    return other if known[other].supersedes(known[one]) else 0


def _without_losers(found: list[Candidate], conflicts: list[Conflict]) -> list[Candidate]:
    lost = {number for c in conflicts if c.kept for number in (c.first, c.second) if number != c.kept}
    return [candidate for candidate in found if candidate.unit.source not in lost]


def _relevant(found: list[Candidate]) -> dict[int, frozenset[str]]:
    touched: dict[int, frozenset[str]] = {}
    for candidate in found:
        source = candidate.unit.source
        touched[source] = touched.get(source, frozenset()) | candidate.said | candidate.framed
    return touched


def _support(
    chosen: list[Candidate],
    covered: Coverage,
    relevant: Mapping[int, frozenset[str]],
    weights: Mapping[str, float],
    kind: float,
) -> float:
    """Return the weight share of the heaviest terms that the quoted units and their best page cover."""
    total = sum(sorted(weights.values())[-TERMS_THAT_COUNT:]) + kind
    if not chosen or total <= 0:
        return 0.0
    quoted = sum(weights[key] * share for key, share in sorted(covered.share.items()))
    pages = (sum(weights[key] for key in sorted(relevant[c.unit.source])) for c in chosen)
    covers = (1 - SOURCE_SHARE) * quoted + SOURCE_SHARE * max(pages) + kind * covered.kind
    return min(1.0, covers / total)
