"""Says in sentences what changed between two runs: in which direction, how sure that is, and what else differs.

Terminal, page and Markdown show the same sentences. Every number in them stands in the tables below them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_harness.gates.cluster_names import describe_missed
from rag_harness.report.comparison import MeasureChange
from rag_harness.report.run_diff import RunDiff, is_spent
from rag_harness.report.run_diff_not_sure import NO_CHANGE, not_sure_said, settling_said
from rag_harness.report.run_diff_words import change_said, cut_name, named, range_said
from rag_harness.report.wording import counted, joined_names, listed

_NAMED = 4
_DIFFERENCES = 6
_MOVED = 3
"""Experiments of which the moved questions are named."""

Tone = Literal["", "good", "bad", "unsure"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or two, and what it means: good, bad, unsure; "" is neutral."""

    text: str
    tone: Tone = ""


def sentences(diff: RunDiff) -> list[Sentence]:
    """Return what is to be read first. The first sentence says what changed, and in which direction."""
    if diff.found.is_same_run:
        return [Sentence(f"The two runs are the same: both are of {diff.found.now}.", "unsure")]
    return [
        _first(diff),
        *map(moved_said, diff.moved[:_MOVED]),
        Sentence(_differing(diff.found.differing)),
        *map(talks_said, diff.worse_talks),
        *_rest(diff),
        *(Sentence(text, "unsure") for text in diff.found.warnings),
    ]


def _first(diff: RunDiff) -> Sentence:
    changes = diff.found.changes
    if not changes:
        return Sentence("Nothing can be compared: no case has a value of the same measure in both runs.", "unsure")
    if diff.answers:
        return _verdict(diff.answers)
    if diff.spent and not _moving_answers(diff):
        return _spending(diff.spent)
    if not diff.unsure_answers and not diff.moving:
        same = [change for change in changes if change.is_same and (change.is_tested or not diff.seen)]
        head = "Nothing changed in the answers" if diff.unsure else "Nothing changed"
        head = "Nothing changed in what is tested" if diff.seen else head
        if same and diff.found.alone:
            return _partly_measured(diff, same)
        values = f"{_measures(len(same), 'has', 'have')} the same value in both runs, in each of {range_said(same)}"
        return Sentence(f"{head}: {values}." if same else f"{NO_CHANGE}: only time, tokens or money were compared.")
    said = not_sure_said(diff)
    return Sentence(said, "" if said.startswith(NO_CHANGE) else "unsure")


def _partly_measured(diff: RunDiff, same: Sequence[MeasureChange]) -> Sentence:
    """Say that what can be compared is the same, and that some measures have values in one of the runs alone."""
    both = f"Only in part comparable: {_measures(len(same), 'has', 'have')} the same value in both runs, in each of"
    alone = [
        f"{listed(names, _NAMED)} of {cut_name(name)} {'has' if len(names) == 1 else 'have'} values only {whose}"
        for name, whose, names in diff.found.alone
    ]
    return Sentence(f"{both} {range_said(same)}; {'; '.join(alone)}.", "unsure")


def _moving_answers(diff: RunDiff) -> list[MeasureChange]:
    return [change for change in diff.moving if not is_spent(change)]


def _rest(diff: RunDiff) -> Iterator[Sentence]:
    if diff.spent and (diff.answers or _moving_answers(diff)):
        yield Sentence(f"It spends {_spent(diff.spent)} than before: {change_said(diff.spent[0])}.")
    sure = [*diff.answers, *diff.spent]
    if len(sure) > 1:
        yield Sentence(" ".join(_by_direction(sure)))
    yield from _seen(diff)
    if sure:
        yield from _unchanged(diff)
        yield from assumed_said(diff)
    elif diff.unsure:
        yield from map(Sentence, settling_said(diff))
    if len(diff.suites) > 1 and sure:
        yield Sentence("Each experiment is tested by itself: chance shows a change in 1 of 20 that did not change.")


def assumed_said(diff: RunDiff) -> Iterator[Sentence]:
    """Say what the paired tests of sure changes assume, for the fewest cases."""
    if tested := [change for change in (*diff.answers, *diff.spent) if change.assumed]:
        fewest = min(tested, key=lambda each: each.assumed)
        yield Sentence(f"A change is sure only {describe_missed(fewest.assumed, fewest.unit)}.")


def _seen(diff: RunDiff) -> Iterator[Sentence]:
    """Name the measures that differ and are not tested; their values stand in the tables."""
    if diff.seen:
        names = list(dict.fromkeys(cut_name(change.measure) for change in diff.seen))
        yield Sentence(f"Seen, not tested: {listed(names, _NAMED)}.")


def moved_said(change: MeasureChange) -> Sentence:
    """Say how many questions got better and worse, and name the first of them, the worse ones first."""
    counts = [f"{len(change.gained)} better", f"{len(change.lost)} worse"]
    names = [f"{case} (worse)" for case in change.lost] + list(change.gained)
    more = len(names) - _NAMED
    shown = ", ".join([*names[:_NAMED], *([f"{more} more"] if more > 0 else [])])
    tone: Tone = "bad" if change.is_surely_worse else ""
    return Sentence(f"{named(change)}: {', '.join(counts)}: {shown}.", tone)


