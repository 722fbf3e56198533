"""Whether a gate fails whatever the cases would answer that were left untested. Pure."""

from __future__ import annotations

from collections.abc import Collection
from math import fsum

from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.verdict import meets_threshold


def fails_anyway(gate: Gate, values: Collection[float], left: int, unit: str) -> bool:
    """Return whether a gate on a mean fails even if each of ``left`` more cases has the best value there is.

    Only a share, from 0 to 1, has such a value. Of any other gate, and of one that compares, it is not known.
    """
    is_other = gate.over is not None or gate.turns is not None or gate.quantile is not None or gate.calibrated
    if isinstance(gate.right, Reference) or gate.confidence is not None or is_other or unit != "share" or not values:
        return False
    best = float(">" in gate.op)
    return not meets_threshold((fsum(values) + best * left) / (len(values) + left), gate.op, gate.right)
