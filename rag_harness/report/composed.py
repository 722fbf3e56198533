"""Composite measures, computed for many rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
import numpy.typing as npt

from rag_harness.measures import Score
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.report.blocks.block import MeasureArrays, Reason

_A_VALUE: Reason = ("", True)


def composed(measure: CompositeMeasure, parts: Mapping[str, MeasureArrays]) -> MeasureArrays:
    """Return a composite of some rows, from the scores of its parts by name.

    Raises:
        ValueError: the formula gives NaN or infinity.
    """
    if type(measure).score is CompositeMeasure.score:
        return _of_formula(measure, [parts[name] for name in measure.parts])
    by_row = zip(*(_each(parts[name]) for name in measure.parts), strict=True)
    return _listed([measure.score(dict(zip(measure.parts, row, strict=True))) for row in by_row])


def _of_formula(measure: CompositeMeasure, parts: Sequence[MeasureArrays]) -> MeasureArrays:
    """Do what ``CompositeMeasure.score`` does, without an object a row. The first missing part gives the reason."""
    values, reasons = np.full(len(parts[0].values), nan), [_A_VALUE]
    absent = np.zeros(len(values), np.intp)
    for name, part in zip(measure.parts, parts, strict=True):
        lacks = (absent == 0) & (part.absent != 0)
        absent[lacks] = part.absent[lacks].astype(np.intp) + len(reasons)
        reasons += [(f"{name}: {why}", undefined) for why, undefined in part.reasons]
    whole = absent == 0
    rows = zip(*(part.values[whole].tolist() for part in parts), strict=True)
    values[whole] = [measure.combine(dict(zip(measure.parts, row, strict=True))) for row in rows]
    _check(values[whole])
    return MeasureArrays(values, absent, reasons)


def _check(values: npt.NDArray[np.float64]) -> None:
    for value in values[~np.isfinite(values)]:
        Score(float(value))  # raises an error that says what is wrong


def _each(part: MeasureArrays) -> list[Score]:
    lacking = [Score(None, why, undefined=undefined) for why, undefined in part.reasons]
    pairs = zip(part.values.tolist(), part.absent.tolist(), strict=True)
    return [lacking[number] if number else Score(value) for value, number in pairs]


def _listed(scores: Sequence[Score]) -> MeasureArrays:
    reasons: dict[Reason, int] = {}
    absent = [_number(score, reasons) for score in scores]
    values = [nan if score.value is None else score.value for score in scores]
    return MeasureArrays(np.array(values, np.float64), np.array(absent, np.intp), [_A_VALUE, *reasons])


def _number(score: Score, reasons: dict[Reason, int]) -> int:
    if score.value is not None:
        return 0
    return reasons.setdefault((score.reason or "no value", score.undefined), len(reasons) + 1)
