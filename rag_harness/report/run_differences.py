"""Says in what two runs differ beside their figures, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.report.baseline import SavedRun, SavedSuite
from rag_harness.report.provenance import time_said
from rag_harness.report.wording import listed
from rag_harness.results.dates import seconds_of

_ABSENT = "nothing"
_SHOWN = 36
_COMMIT = 12


def run_named(run: SavedRun) -> str:
    """Return date and commit of a run."""
    when = time_said(run.date)
    return f"{when} at commit {run.commit[:_COMMIT]}" if run.commit else when


def data_differences(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield the data that differ, each as "data.name: before -> now"."""
    return _differences(before.fingerprint.get("data", {}), now.fingerprint.get("data", {}), "data")


def to_compare(before: SavedRun, now: SavedRun) -> str:
    """Say how two runs of edited questions become comparable, and how many they share by their ids; "" for others.

    A run keeps the digest of all questions together, so which of the shared ones were edited is not known.
    """
    asked = {name: [_asked(run.suites[name]) for run in (before, now)] for name in _shared(before, now)}
    shared = [f"{len(old & new)} of {len(old | new)} in {name}" for name, (old, new) in asked.items()]
    documents = [run.fingerprint.get("data", {}).get("documents") for run in (before, now)]
    if not shared or documents[0] != documents[1]:
        return ""
    checkout = f"git checkout {before.commit[:_COMMIT]}" if before.commit else "check out the commit of before"
    return (
        f"\nQuestions with the same id in both runs: {listed(shared)}. Which of them were edited is not kept.\n"
        "To compare both runs on the same questions, ask this pipeline the questions of before: pytest "
        f"--rag-queries=FILE --rag-output=DIR. Or ask the pipeline of before ({checkout}) the present questions in the "
        "same way. Then compare the two folders."
    )


def other_differences(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield the models, settings, packages, documents and code that differ, each as "name: before -> now"."""
    parts = [{k: v for k, v in run.fingerprint.items() if k != "data"} for run in (before, now)]
    found = [
        *_differences(parts[0], parts[1], ""),
        *_differences(before.packages, now.packages, "packages"),
        *_differences(before.commit[:_COMMIT], now.commit[:_COMMIT], "commit"),
    ]
    documents = sorted({f"documents: {old} -> {new}" for old, new in _in_both(before.pages, now.pages).values()})
    yield from (*found, *documents)
    made = _in_both(before.code, now.code)
    if made and not found and not documents:
        # Their code or settings differ, and nothing above tells in what.
        yield from (f"code or other settings of {name}: {old} -> {new}" for name, (old, new) in made.items())


def warnings(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield in sentences what makes two runs hard to compare."""
    then, later = time_said(before.date), time_said(now.date)
    if then != later and seconds_of(before.date) > seconds_of(now.date):
        dates = f"before is of {then}, now is of {later}"
        yield f"The run that is called before is the later one: {dates}. Name the earlier run first."
    for name in _asked_in_each(before, now):
        yield f"{name} was asked in both runs: whether its code, or the service, is the same is not known."
    for name in _shared(before, now):
        old, new = (_asked(run.suites[name]) for run in (before, now))
        if old != new:
            yield (
                f"The cases differ: {name} was asked {len(old)} before and {len(new)} now. "
                f"Only the {len(old & new)} that were asked both times are compared."
            )
    for name in _shared(before, now):
        measures = set(before.suites[name].measures()) & set(now.suites[name].measures())
        reasons = {why: None for each in sorted(measures) if (why := now.judged_otherwise(before, name, each))}
        said = (why.replace("this run by", "now by") for why in reasons)
        yield from (f"Judged measures of {name} are not compared: before was {why}." for why in said)
        if others := [each for each in sorted(measures) if now.owed_otherwise(before, name, each)]:
            yield f"What answers of {name} owe has changed: {', '.join(others)} cannot be compared."


def notes(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield what was not compared, and why."""
    for whose, here, there in (("before", before, now), ("now", now, before)):
        alone = sorted(set(here.suites) - set(there.suites))
        if alone:
            yield f"only {whose}: {', '.join(alone)}"
    for name, whose, others in measured_alone(before, now):
        yield f"{name}: only {whose} was measured on {', '.join(others)}"
    for name in _shared(before, now):
        for whose, run in (("before", before), ("now", now)):
            yield from _incomplete(f"{name}: {whose}", run.suites[name])


def measured_alone(before: SavedRun, now: SavedRun) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a suite, ``before`` or ``now``, and the measures that only this one has values of."""
    for name in _shared(before, now):
        then, later = (set(run.suites[name].measures()) for run in (before, now))
        for whose, others in (("before", then - later), ("now", later - then)):
            if others:
                yield name, whose, sorted(others)


def are_of_other_rows(before: SavedRun, now: SavedRun) -> bool:
    """Whether code or documents of two runs are known to differ: such runs of one second are two."""
    return bool(_in_both(before.pages, now.pages) or _in_both(before.code, now.code))


def _asked_in_each(before: SavedRun, now: SavedRun) -> list[str]:
    """Return the suites of which nobody knows whether the same has answered in both runs."""
    return [name for name in _shared(before, now) if name in before.asked and name in now.asked]


def _shared(before: SavedRun, now: SavedRun) -> list[str]:
    return sorted(set(before.suites) & set(now.suites))


def _asked(suite: SavedSuite) -> set[str]:
    return {case_id for case_id, case in suite.cases.items() if case.state != "left out"}


def _in_both(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what both know and what differs, by name."""
    known = [name for name in sorted(before) if before[name] and now.get(name) and before[name] != now[name]]
    return {name: (_shown(before[name]), _shown(now[name])) for name in known}


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif before != now:
        yield f"{path}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    text = _ABSENT if value in (None, "") else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


def _incomplete(whose: str, suite: SavedSuite) -> Iterator[str]:
    total, selected, lost = suite.total_of({}), suite.selected_of({}), suite.lost_of({})
    if selected < total:
        yield f"{whose} looked at {selected} of {total} cases"
    if lost:
        yield f"{whose} lost {lost} of {total} cases to a crash; they count as the worst"
