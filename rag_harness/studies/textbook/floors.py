"""The floor: the least cosine of a chunk that is about the question. Each embedding model has its own.

The decision record says 0.7 for any model. Cosines of different models are not comparable, so
``benchmarks/textbook_floor.py`` sets a floor for each. It uses the development half of the questions, and takes the
highest floor at which at most 5 % of the answerable questions find nothing.
"""

from __future__ import annotations

from rag_harness.types import Decision

RECORD = 0.7
"""The floor in the decision record."""
CALIBRATED = {
    "sentence-transformers/all-MiniLM-L6-v2": 0.24,
    # Hashed words carry no meaning, so there is no useful floor: everything passes.
    "mock/hashed-words": 0.0,
}
"""Floors by embedding model, as the script printed them for the shipped book."""


def floor_of(model: str, kind: str) -> tuple[float, Decision]:
    """Return the floor for an embedding ``model``, and a decision that names it.

    Args:
        model: the model's name, as its publisher writes it.
        kind: ``calibrated``, ``record``, or a number from 0 to 1.

    Raises:
        ValueError: ``kind`` is none of these.
    """
    if kind == "record":
        return RECORD, Decision("floor chosen", "record", RECORD, reason="the decision record's")
    if kind != "calibrated":
        return _own(kind)
    if model in CALIBRATED:
        floor = CALIBRATED[model]
        return floor, Decision("floor chosen", "calibrated", floor, reason=f"calibrated for {model}")
    why = f"none is calibrated for {model}, so the record's stands; benchmarks/textbook_floor.py sets one"
    return RECORD, Decision("floor chosen", "record", RECORD, reason=why)


def _own(kind: str) -> tuple[float, Decision]:
    try:
        floor = float(kind)
    except ValueError:
        floor = -1.0
    if not 0 <= floor <= 1:
        raise ValueError(f"The floor is {kind!r}: expected calibrated, record, or a number from 0 to 1.")
    return floor, Decision("floor chosen", "own", floor, reason="the experiment's own")
