"""Measures: functions from a row and its case to a score. One protocol and one registry, open to users.

A measure of your own is a class in a file and a line in your ``pyproject.toml``::

    [project.entry-points."rag_harness.measures"]
    brevity = "my_package.brevity:Brevity"

The registered object is called with the cutoff in the measure's name (``recall@5``: 5, else None) and returns the
measure.

Engine, judges, tables, page and frontends call it. A measure never asks a model: judged ones ask a ``Judge``. Begin
reading with ``measure.py`` and ``ranking.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.registry import registered, resolve
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.expectations import EXPECTATION_PREFIX, measure_of_kind, rubric_measure
from rag_harness.evaluation.measures.judged import STUDY, JudgedMeasure
from rag_harness.evaluation.measures.measure import (
    Better,
    CompositeMeasure,
    Measure,
    Need,
    RankingMeasure,
    RowMeasure,
    Score,
    Unit,
    scored,
)
from rag_harness.records.expectations import known_kinds

__all__ = [
    "Better",
    "Measure",
    "Need",
    "RankingMeasure",
    "RowMeasure",
    "Score",
    "Unit",
    "columns_of",
    "default_measures",
    "is_judged",
    "known_measures",
    "measure_named",
    "parts_of",
    "scored",
]


# Finds measures by name. Built-in ones are registered like users' own: entry points ``rag_harness.measures``.

MEASURES_GROUP = "measures"
_PACKAGE = "rag_harness."
_USUAL_CUTOFFS = (5, 10)
RANKING = (
    "recall@1", "recall@3", "recall@5", "recall@10", "precision@5", "hit@5", "all@5", "mrr@10", "map@10", "ndcg@10",
    "r_precision",
)  # fmt: skip
ANSWERS = (
    "correct",
    "token_f1",
    "citation_recall",
    "evidence_recall",
    "abstention_rate",
    "false_abstention_rate",
    "error_rate",
    "confidence",
    "expectations",
)


def known_measures() -> list[str]:
    """Return the registered names, without cutoffs."""
    return sorted(registered(MEASURES_GROUP))


def measure_named(text: str) -> Measure:
    """Return the measure of a name as a gate writes it: ``recall@5``, ``token_f1``.

    Raises:
        SettingsError: the measure does not exist, or its cutoff is not possible. The message suggests the nearest name.
    """
    name, at, cutoff = text.strip().partition("@")
    by_its_name = measure_of_kind(name) or rubric_measure(name)
    if by_its_name is not None and not at:
        return by_its_name
    if name not in registered(MEASURES_GROUP):
        of_kinds = (
            [f"{EXPECTATION_PREFIX}{kind}" for kind in known_kinds()] if name.startswith(EXPECTATION_PREFIX) else []
        )
        raise SettingsError(unknown("measure", name, of_kinds or known_measures()))
    if at and not (cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0):
        raise SettingsError(f"Measure {text!r} needs a cutoff of 1 or more, e.g. '{name}@10'; found {cutoff!r}.")
    if cutoff.startswith("0"):
        raise SettingsError(f"{text.strip()}: write {name}@{int(cutoff)}.")
    measure: Measure = resolve(MEASURES_GROUP, name)(int(cutoff) if at else None)
    return measure


def default_measures(golden: bool, k: int) -> list[Measure]:
    """Return the measures of every run: rankings, those of answers for experiments, and all that a user has registered.

    Times and costs are not among them: they would differ from run to run.
    """
    cutoffs = [f"recall@{k}", f"mrr@{k}", f"ndcg@{k}"] if golden else []
    names = dict.fromkeys([*RANKING, *cutoffs, *(() if golden else ANSWERS)])
    own = [measure for name in _own() for measure in _usual(name)]
    # No judge is called unless an option or a gate names a judged measure.
    return [
        *map(measure_named, names),
        *(each for each in own if not isinstance(each, (JudgedMeasure, CompositeMeasure))),
    ]


def _own() -> list[str]:
    return [name for name, point in sorted(registered(MEASURES_GROUP).items()) if not point.value.startswith(_PACKAGE)]


def _usual(name: str) -> list[Measure]:
    """Return a registered measure as every run has it: with the usual cutoffs where it takes one."""
    try:
        return [measure_named(name)]
    except SettingsError:
        return [measure_named(f"{name}@{cutoff}") for cutoff in _USUAL_CUTOFFS]


def parts_of(names: Iterable[str]) -> list[JudgedMeasure]:
    """Return the judged measures that ``names`` need, each once, in their order. A composite needs its parts.

    Measures without a judge add nothing.

    Raises:
        SettingsError: a name is not a measure. The message suggests the nearest one.
    """
    return list({measure.name: measure for name in names for measure in _parts(name)}.values())


def columns_of(names: Iterable[str]) -> list[str]:
    """Return the columns of a suite judged on ``names``: their parts, the named composites, and the study's columns.

    Raises:
        SettingsError: a name is not a measure.
    """
    wanted = list(names)
    parts = [measure.name for measure in parts_of(wanted)]
    named = [name for name in wanted if isinstance(_any(name), CompositeMeasure)]
    study = [name for name in STUDY if set(_parts_names(name)) <= set(parts)]
    return list(dict.fromkeys([*parts, *study, *named]))


def is_judged(name: str) -> bool:
    """Whether a measure is judged, or a composite of judged ones; False for an unknown name."""
    try:
        return bool(parts_of([name]))
    except SettingsError:
        return False


def _any(name: str) -> object:
    return measure_named(name)


def _parts_names(name: str) -> list[str]:
    return [part.name for part in _parts(name)]


def _parts(name: str) -> Iterator[JudgedMeasure]:
    measure = _any(name)
    if isinstance(measure, LateMeasure):
        yield from _parts(measure.builds_on)
    if isinstance(measure, JudgedMeasure):
        yield measure
    elif isinstance(measure, CompositeMeasure):
        for part in measure.parts:
            yield from _parts(part)


def score_named(name: str, scores: Mapping[str, Score]) -> Score:
    """Return the score of a measure from those of its parts, or its own."""
    measure: object = measure_named(name)
    return measure.score(scores) if isinstance(measure, CompositeMeasure) else scores[name]
