"""Says in sentences what changed between two runs: in which direction, how sure that is, and what else differs.

Terminal, page and Markdown show the same sentences. Every number in them stands in the tables below them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from rag_harness.report.comparison import MeasureChange
from rag_harness.report.run_diff import FEWEST, RunDiff, p_of
from rag_harness.report.run_diff_words import change_said, cut_name, range_said, ruled_out_said
from rag_harness.report.wording import counted, joined_names

_EVEN = 0.5
"""A change that chance explains more often than not is not named."""
_NAMED = 4
_DIFFERENCES = 6

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
    if diff.spent:
        return _spending(diff.spent)
    if not diff.unsure:
        same = f"{_measures(len(changes), 'has', 'have')} the same value in both runs"
        return Sentence(f"Nothing changed: {same}, in each of {range_said(changes)}.")
    if _is_small(diff):
        cases = range_said(changes)
        few = f"{cases} {'is' if cases == '1 case' else 'are'} too few"
        return Sentence(f"Nobody can tell: {few}. A change is seen over {FEWEST} cases or more.", "unsure")
    of = f" of {len(diff.suites)} experiments" if len(diff.suites) > 1 else ""
    many = f"1 measure{of} was" if len(changes) == 1 else f"{len(changes)} measures{of} were"
    compared = f"{many} compared over the same {range_said(changes)}"
    return Sentence(f"Nothing changed that chance does not explain: {compared}.")


def _rest(diff: RunDiff) -> Iterator[Sentence]:
    if diff.answers and diff.spent:
        yield Sentence(f"It spends {_spent(diff.spent)} than before: {change_said(diff.spent[0])}.")
    sure = [*diff.answers, *diff.spent]
    if len(sure) > 1:
        yield Sentence(" ".join(_by_direction(sure)))
    if diff.answers or diff.spent:
        yield from _unchanged(diff)
    elif diff.unsure:
        yield from _seen(diff) if _is_small(diff) else _nearest(diff)
    if len(diff.suites) > 1 and (diff.answers or diff.spent):
        yield Sentence(
            "Each experiment is tested by itself: where nothing changed, chance still shows a change in 1 of 20."
        )


def _unchanged(diff: RunDiff) -> Iterator[Sentence]:
    parts = []
    if diff.unsure:
        parts.append(f"{_measures(len(diff.unsure), 'differs', 'differ')} by no more than chance explains")
    if diff.same:
        parts.append(f"{_measures(len(diff.same))} the same in every case")
    if parts:
        yield Sentence(f"Nothing else changed: {', '.join(parts)}.")


def _is_small(diff: RunDiff) -> bool:
    """Whether there are too few cases for any change to be sure."""
    return max(change.n for change in diff.found.changes) < FEWEST


def _seen(diff: RunDiff) -> Iterator[Sentence]:
    yield Sentence(f"Seen, but not sure: {change_said(diff.unsure[0])}.")


def _nearest(diff: RunDiff) -> Iterator[Sentence]:
    """Yield the change that chance explains least, and how large a change of the leading measure can still be."""
    nearest = min(diff.unsure, key=p_of)
    tests = sum(change.suite == nearest.suite for change in diff.unsure)
    adjusted = f"; p is adjusted for {tests} measures" if tests > 1 else ""
    if p_of(nearest) <= _EVEN:
        yield Sentence(f"Nearest to a change: {change_said(nearest)}{adjusted}.")
    bounded = [change for change in diff.leading if change.interval and all(map(isfinite, change.interval))]
    of_answers = [change for change in bounded if change.measure != "error_rate"]
    if of_answers:
        yield Sentence(f"Ruled out: {ruled_out_said(of_answers[0])}.")


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
    answers = "what the answers are worth did not change more than chance explains"
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
