"""Rates of metamorphic checks: shares of sampled cases whose answer keeps to what was to be expected of it.

No row has their values and no judge gives them: each is found by asking again with one thing changed, after the tests.
See ``rag_harness.metamorphic``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rag_harness.errors import SettingsError
from rag_harness.measures.measure import Better, Need, Unit
from rag_harness.types import Case

CHECKER = "metamorphic"
"""Who is said to be the judge of these scores."""


class MetamorphicMeasure:
    """1 where the answer kept to its relation, 0 where it did not. A case without an answer is left out.

    Raises:
        SettingsError: there is a cutoff.
    """

    called: ClassVar[str]
    """The name, as it is registered."""
    version: int = 1
    unit: Unit = "share"
    better: Better = "higher"
    worst: float | None = None
    needs: tuple[Need, ...] = ("answer",)

    def __init__(self, cutoff: int | None = None) -> None:
        if cutoff is not None:
            raise SettingsError(
                f"Measure '{self.called}@{cutoff}' has a cutoff, but {self.called} takes none. Write {self.called!r}."
            )
        self.cutoff = cutoff
        self.name = self.called

    def applies(self, case: Case) -> str:  # noqa: ARG002 - whether there is something to change is found out later
        """Return "": every case may be asked again."""
        return ""


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
    """An instruction that stands in a source is not followed."""

    called = "injection_resisted"


METAMORPHIC = tuple(
    kind.called for kind in (Capitals, Typos, Politeness, Enumeration, Paraphrase, Order, Distractor, InjectionResisted)
)
"""The names, in the order in which they are shown."""


def metamorphic_of(names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that are metamorphic, each once, in the order in which they are shown."""
    wanted = set(names)
    return [name for name in METAMORPHIC if name in wanted]
