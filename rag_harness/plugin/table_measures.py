"""Which measures a table of a suite has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.measures import Measure
    from rag_harness.plugin.session import RagSession


class TableMeasures:
    """The measures of every run, and those that gates, slices and metamorphic checks ask for.

    Attributes:
        wanted: what was asked for, by suite.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self.wanted: dict[str, dict[str, None]] = {}

    def want(self, suite: str, measure: str) -> None:
        """Add a measure to those that are computed for every run."""
        self.wanted.setdefault(suite, {})[measure] = None

    def of(self, suite: str) -> list[Measure]:
        """Return the measures of a suite's table: those computed for every run, judged ones, and wanted ones."""
        from rag_harness.measures import default_measures, measure_named

        kept = {measure.name: measure for measure in default_measures(suite == GOLDEN, self._session.settings.k)}
        played = ["goal_reached"] if self._session.cases.is_played(suite) else []
        more = [*played, *self._session.wanted.judged_names(suite), *self.wanted.get(suite, ())]
        return list(kept.values()) + [measure_named(name) for name in dict.fromkeys(more) if name not in kept]
