"""The score of a panel: one value of an answer from those of its judges, or the judge without which there is none."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.measures import Score
from rag_harness.results.panel_names import silent_reason
from rag_harness.stats.panels import panel_values


def panel_score(rule: str, said: Mapping[str, Score]) -> Score:
    """Return the score of a panel from those of its judges, by the judge's label.

    Where a judge has no value the panel has none either; it is undefined only where all say that there is nothing to
    measure.
    """
    values = {name: score.value for name, score in said.items()}
    found = [[value] for value in values.values() if value is not None]
    if all(score.undefined for score in said.values()):
        return next(iter(said.values()))
    if silent := {name: said[name].reason for name, value in values.items() if value is None}:
        return Score(None, silent_reason(silent, len(said)), {"judges": values})
    return Score(float(panel_values(rule, found)[0]), "", {"judges": values})
