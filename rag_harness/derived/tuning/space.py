"""What a race is about: parameters with their values, what is wanted, and what must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.gates.grammar import Gate
from rag_harness.settings.configuration_spec import ConfigurationSpec, ParameterValue


@dataclass(frozen=True)
class Parameter:
    """A parameter, the values to try, and the values of others under which it counts; under others it has none."""

    name: str
    values: tuple[ParameterValue, ...]
    only_if: Mapping[str, tuple[ParameterValue, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Space:
    """A space of configurations.

    Attributes:
        parameters: what is varied.
        objective: names of measures: the first is raced on, the others are shown beside it.
        constraints: what each configuration must keep to, as conditions without an experiment.
        start: named configurations that race, too, whatever the parameters say.
        experiment: the experiment or service that is varied; empty for the package's own pipeline.
        margin: differences up to this do not matter: configurations that are shown to be that close are equal.
        held_out: share of the questions that the race never sees.
        confidence: with which all that the race says holds at once.
        seed: of the order of questions, and of their division.
        where: the file.
        digest: of what is said in it.
    """

    parameters: tuple[Parameter, ...]
    objective: tuple[str, ...]
    constraints: tuple[Gate, ...] = ()
    start: tuple[ConfigurationSpec, ...] = ()
    experiment: str = ""
    margin: float = 0.0
    held_out: float = 0.5
    confidence: float = 0.95
    seed: int = 0
    where: str = ""
    digest: str = ""

    @property
    def measures(self) -> list[str]:
        """What each row is measured by: objective and constraints, each once."""
        return list(dict.fromkeys([*self.objective, *(each.measure for each in self.constraints)]))

    def combinations(self) -> Iterator[dict[str, ParameterValue]]:
        """Yield the values of each combination, each once. A parameter whose condition does not hold has none."""
        yield from _combined(conditions_first(self.parameters), {})


def constraint_text(constraint: Gate) -> str:
    """Return a constraint as a space says it: ``p95(total_ms) <= 3000``."""
    return f"{constraint.what} {constraint.op} {constraint.right:g}"


def conditions_first(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return parameters in an order in which each stands behind those of its condition.

    Raises:
        ValueError: conditions go round in a circle; the message names the parameters of it.
    """
    ordered: list[Parameter] = []
    waiting = list(parameters)
    while waiting:
        known = named(ordered)
        ready = [each for each in waiting if all(other in known for other in each.only_if)]
        if not ready:
            raise ValueError(", ".join(named(waiting)))
        ordered += ready
        waiting = [each for each in waiting if each not in ready]
    return ordered


def _combined(
    parameters: Sequence[Parameter], chosen: dict[str, ParameterValue]
) -> Iterator[dict[str, ParameterValue]]:
    if not parameters:
        yield chosen
        return
    first, *others = parameters
    # A parameter that has no value itself fulfils no condition.
    if not all(other in chosen and chosen[other] in wanted for other, wanted in first.only_if.items()):
        yield from _combined(others, chosen)
        return
    for value in first.values:
        yield from _combined(others, {**chosen, first.name: value})


def named(values: Sequence[Parameter]) -> list[str]:
    """Return the names of parameters."""
    return [each.name for each in values]