def _unchanged(diff: RunDiff) -> Iterator[Sentence]:
    """Say how many measures show no sure change, and which of these may have changed."""
    parts = [f"{_measures(len(diff.unsure), 'differs', 'differ')}"] if diff.unsure else []
    parts += [f"{_measures(len(diff.same))} the same in every case"] if diff.same else []
    if parts:
        yield Sentence(f"No other change is sure: {', '.join(parts)}.")
    if diff.moving and (diff.answers or not _moving_answers(diff)):
        yield Sentence(f"Undecided: {_names([change.measure for change in diff.moving])}.", "unsure")


def talks_said(change: MeasureChange) -> Sentence:
    """Name the conversations of a suite that got worse, each with its first turn that did."""
    found = change.conversations
    assert found
    named = [f"{cut_name(each.conversation)} from turn {each.turn}" for each in found.worse[:_NAMED]]
    more = len(found.worse) - _NAMED
    shown = joined_names([*named, f"{more} more"] if more > 0 else named)
    better = f"; {found.better} got better" if found.better else ""
    of = f"{len(found.worse)} of {counted(found.total, 'conversation')} of {cut_name(change.suite)}"
    text = f"{of} got worse in {cut_name(change.measure)}: {shown}{better}."
    return Sentence(text, "bad" if change.is_surely_worse else "unsure")


def _differing(differing: Sequence[str]) -> str:
    if not differing:
        return "Different between them: nothing that is known; models, settings, packages and commit are the same."
    named = [_difference_said(text) for text in differing]
    more = len(named) - _DIFFERENCES
    shown = [*named[:_DIFFERENCES], f"{more} more"] if more > 0 else named
    return f"Different between them: {joined_names(shown)}."


def same_said(names: Sequence[str]) -> str:
    """Return the line for measures that are the same in both; empty where there are none."""
    return f"{_measures(len(names))} the same in both: {', '.join(names)}" if names else ""


def _verdict(changes: Sequence[MeasureChange]) -> Sentence:
    """Name the direction, with the leading change, or where there are both directions the leading change of each."""
    by_direction = {way: [each for each in changes if each.direction == way] for way in ("worse", "better", "changed")}
    worse, better = by_direction["worse"], by_direction["better"]
    if worse and better:
        both = f"{change_said(worse[0])}; but {change_said(better[0])}"
        return Sentence(f"Now is worse than before in one way and better in another: {both}.", "unsure")
    if worse:
        return Sentence(f"Now is worse than before: {change_said(worse[0])}.", "bad")
    if better:
        return Sentence(f"Now is better than before: {change_said(better[0])}.", "good")
    return Sentence(f"Now differs from before, and is neither better nor worse: {change_said(changes[0])}.", "unsure")


def _spending(changes: Sequence[MeasureChange]) -> Sentence:
    tones: dict[str, Tone] = {"less": "good", "more": "bad"}
    how = _spent(changes)
    answers = "no change of what the answers are worth is sure"
    return Sentence(f"Now spends {how} than before: {change_said(changes[0])}; {answers}.", tones.get(how, "unsure"))


def _spent(changes: Sequence[MeasureChange]) -> str:
    """Return whether now spends less or more; "otherwise" where that hangs on the measure."""
    ways = {change.direction for change in changes}
    return {"better": "less", "worse": "more"}["".join(ways)] if len(ways) == 1 else "otherwise"


def _by_direction(changes: Sequence[MeasureChange]) -> Iterator[str]:
    """Yield which measures of which experiments got worse, better, or neither."""
    for way, word in (("worse", "Worse"), ("better", "Better"), ("changed", "Neither better nor worse")):
        suites: dict[str, list[str]] = {}
        for change in changes:
            if change.direction == way:
                suites.setdefault(change.suite, []).append(change.measure)
        if suites:
            named = [f"{_names(names)} of {cut_name(suite)}" for suite, names in suites.items()]
            more = len(named) - _NAMED
            shown = [*named[:_NAMED], f"measures of {more} more"] if more > 0 else named
            yield f"{word}: {joined_names(shown)}."


def _names(names: Sequence[str]) -> str:
    return f"{len(names)} measures" if len(names) > _NAMED else joined_names([cut_name(name) for name in names])


def _measures(count: int, one: str = "is", many: str = "are") -> str:
    return f"{count} measure {one}" if count == 1 else f"{count} measures {many}"


def _difference_said(text: str) -> str:
    """Return "top_k (before 5, now 4)" of "settings.top_k: 5 -> 4"."""
    name, _, values = text.partition(": ")
    before, _, now = values.partition(" -> ")
    for prefix in ("models.", "settings."):
        name = name.removeprefix(prefix)
    name = f"package {name.removeprefix('packages.')}" if name.startswith("packages.") else name
    return f"the {name}" if name == "documents" else f"{cut_name(name)} (before {before}, now {now})"
