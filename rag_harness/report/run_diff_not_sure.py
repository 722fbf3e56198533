"""Says what two runs show where no change is sure: too few cases, an undecided change, or no large change.

A change that is not shown is not the same as no change. Few cases show neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isclose, isfinite

from rag_harness.gates.units import value_said
from rag_harness.report.cases_needed import fewest_cases, least_p
from rag_harness.report.comparison import MeasureChange, unit_named
from rag_harness.report.pairwise import ALPHA, excludes_0
from rag_harness.report.pairwise_lines import p_said
from rag_harness.report.run_diff import LARGE, RunDiff, is_of_one, large, p_of
from rag_harness.report.run_diff_words import change_said, level_said, named, range_said, ruled_out_said
from rag_harness.report.wording import counted

NO_CHANGE = "No change is shown"
_EVEN = 0.5
"""A change that chance explains more often than not is not named."""
_NAMED = 2


def not_sure_said(diff: RunDiff) -> str:
    """Return the first sentence about runs without a sure change, with the measures that may have changed."""
    if not diff.can_be_sure:
        return f"Undecided: {_too_few(diff)}{_seen(diff)}"
    if diff.moving:
        on = f" on {_tests(diff, diff.moving[0])}" if diff.tests(diff.moving[0]) > 1 else ""
        return f"Undecided: {_are(diff.moving)} too few for a verdict{on}.{_seen(diff)}"
    if diff.wide:
        open_said = f"{_are(diff.wide)} too few to rule out {_large(diff)} in {counted(len(diff.wide), 'measure')}"
        return f"Undecided: no change is shown, but {open_said}.{_nearest(diff)}"
    n = len(diff.unsure_answers)
    levels = {level_said(change) for change in diff.unsure_answers}
    level = levels.pop() if len(levels) == 1 else "corrected"
    intervals = f"its {level} interval contains" if n == 1 else f"each {level} interval contains"
    head = (
        f"{counted(n, 'measure')} {'differs' if n == 1 else 'differ'} over the same {range_said(diff.unsure_answers)}"
    )
    return f"{NO_CHANGE}: {head}; {intervals} 0 and rules out {_large(diff)}.{_nearest(diff)}"


def settling_said(diff: RunDiff) -> Iterator[str]:
    """Yield why the first of the changes is undecided, what would settle it, and what is ruled out."""
    if diff.moving:
        yield _why(diff, diff.moving[0])
        yield from _remedy(diff, diff.moving[0])
    elif diff.can_be_sure:
        yield from _more_cases(diff)
        # None of them is moving, so each interval contains 0.
        bounded = [each for each in diff.leading if each.interval and all(map(isfinite, each.interval))]
        of_answers = [each for each in bounded if each.measure != "error_rate"]
        yield from (f"Ruled out: {ruled_out_said(each)}." for each in of_answers[:1])


def _too_few(diff: RunDiff) -> str:
    """Say that these cases cannot make any change sure, which p they can reach, and how many cases can."""
    best = min(diff.unsure, key=lambda each: least_p(each.units, diff.tests(each)))
    tests = diff.tests(best)
    what = "cluster" if best.alike else "case"
    what = next((each for each in ("page", "conversation") if each in best.alike), what)
    alike = f" {best.alike}" if best.alike else ""
    together = f"with {_tests(diff, best)} that differ " if tests > 1 else ""
    least = least_p(best.units, tests)
    said = "p is 1" if least == 1 else f"p is at least {p_said(least)}"
    fewest = fewest_cases(tests)
    more = f". From {counted(fewest, what)} on p can be {ALPHA} or less" if fewest else ""
    return f"{_are(diff.found.changes, alike)} too few for a verdict: {together}{said}, whatever they show{more}."


def _seen(diff: RunDiff) -> str:
    """Name what may have changed, with its figures; without any such measure, the most telling one that differs."""
    moved = diff.moving or [each for each in diff.unsure if each.difference][:1]
    said = "; ".join(map(change_said, moved[:_NAMED]))
    more = f"; and {counted(len(moved) - _NAMED, 'more measure')}" if len(moved) > _NAMED else ""
    return f" Seen, but not sure: {said}{more}." if said else ""


def _nearest(diff: RunDiff) -> str:
    nearest = min(diff.unsure_answers, key=p_of)
    adjusted = f"; p is adjusted for {_tests(diff, nearest)}" if diff.tests(nearest) > 1 else ""
    return f" Nearest to a change: {change_said(nearest)}{adjusted}." if p_of(nearest) <= _EVEN else ""


def _why(diff: RunDiff, change: MeasureChange) -> str:
    p, tests = p_of(change), diff.tests(change)
    if p <= ALPHA:
        return (
            f"p of {named(change)} is at most {ALPHA}, but its interval contains 0. A change is sure where both agree."
        )
    differ = len(change.rose) + len(change.fell)
    is_least = not change.clusters and isclose(p, least_p(differ, tests))
    least = f" No p is lower with {counted(differ, 'case')} that differ{'s' * (differ == 1)}." if is_least else ""
    adjusted = f", adjusted for {_tests(diff, change)} (Holm)," if tests > 1 else ""
    if tests > 1 and not excludes_0(change.interval):
        alone = f"The 95 % interval of {named(change)} alone does not contain 0"
        return f"{alone}, but adjusted for {_tests(diff, change)} (Holm) it does, and p is above {ALPHA}.{least}"
    return f"The interval of {named(change)} does not contain 0, but p{adjusted} is above {ALPHA}.{least}"


def _remedy(diff: RunDiff, change: MeasureChange) -> Iterator[str]:
    more = _more(diff, change, abs(change.difference))
    ways = [f"about {counted(more, 'more case')} like these"] if more else []
    if diff.tests(change) > 1:
        ways.append(f"a gate on {change.measure} alone, which you choose before the next run")
    if ways:
        yield f"What would settle it: {', or '.join(ways)}."


def _more_cases(diff: RunDiff) -> Iterator[str]:
    """Say how many more cases would show a large change of the most telling measure that may have one."""
    for change in diff.wide[:1]:
        gap = large(change)
        if more := _more(diff, change, gap):
            size = f"{LARGE:g}" if is_of_one(change) else value_said(gap, unit_named(change.measure))
            yield f"About {counted(more, 'more case')} like these would show a change of {named(change)} by {size}."


def _more(diff: RunDiff, change: MeasureChange, gap: float) -> int | None:
    needed = change.needed.of(gap, diff.tests(change)) if change.needed else None
    return needed - change.n if needed and needed > change.n else None


def _large(diff: RunDiff) -> str:
    return f"a change of {LARGE:g} or more" if all(map(is_of_one, diff.unsure_answers)) else "a large change"


def _tests(diff: RunDiff, change: MeasureChange) -> str:
    return counted(diff.tests(change), "measure")


def _are(changes: Sequence[MeasureChange], alike: str = "") -> str:
    cases = range_said(changes)
    return f"{cases}{alike} {'is' if cases == '1 case' else 'are'}"
