"""What changed against the runs before, and against the saved run that this one was compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from rag_harness.errors import DataError
from rag_harness.gates.units import told_apart
from rag_harness.page.comment.links import Links
from rag_harness.page.comment.room import Room, table_rows
from rag_harness.page.run import Run
from rag_harness.report.baseline import SavedRun, check_as_written, load_saved_run
from rag_harness.report.comparison import Comparison, MeasureChange, compare, on_common_data, unit_named
from rag_harness.report.comparison_lines import p_or_seen
from rag_harness.report.left_nothing import check_whole
from rag_harness.report.run_diff import RunDiff, run_diff
from rag_harness.report.run_diff_sentences import assumed_said, sentences, talks_said
from rag_harness.shown.markdown import plain
from rag_harness.types import TrialId

_SIGNS = {"good": "✅ ", "bad": "❌ ", "unsure": "❔ "}
_RUNS, _SENTENCES, _ROWS = 2, 2, 5
_Before: TypeAlias = "tuple[str, str, Callable[[], Comparison]]"
"""Name and date of what this run is set against, and the comparison."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changed since a run before: ``found``, or why both cannot be compared."""

    name: str
    date: str
    found: RunDiff | None
    why_not: str = ""


def changes_in_comment(runs: Sequence[Run]) -> Iterator[Change]:
    """Yield what changed since each run before, and since the saved run that this one was compared with."""
    now = runs[0]
    before: list[_Before] = [(run.name, run.manifest.date, partial(now.compared_with, run)) for run in runs[1:]]
    for name, date, compared in [*before, *_baseline(now)][:_RUNS]:
        try:
            found = compared()
        except DataError as error:
            yield Change(name, date, None, str(error))
        else:
            yield Change(name, date, run_diff(found))


def change_lines(changes: Sequence[Change], room: Room, links: Links) -> Iterator[str]:
    """Yield what changed: sentences, then a table of what changed more than chance explains.

    Of several runs before only the first has a table.
    """
    for number, change in enumerate(changes):
        yield from ("",) * bool(number)
        yield f"**Changes since {room.named(change.name)}**, of {plain(change.date)}:"
        if change.found is None:
            yield f"- ❔ Not compared. {room.said(change.why_not)}"
            continue
        yield from _said(change.found, room)
        yield from _talks(change.found, room, links)
        yield from _table(change.found, room) if not number else ()


def _said(found: RunDiff, room: Room) -> Iterator[str]:
    shown = sentences(found)[: min(_SENTENCES, room.few)]
    for sentence in [*shown, *(each for each in assumed_said(found) if each not in shown)]:
        yield f"- {_SIGNS.get(sentence.tone, '')}{room.said(sentence.text)}"


def _talks(found: RunDiff, room: Room, links: Links) -> Iterator[str]:
    """Yield the conversations that got worse, with a link to the first turn of the one that did most."""
    changes = [] if found.found.is_same_run else found.worse_talks
    for change in changes[: room.few]:
        said = talks_said(change)
        assert change.conversations
        first = str(TrialId(change.suite, change.conversations.worse[0].case))
        yield f"- {_SIGNS[said.tone]}{room.said(said.text)} See {links.to(first, room)}"


def _table(found: RunDiff, room: Room) -> Iterator[str]:
    changes = [] if found.found.is_same_run else [*found.answers, *found.spent]
    if not changes:
        return
    rows = [_row(change, room) for change in changes[: min(_ROWS, room.rows)]]
    more = f", {len(rows)} of {len(changes)} that changed" if len(changes) > len(rows) else ""
    yield ""
    yield from table_rows([f"measure{more}", "before", "now", "change, interval", "p", "questions"], rows)


def _row(change: MeasureChange, room: Room) -> list[str]:
    sign = {"better": "✅", "worse": "❌", "changed": ""}[change.direction]
    before, now = told_apart(change.before, change.now, unit_named(change.measure), same=not change.difference)
    between = f" [{change.interval.low:+.3f}, {change.interval.high:+.3f}]" if change.interval else ""
    moved = f"{sign} {plain(f'{change.difference:+.3f}{between}')}".strip()
    name = room.named(f"{change.suite}: {change.measure}")
    return [name, plain(before), plain(now), moved, plain(p_or_seen(change)), f"{change.n:,}"]


def _baseline(now: Run) -> Iterator[_Before]:
    """Yield the saved run that this one was compared with, where its file is still there and is not of this run."""
    settings = now.manifest.settings
    name = str(settings.get("compare") or "")
    if not name:
        return
    file = Path(str(settings.get("rootdir") or "."), str(settings.get("project") or ""), "baselines", f"{name}.json")
    try:
        check_as_written(file)
        saved = load_saved_run(file)
    except (DataError, OSError):
        return
    if saved.date != now.manifest.date:
        yield name, saved.date, partial(_against_saved, now, now.saved, saved)


def _against_saved(run: Run, now: SavedRun, before: SavedRun) -> Comparison:
    check_whole(run.output)
    return compare(*on_common_data(now, before))
