"""Says in sentences what changed between two runs: in which direction, how sure that is, and what else differs.

Terminal, page and Markdown show the same sentences. Every number in them stands in the tables below them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_harness.report.comparison import Comparison, MeasureChange, unit_named
from rag_harness.report.run_diff_words import change_said, cut_name, listed, range_said, ruled_out_said

_LEADING = (
    "error_rate", "answer_correctness", "g_mean", "faithfulness", "factuality", "recall@5", "evidence_recall", "mrr@10",
    "token_f1",
)  # fmt: skip
"""The measures that are named first, the most telling first. Others follow by their p."""
_SPENT = ("ms", "usd", "tokens")
_FEWEST = 6
"""Fewer cases never reach p <= 5 %: half of all 2 ** 5 sign flips are 16, and 2 of 32 is more than 5 %."""
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


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The measures of two runs by what became of them, the most telling first.

    Attributes:
        answers: changes that chance hardly explains, of what the answers are worth.
        spent: the same, of time, tokens and money.
        unsure: measures that differ by no more than chance explains.
        same: measures with the same value in every case.
        found: the comparison that they are of.
    """

    answers: Sequence[MeasureChange]
    spent: Sequence[MeasureChange]
    unsure: Sequence[MeasureChange]
    same: Sequence[MeasureChange]
    found: Comparison

    @property
    def suites(self) -> list[str]:
        """The suites that are compared."""
        return list(dict.fromkeys(change.suite for change in self.found.changes))

    def changed(self, suite: str) -> bool:
        """Whether a measure of a suite has changed more than chance explains."""
        return any(change.suite == suite for change in (*self.answers, *self.spent))

    def rows(self, suite: str) -> list[MeasureChange]:
        """Return the measures of a suite that differ; those that chance hardly explains come first."""
        by_p = sorted(self.unsure, key=_by_p)
        return [change for change in (*self.answers, *self.spent, *by_p) if change.suite == suite]

    def folded(self, suite: str) -> str:
        """Return the line for the measures of a suite that do not differ; empty where all do."""
        names = [change.measure for change in self.same if change.suite == suite]
        return f"{_measures(len(names))} the same in both: {', '.join(names)}" if names else ""

    def sentences(self) -> list[Sentence]:
        """Return what is to be read first. The first sentence says what changed, and in which direction."""
        if self.found.is_same_run:
            return [Sentence(f"The two runs are the same: both are of {self.found.now}.", "unsure")]
        return [
            self._first(),
            Sentence(self._differing()),
            *self._rest(),
            *(Sentence(text, "unsure") for text in self.found.warnings),
        ]

    def _first(self) -> Sentence:
        changes = self.found.changes
        if not changes:
            return Sentence("Nothing can be compared: no case has a value of the same measure in both runs.", "unsure")
        if self.answers:
            return _verdict(self.answers)
        if self.spent:
            return _spending(self.spent)
        if not self.unsure:
            same = f"{_measures(len(changes), 'has', 'have')} the same value in both runs"
            return Sentence(f"Nothing changed: {same}, in each of {range_said(changes)}.")
        if self._is_small:
            cases = range_said(changes)
            few = f"{cases} {'is' if cases == '1 case' else 'are'} too few"
            return Sentence(f"Nobody can tell: {few}. A change is seen over {_FEWEST} cases or more.", "unsure")
        of = f" of {len(self.suites)} experiments" if len(self.suites) > 1 else ""
        many = f"1 measure{of} was" if len(changes) == 1 else f"{len(changes)} measures{of} were"
        compared = f"{many} compared over the same {range_said(changes)}"
        return Sentence(f"Nothing changed that chance does not explain: {compared}.")

    def _rest(self) -> Iterator[Sentence]:
        if self.answers and self.spent:
            yield Sentence(f"It spends {_spent(self.spent)} than before: {change_said(self.spent[0])}.")
        sure = [*self.answers, *self.spent]
        if len(sure) > 1:
            yield Sentence(" ".join(_by_direction(sure)))
        if self.answers or self.spent:
            yield from self._unchanged()
        elif self.unsure:
            yield from self._seen() if self._is_small else self._nearest()
        if len(self.suites) > 1 and (self.answers or self.spent):
            yield Sentence(
                "Each experiment is tested by itself: where nothing changed, chance still shows a change in 1 of 20."
            )

    def _unchanged(self) -> Iterator[Sentence]:
        parts = []
        if self.unsure:
            parts.append(f"{_measures(len(self.unsure), 'differs', 'differ')} by no more than chance explains")
        if self.same:
            parts.append(f"{_measures(len(self.same))} the same in every case")
        if parts:
            yield Sentence(f"Nothing else changed: {', '.join(parts)}.")

    @property
    def _is_small(self) -> bool:
        """Whether there are too few cases for any change to be sure."""
        return max(change.n for change in self.found.changes) < _FEWEST

    def _seen(self) -> Iterator[Sentence]:
        yield Sentence(f"Seen, but not sure: {change_said(min(self.unsure, key=_order))}.")

    def _nearest(self) -> Iterator[Sentence]:
        """Yield the change that chance explains least, and how large a change of the leading measure can still be."""
        nearest = min(self.unsure, key=_by_p)
        tests = sum(change.suite == nearest.suite for change in self.unsure)
        adjusted = f"; p is adjusted for {tests} measures" if tests > 1 else ""
        if _by_p(nearest) <= _EVEN:
            yield Sentence(f"Nearest to a change: {change_said(nearest)}{adjusted}.")
        leading = sorted((*self.unsure, *self.same), key=_order)
        of_answers = [change for change in leading if change.measure != "error_rate" and change.interval]
        if of_answers:
            yield Sentence(f"Ruled out: {ruled_out_said(of_answers[0])}.")

    def _differing(self) -> str:
        if not self.found.differing:
            return "Different between them: nothing that is known; models, settings, packages and commit are the same."
        named = [_difference_said(text) for text in self.found.differing]
        more = len(named) - _DIFFERENCES
        shown = [*named[:_DIFFERENCES], f"{more} more"] if more > 0 else named
        return f"Different between them: {listed(shown)}."


def run_diff(found: Comparison) -> RunDiff:
    """Sort the changes of a comparison by what became of them."""
    ordered = sorted(found.changes, key=_order)
    sure = [change for change in ordered if change.is_sure]
    unsure = [change for change in ordered if not (change.is_sure or change.is_same)]
    answers = [change for change in sure if unit_named(change.measure) not in _SPENT]
    spent = [change for change in sure if unit_named(change.measure) in _SPENT]
    return RunDiff(answers, spent, unsure, [change for change in ordered if change.is_same], found)


def _order(change: MeasureChange) -> tuple[int, float, str, str]:
    place = _LEADING.index(change.measure) if change.measure in _LEADING else len(_LEADING)
    return place, _by_p(change), change.suite, change.measure


def _by_p(change: MeasureChange) -> float:
    return 1.0 if change.p is None else change.p


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
            yield f"{word}: {listed(shown)}."


def _names(names: Sequence[str]) -> str:
    return f"{len(names)} measures" if len(names) > _NAMED else listed([cut_name(name) for name in names])


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
