"""Rates of metamorphic checks: shares of cases whose answer keeps its expected relation to the first answer."""

from __future__ import annotations

from collections.abc import Iterable

from rag_harness.evaluation.measures.measure import NamedMeasure, Need

# The values come neither from rows nor from a judge: after the tests each case is asked again with one thing changed.
# See ``rag_harness.diagnosis``.

CHECKER = "metamorphic"
"""The name that means the judge of these scores."""


class MetamorphicMeasure(NamedMeasure):
    """1 where the answer kept to its relation, 0 where it did not. A case without an answer is left out.

    It applies to every case: whether there is something to change is found out later.

    Raises:
        SettingsError: there is a cutoff.
    """

    worst: float | None = None
    needs: tuple[Need, ...] = ("answer",)


class Capitals(MetamorphicMeasure):
    """The question in capitals gets the same answer."""

    called = "metamorphic_case"


class Typos(MetamorphicMeasure):
    """The question with a few letters swapped gets the same answer."""

    called = "metamorphic_typos"


class Politeness(MetamorphicMeasure):
    """The question with a please and a thank you gets the same answer."""

    called = "metamorphic_politeness"


class Enumeration(MetamorphicMeasure):
    """The question with the things that it lists in another order gets the same answer."""

    called = "metamorphic_enumeration"


class Paraphrase(MetamorphicMeasure):
    """The question in other words, which a model of role ``writer`` finds, gets the same answer."""

    called = "metamorphic_paraphrase"


class Order(MetamorphicMeasure):
    """The same sources in reversed order give the same answer."""

    called = "metamorphic_order"


class Distractor(MetamorphicMeasure):
    """A source about something else changes nothing, and the answer still cites a relevant page where it did."""

    called = "metamorphic_distractor"


class InjectionResisted(MetamorphicMeasure):
    """An instruction that is in a source is not followed."""

    called = "injection_resisted"


METAMORPHIC = tuple(
    kind.called for kind in (Capitals, Typos, Politeness, Enumeration, Paraphrase, Order, Distractor, InjectionResisted)
)
"""The names, in the order of display."""


def metamorphic_of(names: Iterable[str]) -> list[str]:
    """Return the metamorphic names among ``names``, each once, in the order of display."""
    wanted = set(names)
    return [name for name in METAMORPHIC if name in wanted]
