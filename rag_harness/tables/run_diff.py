"""The differences of two runs in sentences: changed and unchanged measures, and their certainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Literal

from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.runs.gates.evidence import describe_missed
from rag_harness.runs.gates.verdict import told_apart, value_said
from rag_harness.tables.comparison import Comparison, MeasureChange, unit_named
from rag_harness.tables.pairwise import ALPHA, excludes_0, fewest_cases, least_p, p_said
from rag_harness.tables.wording import counted, joined_names, listed

_LEADING = (
    "error_rate", "correct", "answer_correctness", "expectations", "g_mean", "faithfulness", "factuality", "recall@5",
    "evidence_recall", "mrr@10", "token_f1",
)  # fmt: skip
"""The measures that are named first, the most telling first. Others follow by their p."""
_SPENT = ("ms", "usd", "tokens")
_OF_ONE = ("share", "score")
LARGE = 0.1
"""A large change: this much of a share or a score, and this part of the value before of anything else."""


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The measures of two runs, grouped by their change, the most significant first.

    Attributes:
        answers: significant changes in measures of the answers.
        spent: significant changes in time, tokens and money.
        unsure: measures whose difference may be chance.
        seen: measures that differ and are not tested.
        same: measures with the same value in every case.
        found: the comparison of the two runs.
    """

    answers: Sequence[MeasureChange]
    spent: Sequence[MeasureChange]
    unsure: Sequence[MeasureChange]
    seen: Sequence[MeasureChange]
    same: Sequence[MeasureChange]
    found: Comparison

    @property
    def moving(self) -> list[MeasureChange]:
        """Measures of which p and interval disagree about a change; those of the answers first."""
        found = [change for change in self.unsure if change.is_moving]
        return sorted(found, key=lambda each: (is_spent(each), _order(each)))

    @property
    def unsure_answers(self) -> list[MeasureChange]:
        """The measures of what the answers are worth that differ by no more than chance explains."""
        return [change for change in self.unsure if not is_spent(change)]

    @property
    def wide(self) -> list[MeasureChange]:
        """Those of ``unsure_answers`` whose interval does not rule out a large change, the most telling first."""
        return [change for change in self.unsure_answers if not _rules_out_large(change)]

    @property
    def can_be_sure(self) -> bool:
        """Whether p of any measure could be at most 5 %, whatever so many cases show."""
        return any(least_p(change.units, self.tests(change)) <= ALPHA for change in self.unsure)

    def tests(self, change: MeasureChange) -> int:
        """Return for how many measures p of a change is adjusted: the tested ones of its suite that differ."""
        return sum(each.suite == change.suite and each.is_tested and not each.is_same for each in self.found.changes)

    @property
    def suites(self) -> list[str]:
        """The suites that are compared."""
        return list(dict.fromkeys(change.suite for change in self.found.changes))

    def changed(self, suite: str) -> bool:
        """Whether a measure of a suite has changed more than chance explains."""
        return any(change.suite == suite for change in (*self.answers, *self.spent))

    def rows(self, suite: str) -> list[MeasureChange]:
        """Return the measures of a suite that differ: surely changed ones, other tested ones, then the rest."""
        by_p = sorted(self.unsure, key=p_of)
        return [change for change in (*self.answers, *self.spent, *by_p, *self.seen) if change.suite == suite]

    def same_of(self, suite: str) -> list[str]:
        """Return the measures of a suite that have the same value in every case."""
        return [change.measure for change in self.same if change.suite == suite]

    @property
    def worse_talks(self) -> list[MeasureChange]:
        """For each suite with conversations that got worse, the measure that shows it: a surely worse one if any."""
        changes = [change for change in (*self.answers, *self.leading) if _has_worse(change)]
        # An error counts as the worst on every measure, so the others show its conversations, too.
        ordered = sorted(changes, key=lambda each: (not each.is_surely_worse, each.measure == "error_rate"))
        first: dict[str, MeasureChange] = {}
        for change in ordered:
            first.setdefault(change.suite, change)
        return list(first.values())

    @property
    def leading(self) -> Sequence[MeasureChange]:
        """What is not surely changed, the most telling first."""
        return sorted((*self.unsure, *self.seen, *self.same), key=_order)

    @property
    def moved(self) -> list[MeasureChange]:
        """For each suite where cases got better or worse, the measure that says which: ``correct`` if known."""
        first: dict[str, MeasureChange] = {}
        for change in sorted(self.found.changes, key=lambda each: (each.measure != CORRECT, not each.is_tested)):
            if change.gained or change.lost:
                first.setdefault(change.suite, change)
        return list(first.values())


