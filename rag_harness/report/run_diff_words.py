"""Writes the change of a measure in words, with its figures, for the sentences about two runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from rag_harness.gates.units import told_apart
from rag_harness.report.comparison import MeasureChange, unit_named
from rag_harness.report.pairwise_lines import p_said

_LONGEST_NAME, _HALF = 40, 19


def change_said(change: MeasureChange) -> str:
    """Return a change with its figures: "recall@5 of e3 fell from 0.717 to 0.677 (-0.040, …) over the same cases"."""
    before, now = told_apart(change.before, change.now, unit_named(change.measure), same=not change.difference)
    way = "rose" if change.difference > 0 else "fell" if change.difference < 0 else "has the same mean,"
    moved = f"{way} from {before} to {now}" if change.difference else f"{way} {now}"
    figures = [_signed(change, change.difference), interval_of(change)]
    figures += [f"p {p_said(change.p)}" if change.p is not None else ""]
    return f"{named(change)} {moved} ({', '.join(filter(None, figures))}) over the same {_cases(change.n)}"


def ruled_out_said(change: MeasureChange) -> str:
    """Return beyond which ends a change of the measure would have been seen; its interval must be known."""
    assert change.interval
    ends = [_signed(change, end) for end in change.interval]
    return f"a change of {named(change)} below {ends[0]} or above {ends[1]} ({level_said(change)} interval)"


def interval_of(change: MeasureChange) -> str:
    """Return the interval of a change; an end that is open is said to be; empty where the cases allow none."""
    if not change.interval:
        return ""
    ends = [_signed(change, end) if isfinite(end) else "any" for end in change.interval]
    return f"{level_said(change)} interval {ends[0]} to {ends[1]}"


def level_said(change: MeasureChange) -> str:
    """Return the confidence of a change's interval: "95 %", or more where Holm judges it among several measures."""
    percent = 100 * change.confidence
    return next(f"{text} %" for digits in (3, 4, 5, 6, 15) if (text := f"{percent:.{digits}g}") != "100")


def range_said(changes: Sequence[MeasureChange]) -> str:
    """Return over how many cases measures were compared: "94 to 200 cases"."""
    fewest, most = min(change.n for change in changes), max(change.n for change in changes)
    return _cases(most) if fewest == most else f"{fewest} to {most} cases"


def cut_name(name: str) -> str:
    """Return a name on one line; of one that would fill the sentence its beginning and its end."""
    flat = " ".join(name.split())
    return flat if len(flat) <= _LONGEST_NAME else f"{flat[:_HALF]}…{flat[-_HALF:]}"


def named(change: MeasureChange) -> str:
    """Return a measure with its experiment: "recall@5 of e3"."""
    return f"{cut_name(change.measure)} of {cut_name(change.suite)}"


def _cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n} cases"


def _signed(change: MeasureChange, value: float) -> str:
    """Return a number with its sign, and with as many digits as show that it is not 0."""
    text = told_apart(value, 0.0, unit_named(change.measure), same=not value)[0]
    return text if text.startswith("-") else f"+{text}"
