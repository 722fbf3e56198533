"""The checks: for each measure what is changed, and what must hold of the new answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_harness.derived.attribution.bench import KnownExperiment
from rag_harness.derived.attribution.interventions import hits_of
from rag_harness.derived.derived_runs import DerivedTrial
from rag_harness.derived.metamorphic.contexts import (
    ChangedSources,
    canary_of,
    reversed_order,
    with_distractor,
    with_injection,
)
from rag_harness.derived.metamorphic.question_changes import QUERY_CHANGES, Changed
from rag_harness.derived.metamorphic.relations import ComparedAnswer, difference, follows, loses_gold
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case, Hit

DERIVED = {
    "metamorphic_case": "+capitals",
    "metamorphic_typos": "+typos",
    "metamorphic_politeness": "+politeness",
    "metamorphic_enumeration": "+enumeration",
    "metamorphic_paraphrase": "+paraphrase",
    "metamorphic_order": "+reversed",
    "metamorphic_distractor": "+distractor",
    "injection_resisted": "+injection",
}
"""The suffix of a measure's derived experiment, after the experiment's own name."""
PARAPHRASE = "metamorphic_paraphrase"
NO_WRITER = "no model of role writer is named, and nothing else finds other words"


@dataclass(frozen=True, slots=True)
class Original:
    """A trial with an answer, which the new answers are compared with."""

    case: Case
    row: ExperimentResult
    subject: KnownExperiment

    @property
    def gold(self) -> frozenset[str]:
        """The relevant documents."""
        return frozenset(self.case.context_reference)


@dataclass(frozen=True, slots=True)
class Check:
    """One measure of one trial.

    Attributes:
        ask: the derived trial; None where there is none, and ``why_not`` says why.
        changed: what was changed, as text for people.
        undefined: whether there is nothing to change, so that the measure is undefined.
    """

    measure: str
    ask: DerivedTrial | None
    changed: str = ""
    why_not: str = ""
    undefined: bool = False


Paraphrase = Callable[[Sequence[str]], Mapping[str, Changed]]
"""From questions to a paraphrase of each, or why there is none."""


def check_of(measure: str, original: Original, seed: int, words: Mapping[str, Changed] | None = None) -> Check:
    """Return the check of one measure on one trial; ``words`` are paraphrases of the questions."""
    if original.subject.experiment is None:
        return Check(measure, None, why_not=original.subject.why_not)
    if measure in QUERY_CHANGES:
        return _of_query(measure, original, QUERY_CHANGES[measure](original.row.query, seed), undefined=True)
    if measure == PARAPHRASE:
        found = words[original.row.query] if words is not None else Changed("", NO_WRITER)
        return _of_query(measure, original, found, undefined=words is None)
    return _of_context(measure, original, seed)


def _of_context(measure: str, original: Original, seed: int) -> Check:
    if original.subject.limits:
        return Check(measure, None, why_not=original.subject.limits)
    given = _given(measure, original, seed)
    if given.hits is None:
        return Check(measure, None, why_not=given.what, undefined=True)
    return Check(measure, _ask(measure, original, original.case, given.hits), given.what)


def _of_query(measure: str, original: Original, changed: Changed, undefined: bool) -> Check:
    if not changed.text:
        return Check(measure, None, why_not=changed.why, undefined=undefined)
    query = replace(original.case.query, text=changed.text)
    return Check(measure, _ask(measure, original, replace(original.case, query=query)), changed.text)


def _ask(measure: str, original: Original, case: Case, hits: Sequence[Hit] | None = None) -> DerivedTrial:
    assert original.subject.experiment is not None
    given = tuple(hits) if hits is not None else None
    return DerivedTrial(original.subject.experiment, DERIVED[measure], case, original.row, given)


def _given(measure: str, original: Original, seed: int) -> ChangedSources:
    hits, shelf = hits_of(original.row, original.subject.shelf), original.subject.shelf
    if measure == "metamorphic_order":
        return reversed_order(hits)
    if measure == "metamorphic_distractor":
        return with_distractor(hits, original.gold, shelf, _seed(original, seed))
    return with_injection(hits, canary_of(_seed(original, seed)))


def broken(measure: str, original: Original, seed: int, before: ComparedAnswer, after: ComparedAnswer) -> str:
    """Return how the new answer breaks the relation of a measure; empty where it keeps it."""
    if measure == "injection_resisted":
        return follows(after.text, canary_of(_seed(original, seed)))
    differs = difference(original.row.query, before, after)
    if measure == "metamorphic_distractor":
        return differs or loses_gold(before, after, original.gold)
    return differs


def _seed(original: Original, seed: int) -> str:
    return f"{seed} {original.case.query.query_id}"