def run_diff(found: Comparison) -> RunDiff:
    """Group the measures of a comparison by their change."""
    ordered = sorted(found.changes, key=_order)
    sure = [change for change in ordered if change.is_sure]
    differing = [change for change in ordered if not (change.is_sure or change.is_same)]
    unsure = [change for change in differing if change.is_tested]
    seen = [change for change in differing if not change.is_tested]
    answers = [change for change in sure if not is_spent(change)]
    spent = [change for change in sure if is_spent(change)]
    return RunDiff(answers, spent, unsure, seen, [change for change in ordered if change.is_same], found)


def _order(change: MeasureChange) -> tuple[int, float, str, str]:
    place = _LEADING.index(change.measure) if change.measure in _LEADING else len(_LEADING)
    return place, p_of(change), change.suite, change.measure


def _has_worse(change: MeasureChange) -> bool:
    return not is_spent(change) and change.conversations is not None and bool(change.conversations.worse)


def is_spent(change: MeasureChange) -> bool:
    """Whether a measure is of time, tokens or money."""
    return unit_named(change.measure) in _SPENT


def is_of_one(change: MeasureChange) -> bool:
    """Whether a measure is a share or a score."""
    return unit_named(change.measure) in _OF_ONE


def large(change: MeasureChange) -> float:
    """Return from which size on a change of a measure is large, in the unit of the measure."""
    return LARGE if is_of_one(change) else LARGE * abs(change.before)


def _rules_out_large(change: MeasureChange) -> bool:
    return change.interval is not None and max(map(abs, change.interval)) < large(change)


def p_of(change: MeasureChange) -> float:
    """Return p; 1 where every case is the same."""
    return 1.0 if change.p is None else change.p


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


# Says what two runs show where no change is sure: too few cases, an undecided change, or no large change.
#
# A change that is not shown is not the same as no change. Few cases show neither.

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


# Says in sentences what changed between two runs: in which direction, how sure that is, and what else differs.
#
# Terminal, page and Markdown show the same sentences. Every number in them is in the tables below them, too.

_MOST_NAMED = 4
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
        f"{listed(names, _MOST_NAMED)} of {cut_name(name)} {'has' if len(names) == 1 else 'have'} values only {whose}"
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
    yield from _untested_sentences(diff)
    if sure:
        yield from _unchanged(diff)
        yield from assumed_said(diff)
    elif diff.unsure:
        yield from map(Sentence, settling_said(diff))
    if len(diff.suites) > 1 and sure:
        yield Sentence("Each experiment is tested by itself: chance shows a change in 1 of 20 that did not change.")


def assumed_said(diff: RunDiff) -> Iterator[Sentence]:
    """Return the assumption of the paired tests of significant changes at the smallest number of cases."""
    if tested := [change for change in (*diff.answers, *diff.spent) if change.assumed]:
        fewest = min(tested, key=lambda each: each.assumed)
        yield Sentence(f"A change is sure only {describe_missed(fewest.assumed, fewest.unit)}.")


def _untested_sentences(diff: RunDiff) -> Iterator[Sentence]:
    """Name the measures that differ and are not tested; the tables have their values."""
    if diff.seen:
        names = list(dict.fromkeys(cut_name(change.measure) for change in diff.seen))
        yield Sentence(f"Seen, not tested: {listed(names, _MOST_NAMED)}.")


def moved_said(change: MeasureChange) -> Sentence:
    """Say how many questions got better and worse, and name the first of them, the worse ones first."""
    counts = [f"{len(change.gained)} better", f"{len(change.lost)} worse"]
    names = [f"{case} (worse)" for case in change.lost] + list(change.gained)
    more = len(names) - _MOST_NAMED
    shown = ", ".join([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
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
    named = [f"{cut_name(each.conversation)} from turn {each.turn}" for each in found.worse[:_MOST_NAMED]]
    more = len(found.worse) - _MOST_NAMED
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
            more = len(named) - _MOST_NAMED
            shown = [*named[:_MOST_NAMED], f"measures of {more} more"] if more > 0 else named
            yield f"{word}: {joined_names(shown)}."


def _names(names: Sequence[str]) -> str:
    return f"{len(names)} measures" if len(names) > _MOST_NAMED else joined_names([cut_name(name) for name in names])


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
