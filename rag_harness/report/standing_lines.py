"""Writes for the terminal which experiment wins on which slice, and which differences are significant. 79 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from rag_harness.gates.units import bounds, value_said
from rag_harness.report.pairwise import PairDifference
from rag_harness.report.pairwise_lines import measure_said, p_said
from rag_harness.report.standing import SliceStanding, Standings

_WIDTH = 79
_WIDEST_NAME = 36
_TIE = "\N{NO-BREAK SPACE}"
FEW = 10
"""With fewer cases than this a test has little power, and the lines say so."""
_HEAD = (
    "the best of each slice, its mean and its lead over the same cases, with 95 % intervals; a winner beats every "
    "other; p, the larger of t and permutation test, and the lead's interval are by Holm over {}: all pairs on all "
    "slices"
)


def standing_lines(found: Standings) -> list[str]:
    """Return the lines; none where no two experiments have the same data."""
    tests = _kept_together(f"{found.tests} tests")
    lines = _wrapped(_HEAD.format(tests)) if found.found else []
    for (data, _), group in groupby(found.found, lambda each: (each.data, each.measure)):
        lines += _group(list(group), f" on {data}" if found.several else "")
    return [_cut(line) for line in [*lines, *(part for why in found.blank for part in _wrapped(why))]]


def _group(group: Sequence[SliceStanding], data: str) -> Iterator[str]:
    """Yield the slices of one measure."""
    names = [_short(each.name) for each in group]
    title = f"{measure_said(group[0].measure)}{data}"
    width = max(map(len, [title, *names]))
    cases = max(5, *(len(str(each.cases)) for each in group))
    yield f"{title:<{width}}  {'cases':>{cases}}  best"
    for name, each in zip(names, group, strict=True):
        best = "all" if each.is_level else " = ".join(each.winners) or each.best
        yield f"{name:<{width}}  {each.cases:>{cases}}  {best} {mean_said(each)}"
        yield from _wrapped("; ".join(_told(each)), "  ")


def mean_said(each: SliceStanding) -> str:
    """Return the best one's mean with its interval, and the number of cases where some have no value."""
    between = f" {bounds(*each.interval, each.unit, digits=3)}" if each.interval else ""
    return f"{value_said(each.mean, each.unit)}{between}{_of(each.n, each)}"


def _told(each: SliceStanding) -> Iterator[str]:
    """Yield the winner, or which experiments do not differ significantly from the best, and which do."""
    few = f"only {each.cases} cases, " if each.cases < FEW else ""
    if each.winners:
        nearest, *others = each.beaten
        win = "wins" if len(each.winners) == 1 else "win, with the same value on every case"
        yield f"{few}{' = '.join(each.winners)} {win}: {_difference(nearest, each)} over {_names([nearest], each)}"
        yield from [f"over {_differences(others, each)}"] if others else []
    else:
        yield f"{few}no winner: {_undecided(each)}"
        yield from _others(each)
    if each.without:
        yield f"no value: {', '.join(each.without)}"


def _others(each: SliceStanding) -> Iterator[str]:
    """Yield which experiments differ significantly from a best that has not won."""
    if each.equal and not each.is_level:
        yield f"the same on every case: {_names(each.equal, each)}"
    if each.ahead:
        yield f"behind {_differences(each.ahead, each)}"
    if each.beaten:
        yield f"beats {_differences(each.beaten, each)}"


def _undecided(each: SliceStanding) -> str:
    if each.is_level:
        return "all are the same on every case"
    if not each.open:
        return "not every other is beaten"
    first, *others = each.open
    more = f"; nor from {_names(others, each)}" if others else ""
    return f"no sure difference from {_names([first], each)}, {_difference(first, each)}{more}"


def _difference(cell: PairDifference, each: SliceStanding) -> str:
    """Return a difference with its interval and p, or the reason for none."""
    if cell.found is None:
        return cell.reason
    between = f" {bounds(*cell.found.interval, each.unit, signed=True, digits=3)}" if cell.found.interval else ""
    return _kept_together(f"{_signed(cell.found.difference, each.unit)}{between} ({_p(cell)})")


def _differences(cells: Sequence[PairDifference], each: SliceStanding) -> str:
    """Return names with differences."""
    found = [(cell, cell.found.difference) for cell in cells if cell.found]
    return ", ".join(
        _kept_together(f"{_names([cell], each)} {_signed(difference, each.unit)} ({_p(cell)})")
        for cell, difference in found
    )


def _p(cell: PairDifference) -> str:
    if cell.p_t is None or cell.p_permutation is None:
        return f"no test: {cell.found.reason}" if cell.found else "no test"
    return f"p {p_said(max(cell.p_t, cell.p_permutation))}"


def _signed(value: float, unit: str) -> str:
    return ("+" if value >= 0 else "") + value_said(value, unit)


def _names(cells: Sequence[PairDifference], each: SliceStanding) -> str:
    """Return the other experiments, with the number of common cases where that is smaller than the slice."""
    return ", ".join(_kept_together(cell.second + (_of(cell.found.n, each) if cell.found else "")) for cell in cells)


def _of(n: int, each: SliceStanding) -> str:
    return f" (n={n})" if n < each.cases else ""


def _wrapped(text: str, indent: str = "") -> list[str]:
    lines = wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def _kept_together(text: str) -> str:
    """Return the text with its spaces tied, so that no line breaks inside it."""
    return text.replace(" ", _TIE)


def _short(name: str) -> str:
    flat = " ".join(name.split())
    return flat if len(flat) <= _WIDEST_NAME else f"{flat[: _WIDEST_NAME - 1]}…"


def _cut(line: str) -> str:
    return line.rstrip() if len(line.rstrip()) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
