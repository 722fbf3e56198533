"""Compares two runs case by case: change of the means, significance tests, and the cases that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.gates.bounds import span_of
from rag_harness.measures import measure_named
from rag_harness.report.baseline import SavedRun, SavedSuite
from rag_harness.report.summary import table
from rag_harness.results.manifest import QUERIES
from rag_harness.stats import Interval, holm, mean_or_none, permutation_test
from rag_harness.stats.by_case import differences, in_both
from rag_harness.stats.paired import Paired, paired
from rag_harness.types import GOLDEN

_HEADER = ("", "before", "now", "difference", "95 % interval", "p (Holm)", "n", "gained", "lost")
_WIDTH = 100
_SAME = 1e-12
_ABSENT = "nothing"
_SHOWN = 36


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure of a suite in two runs, over the cases that have a value in both.

    ``difference`` is the mean of now - before, with its 95 % interval by the gates' method; None where the cases allow
    none. ``p`` is from the paired permutation test, with Holm's adjustment over the suite's measures. ``gained`` cases
    got better: higher, or lower where lower is better.
    """

    suite: str
    measure: str
    n: int
    before: float
    now: float
    difference: float
    interval: Interval | None
    p: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        bounds = f"[{self.interval.low:+.3f}, {self.interval.high:+.3f}]" if self.interval else "-"
        means = f"{self.before:.3f}", f"{self.now:.3f}", f"{self.difference:+.3f}", bounds, f"{self.p:.3f}"
        return (f"  {self.measure}", *means, str(self.n), str(len(self.gained)), str(len(self.lost)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes between two runs. ``notes`` say what was not compared; ``differing`` says how the runs differ."""

    before: str
    differing: tuple[str, ...]
    notes: tuple[str, ...]
    changes: tuple[MeasureChange, ...]

    def lines(self) -> list[str]:
        """Return the comparison for the terminal, at most 100 columns wide."""
        head = [f"compared with the run of {self.before}", *(f"  {each}" for each in [*self.differing, *self.notes])]
        body = [line for suite in dict.fromkeys(each.suite for each in self.changes) for line in self._suite(suite)]
        return [_cut(line) for line in [*head, *body]]

    def _suite(self, suite: str) -> Iterator[str]:
        changes = [each for each in self.changes if each.suite == suite]
        yield from table([(suite, *_HEADER[1:]), *(each.cells() for each in changes)])
        for each in changes:
            for word, cases in (("gained", each.gained), ("lost", each.lost)):
                if cases:
                    yield _listed(f"    {each.measure} {word}: ", cases)


def on_common_data(now: SavedRun, before: SavedRun) -> tuple[SavedRun, SavedRun]:
    """Leave out the data of suites that only one of the runs has: they are not compared, so they may differ."""
    shared = set(now.suites) & set(before.suites)
    both = set(now.fingerprint.get("data", {})) & set(before.fingerprint.get("data", {}))
    kept = {"documents", *({GOLDEN} & shared), *([QUERIES] if shared - {GOLDEN} else []), *(both - {GOLDEN, QUERIES})}

    def reduced(run: SavedRun) -> SavedRun:
        data = {key: value for key, value in run.fingerprint.get("data", {}).items() if key in kept}
        return run.model_copy(update={"fingerprint": {**run.fingerprint, "data": data}})

    return reduced(now), reduced(before)


def compare(now: SavedRun, before: SavedRun) -> Comparison:
    """Compare two runs on every suite and measure that both have.

    Raises:
        DataError: queries, gold or documents differ; shows how.
    """
    data = list(_differences(before.fingerprint.get("data", {}), now.fingerprint.get("data", {}), "data"))
    if data:
        shown = "\n  ".join(data)
        raise DataError(
            f"This run and the one of {_name(before)} are not about the same data, so their measures cannot be "
            f"compared:\n  {shown}\nSave a new baseline of the present data with --rag-save NAME."
        )
    both = [name for name in sorted(now.suites) if name in before.suites]
    changes = [change for name in both for change in _changes(name, now, before)]
    return Comparison(_name(before), tuple(_others(before, now)), tuple(_notes(now, before)), tuple(changes))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _changes(name: str, now_run: SavedRun, before_run: SavedRun) -> list[MeasureChange]:
    now, before = now_run.suites[name], before_run.suites[name]
    measures = [each for each in now.measures() if not now_run.judged_otherwise(before_run, name, each)]
    clusters = now_run.clusters.get(name)
    found = [_change(name, measure, now, before, clusters) for measure in measures if measure in set(before.measures())]
    changes = [change for change in found if change is not None]
    if not changes:
        return []
    return [replace(each, p=p) for each, p in zip(changes, holm([each.p for each in changes]), strict=True)]


def _change(
    name: str, measure: str, now: SavedSuite, before: SavedSuite, clusters: Mapping[str, str] | None
) -> MeasureChange | None:
    new, old = now.values(measure, {}), before.values(measure, {})
    cases = sorted(new.keys() & old.keys())
    if not cases:
        return None
    a, b = [new[case] for case in cases], [old[case] for case in cases]
    rose = tuple(case for case in cases if new[case] - old[case] > _SAME)
    fell = tuple(case for case in cases if old[case] - new[case] > _SAME)
    gained, lost = (fell, rose) if lower_is_better(measure) else (rose, fell)
    means = mean_or_none(b) or 0.0, mean_or_none(a) or 0.0
    found = paired_of(now, before, measure, clusters)
    p = permutation_test(a, b) if found.p_permutation is None else found.p_permutation
    return MeasureChange(name, measure, len(cases), *means, means[1] - means[0], found.interval, p, gained, lost)


def paired_of(now: SavedSuite, before: SavedSuite, measure: str, clusters: Mapping[str, str] | None = None) -> Paired:
    """Return the paired comparison over the cases that have a value in both runs; ``clusters`` are by case."""
    new, old = in_both(now.values(measure, {}), before.values(measure, {}))
    a, b = [*new.values()], [*old.values()]
    span = span_of([*differences(new, old).values()], _unit(measure), is_difference=True)
    return paired(a, b, span=span, clusters=[clusters[case] for case in new] if clusters else None)


def _unit(measure: str) -> str:
    try:
        return measure_named(measure).unit
    except PrerequisiteError:
        return ""  # a measure of somebody's plug-in that is not installed here


def lower_is_better(measure: str) -> bool:
    """Whether a lower value is better; False for a measure that is not registered here."""
    try:
        return measure_named(measure).better == "lower"
    except PrerequisiteError:
        return False


def _others(before: SavedRun, now: SavedRun) -> Iterator[str]:
    parts = [{k: v for k, v in run.fingerprint.items() if k != "data"} for run in (before, now)]
    yield from _differences(parts[0], parts[1], "")
    yield from _differences(before.packages, now.packages, "packages")
    yield from _differences(before.commit, now.commit, "commit")


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif before != now:
        yield f"{path}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    text = _ABSENT if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


def _notes(now: SavedRun, before: SavedRun) -> Iterator[str]:
    for name in sorted({*now.suites, *before.suites}):
        new, old = now.suites.get(name), before.suites.get(name)
        if new is None or old is None:
            yield f"{name}: only in {'the baseline' if new is None else 'this run'}"
            continue
        for whose, suite in (("this run", new), ("the baseline", old)):
            yield from _incomplete(f"{name}: {whose}", suite)
        common = set(new.measures()) & set(old.measures())
        others = {why: None for each in sorted(common) if (why := now.judged_otherwise(before, name, each))}
        yield from (f"{name}: judged measures are not compared: the baseline was {why}" for why in others)


def _incomplete(whose: str, suite: SavedSuite) -> Iterator[str]:
    total, selected, lost = suite.total_of({}), suite.selected_of({}), suite.lost_of({})
    if selected < total:
        yield f"{whose} looked at {selected} of {total} cases"
    if lost:
        yield f"{whose} lost {lost} of {total} cases to a crash; they count as the worst"


def _name(run: SavedRun) -> str:
    return f"{run.date} at commit {run.commit[:12]}" if run.commit else run.date


def _listed(head: str, cases: Sequence[str]) -> str:
    for shown in range(len(cases), 0, -1):
        rest = f" and {len(cases) - shown} more" if shown < len(cases) else ""
        line = f"{head}{', '.join(cases[:shown])}{rest}"
        if len(line) <= _WIDTH:
            return line
    return f"{head}{len(cases)} cases"
