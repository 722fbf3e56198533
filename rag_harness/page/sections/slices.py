"""The section about slices: which experiment wins on which slice, where the run was asked for slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, Tone, word_cells
from rag_harness.page.figures import NONE, name_said
from rag_harness.page.run import Run
from rag_harness.report.pairwise import PairDifference as Pair
from rag_harness.report.pairwise_lines import figures
from rag_harness.report.standing import SliceStanding, Standings
from rag_harness.report.standing_lines import mean_said
from rag_harness.report.wording import counted

_HEAD = ("slice", "measure", "cases", "best", "mean", "beats", "no sure difference from", "the same on every case")
_PAIRS = ("slice", "measure", "pair", "n", "difference", "interval", "p (t)", "p (perm)")
_MARKS = (
    "Best: ahead of most others, case by case; all: everybody has the same values. ★ better than every other with a "
    "value, each difference significant by paired t and by permutation test after Holm's correction; with = several "
    "that have the same value on every case, which win together."
)
_FAMILY = (
    "p and the intervals of differences are adjusted by Holm for {}: every pair on every slice that is asked for. The "
    "pairs of the best alone would be too few, for the same cases say which it is and how much better."
)


def slices(runs: Sequence[Run]) -> Section | None:
    """Return the first run's standings on slices; None where none were asked for, or no experiment has a rival."""
    blocks = [*_blocks(runs[0].standings)]
    return Section("slices", "Which wins where", blocks) if blocks else None


def _blocks(found: Standings) -> Iterator[Block]:
    if found.found:
        data = ("data",) if found.several else ()
        notes = [_MARKS, _FAMILY.format(counted(found.tests, "test")), *_without(found)]
        rows = [[*_data(each, found), *_row(each)] for each in found.found]
        caption = "The best experiment of each slice; its mean with the 95 % interval"
        yield Table("slices", (*data, *_HEAD), rows, caption, notes)
        pairs = [[*_data(each, found), *row] for each in found.found for row in _pairs(each)]
        caption = "The best minus each other experiment, over the cases that both have a value of"
        yield More("By how much, on each slice", [Table("slices-pairs", (*data, *_PAIRS), pairs, caption)])
    yield from (Prose(f"{why}.", "unsure") for why in found.blank)


def _data(each: SliceStanding, found: Standings) -> list[Cell]:
    return [Cell(each.data)] if found.several else []


def _row(each: SliceStanding) -> list[Cell]:
    name = "all" if each.is_level else " = ".join(each.winners) or each.best
    best = Cell(name, is_best=bool(each.winners))
    behind = f"behind {_names(each.ahead)}" if each.ahead else ""
    rivals = (_names(each.beaten), "; ".join(text for text in (_names(each.open), behind) if text), _names(each.equal))
    told = [Cell(text) if text else Cell(NONE, "mute") for text in rivals]
    return [*word_cells(each.name, name_said(each.measure), str(each.cases)), best, Cell(mean_said(each)), *told]


def _names(pairs: Sequence[Pair]) -> str:
    return ", ".join(pair.second for pair in pairs)


def _pairs(each: SliceStanding) -> Iterator[list[Cell]]:
    """Yield one line for each difference. A missing difference has a reason."""
    for pair in each.against:
        place = word_cells(each.name, name_said(each.measure), pair.pair)
        if pair.found is None:
            yield [*place, *(Cell(NONE, "mute", hint=pair.reason) for _ in range(5))]
            continue
        n, difference, between, _, p_t, p_permutation = figures(pair.found, pair.p_t, pair.p_permutation)
        tone: Tone = "good" if pair in each.beaten else "bad" if pair in each.ahead else "unsure"
        yield [*place, Cell(n), Cell(difference, tone, hint=pair.reason), *word_cells(between, p_t, p_permutation)]


def _without(found: Standings) -> Iterator[str]:
    """Yield the experiments that have no value on a slice, but have values on others."""
    for each in found.found:
        if each.without:
            yield f"{each.name}: no {name_said(each.measure)} of {', '.join(each.without)}."
