"""Thresholds and weights of the reliability engine: the defaults, and values that a suite sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.profiles import check_table_keys, pyproject_table

# ``[tool.rag_harness.reliability]`` of pyproject.toml has the tables ``thresholds``, ``strict``, ``weights`` and
# ``formula``.

WEAK_SIGNALS = ("LOW_RELEVANCE", "LOW_COVERAGE")
"""Reasons of signals below ``relevance`` and ``coverage``: an answer with one does not pass, and is not withheld."""
_TABLE = "tool.rag_harness.reliability"
_WEIGHT_ERROR = 1e-6
"""By how much a sum of weights may differ from 1: 0.7 + 0.2 + 0.1 is not exactly 1."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the decisions.

    Attributes:
        go_on: retrieval quality above which the model is asked.
        fallback: retrieval quality below which the model is not asked. Between the two, a second search comes first.
        relevance: relevance below which the best source counts as hardly relevant.
        coverage: coverage below which the sources count as lacking words of the question.
        grounded: groundedness below which the whole answer counts as ungrounded.
        claim: probability below which a single claim counts as ungrounded.
        agreement: agreement below which two answers to one question count as different.
        passed: confidence from which an answer passes without a warning.
        warned: confidence below which no answer is given.
    """

    go_on: float = 0.55
    fallback: float = 0.35
    relevance: float = 0.35
    coverage: float = 0.5
    grounded: float = 0.7
    claim: float = 0.5
    agreement: float = 0.5
    passed: float = 0.6
    warned: float = 0.2


NORMAL = Thresholds()
STRICT = Thresholds(
    go_on=0.65,
    fallback=0.45,
    relevance=0.5,
    coverage=0.6,
    grounded=0.8,
    claim=0.6,
    agreement=0.7,
    passed=0.7,
    warned=0.4,
)


@dataclass(frozen=True, slots=True)
class QualityWeights:
    """Weights of the signals in the retrieval quality. Their sum is 1. The defaults are set, not fitted."""

    relevance: float = 0.4
    margin: float = 0.2
    coverage: float = 0.2
    dispersion: float = 0.2


@dataclass(frozen=True, slots=True)
class FormulaWeights:
    """Weights in a confidence without calibration. The defaults are set, not fitted.

    They are: ``alpha`` of retrieval quality, ``beta`` of groundedness; ``gamma`` of contradiction is taken off. The sum
    of alpha and beta is 1.
    """

    alpha: float = 0.5
    beta: float = 0.5
    gamma: float = 0.5


@dataclass(frozen=True, slots=True)
class ReliabilityNumbers:
    """All numbers on which the decisions of the reliability engine depend; ``strict`` are the limits of mode strict."""

    thresholds: Thresholds = NORMAL
    strict: Thresholds = STRICT
    weights: QualityWeights = QualityWeights()
    formula: FormulaWeights = FormulaWeights()


USUAL = ReliabilityNumbers()
"""The numbers of a suite that sets none."""
_KINDS: Mapping[str, Any] = {each.name: getattr(USUAL, each.name) for each in fields(USUAL)}


def reliability_numbers(rootdir: Path) -> ReliabilityNumbers | None:
    """Return the numbers of a suite, whose pyproject.toml is in ``rootdir``, or None where it sets none.

    Raises:
        SettingsError: a name is not known, a value is not a number from 0 to 1, or the numbers contradict each other.
    """
    tables = pyproject_table(rootdir, "reliability", "thresholds, strict, weights and formula")
    if not tables:
        return None
    check_table_keys(f"pyproject.toml, [{_TABLE}]", tables, _KINDS)
    given = {kind: _of_table(kind, tables.get(kind, {})) for kind in _KINDS}
    found = ReliabilityNumbers(**{kind: replace(usual, **given[kind]) for kind, usual in _KINDS.items()})
    for problem in _problems(found):
        raise SettingsError(f"The numbers of the reliability engine do not fit together: {problem}")
    return found


def _of_table(kind: str, table: Any) -> dict[str, float]:
    where = f"pyproject.toml, [{_TABLE}.{kind}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table of numbers.")
    check_table_keys(where, table, asdict(_KINDS[kind]))
    return {name: _share(f"{where}: {name}", value) for name, value in table.items()}


def _share(where: str, value: Any) -> float:
    # NaN is neither. TOML has booleans, which Python takes for numbers.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise SettingsError(f"{where} is {value!r}: expected a number from 0 to 1.")
    return float(value)


def _problems(numbers: ReliabilityNumbers) -> Iterator[str]:
    for kind, names in (("weights", tuple(asdict(numbers.weights))), ("formula", ("alpha", "beta"))):
        values = {name: getattr(getattr(numbers, kind), name) for name in names}
        if abs(sum(values.values()) - 1) > _WEIGHT_ERROR:
            said = ", ".join(f"{name} {value:g}" for name, value in values.items())
            yield f"the sum of {said} is {sum(values.values()):g}, but must be 1."
    for kind in ("thresholds", "strict"):
        limits = getattr(numbers, kind)
        for low, high in (("fallback", "go_on"), ("warned", "passed")):
            if getattr(limits, low) > getattr(limits, high):
                yield f"in {kind}, {low} {getattr(limits, low):g} is more than {high} {getattr(limits, high):g}."
    for name, value in asdict(numbers.thresholds).items():
        strict = getattr(numbers.strict, name)
        if value > strict:
            yield f"{name} is {value:g}, but strict.{name} is {strict:g}: mode strict may not ask for less."
