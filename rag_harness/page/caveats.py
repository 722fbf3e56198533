"""What a reader has to know before trusting the figures: experiments of earlier runs, and verdicts on other rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_harness.page.run import Run
from rag_harness.report.doubts import doubts
from rag_harness.report.provenance import time_said
from rag_harness.report.wording import counted
from rag_harness.results.manifest import languages_noted
from rag_harness.settings.profiles import MOCK, SIMULATED

_MADE_UP = {
    SIMULATED: "SIMULATED: a program that knows the gold answers planted faults in them at stated rates. The figures "
    "show what the harness finds, and say nothing of any model.",
    MOCK: "MOCK: placeholders that no question has decided. The figures say nothing of any model.",
}


def caveats(run: Run) -> Iterator[str]:
    """Yield what the figures of a run are not about, a sentence each."""
    yield from _replaced(run)
    yield from _made_up(run)
    yield from _of_earlier_runs(run)
    yield from _other_rows(run)
    yield from _skipped(run)
    yield from (f"{said}." for said in doubts(run.selected))
    yield from _stopped(run)
    yield from languages_noted(run.suites[name] for name in run.selected)


def _replaced(run: Run) -> Iterator[str]:
    """Yield which gates others have replaced: what reads PASS was not held against them."""
    said = run.summary.get("replaced") or ()
    yield from (f"{text[:1].upper()}{text[1:]}." for text in said if isinstance(text, str))


def _made_up(run: Run) -> Iterator[str]:
    """Yield which experiments were answered by a simulated model, and which by one that stands in for others."""
    answered = {name: table.totals.models for name, table in run.selected.items()}
    for begin, what in _MADE_UP.items():
        found = [name for name, models in answered.items() if any(model.startswith(begin) for model in models)]
        if found:
            yield f"The answers of {', '.join(found)} are {what}"
    if why := run.manifest.settings.get("stands_in"):
        yield f"{why}."


def _of_earlier_runs(run: Run) -> Iterator[str]:
    """Yield the experiments that the last run did not look at, and whether it would give the same rows."""
    for name in run.selected:
        record = run.suites[name]
        if record.made:
            other = ", with other code or settings" if record.is_current is False else ""
            yield f"{name} is of an earlier run, of {time_said(record.made)}{other}; the last one did not look at it."


def _skipped(run: Run) -> Iterator[str]:
    """Yield which questions could not be read and were left out."""
    for lines in run.manifest.skipped.values():
        yield f"{lines.said}, so the figures say nothing of these questions. The first: {'; '.join(lines.first[:1])}"


def _stopped(run: Run) -> Iterator[str]:
    """Yield how many questions were left untested because pytest was stopped."""
    left = sum(len(record.not_run) for record in run.suites.values())
    if run.manifest.stopped and left:
        yield f"{counted(left, 'question was', 'questions were')} left untested: {run.manifest.stopped}."


def _other_rows(run: Run) -> Iterator[str]:
    """Yield that gates were judged before rows were lost, or came back."""
    for name, table in run.selected.items() if run.gates else ():
        judged, lost = run.summary.get(name), table.lost_of({})
        then = judged.get("lost", lost) if isinstance(judged, Mapping) else lost
        if then != lost:
            yield (
                f"The gates were judged on other rows of {name}: {then} trials had no row then, {lost} have none now. "
                "Run pytest again, so that gates and figures are of the same rows."
            )
