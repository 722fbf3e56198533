"""The provenance of the answers behind figures, and warnings beside the figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import DataError
from rag_harness.core.protocols import Experiment
from rag_harness.core.registry import is_own_code
from rag_harness.core.settings import Settings
from rag_harness.core.text.comparison import without_chance, words_of
from rag_harness.core.text.shingles import PageTexts
from rag_harness.core.types import GOLDEN, REVIEWED, Document
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.correctness import CORRECT, UNCHECKED
from rag_harness.evaluation.measures.measure import Better, NamedMeasure
from rag_harness.pipelines.experiments import endpoints_of
from rag_harness.records.manifest import BegunRun, SuiteRecord, of_run, read_begun, read_manifest, seconds_of
from rag_harness.records.row import ExperimentResult, numbered_lines, row_or_none
from rag_harness.runs.gates.grammar import Gate
from rag_harness.runs.gates.verdict import share_said
from rag_harness.tables.blocks import MOST_ERRORS, Origin, Origins
from rag_harness.tables.suite_table import CaseState, Column, SuiteTable
from rag_harness.tables.wording import counted, short

_SKEW = 3600.0
"""Seconds by which the clocks of two machines may differ."""
_DAY = 86400.0
_ONE_TIME = re.compile(r"recorded (?P<day>\d+ \w+ \d{4}) (?P<time>\d\d:\d\d UTC) \((?P<age>.*)\)")
"""What is said of answers that were recorded within a day."""


def provenance_lines(tables: Mapping[str, SuiteTable], run_at: str) -> list[str]:
    """Return a line for each kind of origin. Experiments whose answers have the same origin share a line.

    Args:
        tables: tables of the run, by suite.
        run_at: time of the run, ISO 8601: ages are as of then.
    """
    now = seconds_of(run_at)
    said: dict[str, list[str]] = {}
    for name, table in tables.items():
        text = _said(name, table.totals.origins, now) if table.totals.rows else ""
        if text:
            said.setdefault(text, []).append(name)
    lines: list[str] = []
    for text, names in said.items():
        whose = f" of {', '.join(names)}" if len(tables) > 1 else ""
        lines.append(f"answers{whose}{', each' if len(names) > 1 else ''}: {text}")
    return lines


def renewal(tables: Mapping[str, SuiteTable], may_ask: bool, overwrites: bool) -> str:
    """Return how to get new answers; empty where this run asked for all of them.

    Args:
        tables: tables of the run, by suite.
        may_ask: whether this mode may ask models and services.
        overwrites: whether rows of earlier runs are ignored anyway.
    """
    origins = [table.totals.origins for table in tables.values()]
    found = []
    if any(each.resumed.n for each in origins) and not overwrites:
        found.append("--rag-overwrite makes reused rows again")
    if any(each.has_recorded for each in origins):
        mode = "" if may_ask else "--rag-mode=record "
        found.append(f"{mode}--rag-rerecord asks again for what was recorded")
    return "; ".join(found)


def _said(name: str, origins: Origins, now: float) -> str:
    asked = "looked up" if name == GOLDEN else "asked"
    found = [text for text in (_replayed(origins, now), _resumed(origins, now)) if text]
    version = _version(origins)
    made = origins.computed if name == GOLDEN else 0
    declined, computed = origins.declined, origins.computed - origins.declined - made
    if origins.asked.n + made:
        found.append(f"{origins.asked.n + made} {asked} now{version}{_partly(origins, now)}")
    elif origins.replayed.n:
        found.append(f"0 {asked} now")
    elif not (origins.failed or origins.computed):
        found.append("0 new")
    if declined:
        found.append(f"{declined} declined without a model")
    if computed:
        found.append(f"{computed} computed now, without a model")
    if origins.failed:
        found.append(f"{origins.failed} without an answer")
    return "; ".join(found)


def _version(origins: Origins) -> str:
    named = [version for version, _ in origins.versions.most_common()]
    return f", of version {' and '.join(named)}" if named else ""


def _replayed(origins: Origins, now: float) -> str:
    if not origins.replayed.n:
        return ""
    version = _version(origins) if not origins.asked.n else ""
    return f"{origins.replayed.n} replayed, {_recorded(origins.replayed, now)}{version}"


def _resumed(origins: Origins, now: float) -> str:
    if not origins.resumed.n:
        return ""
    then, text = origins.replayed_then, f"{origins.resumed.n} reused from the run of {_when(origins.resumed)}"
    if then.n:
        whose = "which had replayed them" if then.n == origins.resumed.n else f"which had replayed {then.n} of them"
        text += f", {whose}, {_recorded(then, now)}"
    if not (origins.asked.n or origins.replayed.n):
        text += _version(origins)
    return text


def _partly(origins: Origins, now: float) -> str:
    if not origins.partly.n:
        return ""
    which = "" if origins.partly.n == origins.asked.n else f"{origins.partly.n} of them "
    said = _recorded(origins.partly, now)
    before = _recorded(origins.replayed, now) if origins.replayed.n else ""
    return f", {which}with replayed parts{_since(said, before)}"


def _since(said: str, before: str) -> str:
    """Return a time behind another one on the same line, without what is the same in both."""
    if said == before:
        return " of the same time"
    day, same_day = _ONE_TIME.fullmatch(said), _ONE_TIME.fullmatch(before)
    if day and same_day and day["day"] == same_day["day"] and day["age"] == same_day["age"]:
        return f" of the same day, {day['time']}"
    return f", {said}"


def _recorded(origin: Origin, now: float) -> str:
    if origin.undated == origin.n:
        return "recorded at an unknown time"
    text = f"recorded {_when(origin)} ({_age(origin, now)})"
    return text + (f", {origin.undated} of them at an unknown time" if origin.undated else "")


def _when(origin: Origin) -> str:
    if not isfinite(origin.earliest):
        return "an unknown time"
    first, last = _date(origin.earliest), _date(origin.latest)
    if origin.latest - origin.earliest < _DAY:
        return _minute(origin.earliest)
    return f"{first:%d %b %Y} to {last:%d %b %Y}".lstrip("0").replace(" to 0", " to ")


def _minute(seconds: float) -> str:
    return f"{_date(seconds):%d %b %Y %H:%M} UTC".lstrip("0")


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _age(origin: Origin, now: float) -> str:
    if origin.latest > now + _SKEW:
        return "later than this run by the clock, so their age is not known"
    oldest, newest = age_said(now - origin.earliest), age_said(now - origin.latest)
    return f"{oldest} old" if oldest == newest else f"{newest} to {oldest} old"


def age_said(seconds: float) -> str:
    """Return a duration in its largest unit: ``2 days``."""
    for size, unit in ((_DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            n = int(seconds // size)
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return "less than a minute"


def time_said(said: str) -> str:
    """Return an ISO 8601 time for people: ``23 Nov 2026 09:12 UTC``. Other text is returned as it is."""
    seconds = seconds_of(said)
    return _minute(seconds) if isfinite(seconds) else said


def stale_reason(origins: Origins, max_age: float, now: float) -> str:
    """Return why answers are too old for gates; empty where they are not.

    Args:
        origins: origins of a suite.
        max_age: seconds.
        now: seconds since 1970.
    """
    oldest, undated = origins.oldest
    if undated:
        return f"{undated} answers were recorded at an unknown time"
    newest = max(origins.replayed.latest, origins.partly.latest, origins.replayed_then.latest)
    if newest > now + _SKEW:
        return f"answers are dated {_minute(newest)}, which is later than now: their age is not known"
    if now - oldest > max_age:
        return f"the oldest answer is {age_said(now - oldest)} old"
    return ""


def provenance_json(tables: Mapping[str, SuiteTable]) -> dict[str, Any]:
    """Return the origins for machines, by suite: counts, and first and last times in ISO 8601, UTC."""
    return {name: dict(_plain(table.totals.origins)) for name, table in tables.items() if table.totals.rows}


def _plain(origins: Origins) -> Iterator[tuple[str, Any]]:
    for name in ("asked", "replayed", "resumed"):
        origin: Origin = getattr(origins, name)
        yield name, origin.n
        if origin.n and isfinite(origin.earliest):
            ends = (_date(each).isoformat(timespec="seconds") for each in (origin.earliest, origin.latest))
            yield f"{name}_from_to", list(ends)
    undated = origins.replayed.undated + origins.replayed_then.undated
    yield from ((("computed", origins.computed),) if origins.computed else ())
    yield from ((("declined", origins.declined),) if origins.declined else ())
    yield from ((("failed", origins.failed),) if origins.failed else ())
    yield from ((("undated", undated),) if undated else ())
    yield from ((("versions", dict(origins.versions)),) if origins.versions else ())


# What is said first of a folder whose last run left no results: when, why, which command, and of what the rest is.
#
# Such a run may have moved rows of the run before it and have written some of its own.

_UNKNOWN = "it was killed, or is still under way."
_LONGEST = 400
REST = "what is left of the run before it"
"""What such a folder shows; rows of the last run stand among it."""


def left_nothing_lines(begun: BegunRun, before: str) -> list[str]:
    """Return why the last run left no results, and what it was.

    Args:
        begun: the last run.
        before: date of the run whose results are there.
    """
    which = f" The last run was begun {time_said(begun.date)} by: {begun.command}" if begun.date else ""
    return [
        f"The last run left no results: {_why(begun)}",
        f"What follows is {REST}, of {time_said(before)}, and of this one.{which}",
    ]


def said_of_last_run(output: Path) -> list[str]:
    """Return the same of an output folder; empty where its last run left results, or where it has no run."""
    begun = read_begun(output)
    if begun is None:
        return []
    try:
        return left_nothing_lines(begun, read_manifest(output).date)
    except DataError:
        return []


def check_whole(output: Path) -> None:
    """Check that the rows of a folder are of one run, so that they can be compared with those of another.

    Raises:
        DataError: its last run left no results; says why, when, and what to do.
    """
    begun = read_begun(output)
    if begun is not None:
        when = f", begun {time_said(begun.date)}," if begun.date else ""
        raise DataError(
            f"{output} cannot be compared: its last run{when} left no results: {_why(begun)} Its rows are {REST}, and "
            f"of this one. Run pytest with --rag-output={output} again, or compare what --rag-save wrote of a run."
        )


def _why(begun: BegunRun) -> str:
    why = " ".join(begun.why.split())[:_LONGEST] or _UNKNOWN
    return why if why.endswith((".", "!", "?")) else f"{why}."


# Warnings beside the figures of answers.
#
# Wrong answers and declines, contexts of other text, unreviewed questions, errors.

# A pipeline that declines every question gives no wrong answer, so the two figures are shown together.

WRONG = "wrong"
_WRONGLY_DECLINED = "false_abstention_rate"
_MOST_NAMED = 6
"""Most experiments that one sentence names."""


class _Wrong(NamedMeasure):
    """1 if a checked answer is wrong; 0 if it is right, or declines."""

    called = WRONG
    better: Better = "lower"
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How the checked answers of an experiment came out.

    Attributes:
        checked: number of checked answers.
        wrong: those that are wrong.
        declined: those that decline a question that the documents answer.
        interval: the 95 % interval of the share of wrong ones; None where too few were checked.
        unchecked: number of answers that nothing checks.
    """

    checked: int
    wrong: int
    declined: int
    interval: tuple[float, float] | None
    unchecked: int

    @property
    def share(self) -> float:
        """The share of checked answers that are wrong."""
        return self.wrong / self.checked

    @property
    def share_said(self) -> str:
        """That share with its interval: ``8.0 % [5.0, 13.0]``."""
        return share_said(self.share, self.interval)


def with_wrong(table: SuiteTable) -> SuiteTable:
    """Return the table with a column of wrong answers, where answers were checked."""
    if not table.has(CORRECT):
        return table
    found = copy(table)
    correct = table.columns[CORRECT].values
    is_open = np.isnan(correct) | (table.states != CaseState.OK)  # an error has no answer that could be wrong
    values = np.where(is_open, np.nan, (correct == 0) & ~_declined(table))
    column = Column(_Wrong(), values, np.isnan(values).astype(np.uint8), ["", UNCHECKED])
    found.columns = {**table.columns, WRONG: column}
    return found


def all_with_wrong(tables: Mapping[str, SuiteTable]) -> dict[str, SuiteTable]:
    """Return the tables, each with that column."""
    return {name: with_wrong(table) for name, table in tables.items()}


def that_answer(tables: Mapping[str, SuiteTable]) -> dict[str, SuiteTable]:
    """Return the tables; one whose answers are all declined comes without the column, so that it cannot lead."""
    return {name: table if _answers(table) else _without(table) for name, table in tables.items()}


def _answers(table: SuiteTable) -> bool:
    found = table.totals
    return not table.has(WRONG) or not found.answered or found.abstained < found.answered


def _without(table: SuiteTable) -> SuiteTable:
    found = copy(table)
    found.columns = {name: column for name, column in table.columns.items() if name != WRONG}
    return found


def verdicts_of(table: SuiteTable) -> Verdicts | None:
    """Return how the checked answers came out; None where none was checked."""
    if not table.has(WRONG):
        return None
    wrong = np.array([*table.values(WRONG, {}).values()])
    return Verdicts(
        checked=len(wrong),
        wrong=int(wrong.sum()),
        declined=len(wrongly_declined(table)),
        interval=table.interval(WRONG),
        unchecked=table.totals.answered - len(wrong),
    )


def wrongly_declined(table: SuiteTable) -> set[str]:
    """Return the answered cases that decline though the documents answer, of those that are not correct."""
    if not table.has(CORRECT):
        return set()
    chosen = _declined(table) & (table.columns[CORRECT].values == 0) & (table.states == CaseState.OK)
    return {table.ids[place] for place in np.flatnonzero(chosen).tolist()}


def _declined(table: SuiteTable) -> npt.NDArray[np.bool_]:
    column = table.columns.get(_WRONGLY_DECLINED)
    declined = np.zeros(len(table.ids), np.bool_) if column is None else column.values == 1
    return np.asarray(declined & (table.states == CaseState.OK))


def describe_wrong(tables: Mapping[str, SuiteTable]) -> str:
    """Return how many answers of each experiment are wrong, and how many decline wrongly; empty where none is known."""
    found = {name: verdicts for name, table in tables.items() if (verdicts := verdicts_of(table)) is not None}
    if not found:
        return ""
    shown, more = [*found.items()][:_MOST_NAMED], len(found) - _MOST_NAMED
    said = [f"{short(name)} {each.share_said} of {each.checked:,}" for name, each in shown]
    left = f" and {more:,} more" if more > 0 else ""
    return " ".join([f"{', '.join(said)}{left}.", _declined_said(dict(shown)), *_unchecked_said(found)])


def describe_wrong_alone(found: Verdicts) -> str:
    """Return the same of an experiment that needs no name."""
    unchecked = f", {found.unchecked:,} not checked" if found.unchecked > 0 else ""
    correct = found.checked - found.wrong - found.declined
    declined = f"{found.declined:,} wrongly declined"
    return f"{found.share_said} of {found.checked:,}; {declined}, {correct:,} correct{unchecked}"


def _declined_said(found: Mapping[str, Verdicts]) -> str:
    if not any(each.declined for each in found.values()):
        return "Nothing is wrongly declined."
    said = ", ".join(f"{short(name)} {each.declined:,}" for name, each in found.items())
    return f"Wrongly declined: {said}."


def _unchecked_said(found: Mapping[str, Verdicts]) -> list[str]:
    said = [f"{short(name)} {each.unchecked:,}" for name, each in found.items() if each.unchecked > 0]
    return [f"Not checked: {', '.join(said[:_MOST_NAMED])}."] if said else []


def count_wrong(tables: Mapping[str, SuiteTable]) -> str:
    """Return the counts of wrong and of wrongly declined answers, as pytest's last line has them."""
    found = [verdicts for table in tables.values() if (verdicts := verdicts_of(table)) is not None]
    if not found:
        return ""
    declined = sum(each.declined for each in found)
    more = f", {declined:,} wrongly declined" if declined else ""
    return f"{sum(each.wrong for each in found):,} wrong{more}"


# What figures of answers do not show by themselves: contexts without the words of their page, refusals in other words.
#
# Terminal, page and comment say it in the same sentences.

_SHARE = 0.05
"""Answers that only read like refusals are told from this share on: below it some are mistaken for ones."""


def doubts(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield what is to be known of the answers of experiments, without a full stop."""
    for name, table in sorted(tables.items()):
        totals = table.totals
        if totals.retrieves and not totals.depth and totals.answered:
            yield f"{name}: none of {counted(totals.answered, 'answer')} came with a context"
        if table.unknown_pages:
            told, there = (", ".join(map(repr, names)) for names in table.unknown_pages)
            yield (
                f"{name}: no context names a page of the documents, so recall and other ranking measures find none. "
                f"It says {told}; pages are {there}. Name the page in Chunk.doc_id, or [read] chunk_id of a service"
            )
        if table.foreign and table.foreign[0]:
            yield (
                f"{name}: {table.foreign[0]:,} of {counted(table.foreign[1], 'context')} with a text that is not in "
                "the page that they name. Recall and other ranking measures go by the name and count them as found; "
                "evidence_recall looks at texts, if questions have evidence quotes"
            )
        if totals.placed:
            yield from _without_words(name, totals.placed)
        if totals.evasive > _SHARE * totals.answered:
            yield (
                f"{name}: {totals.evasive:,} of {counted(totals.answered, 'answer')} read like refusals, and are not "
                "counted as declined. Name their words (refusals in [tool.rag_harness] of pyproject.toml), or state "
                "it: [read] abstained of a service, Answer(abstained=True) of a pipeline"
            )


def foreign_said(gate: Gate, tables: Iterable[SuiteTable], settings: Settings) -> str:
    """Return why a gate that goes by names of pages is not judged; empty where it is."""
    if settings.foreign_text == "allow" or not getattr(measure_named(gate.measure), "by_name", False):
        return ""
    return next(filter(None, (table.foreign_said for table in tables)), "")


def _without_words(name: str, placed: Mapping[str, int]) -> Iterator[str]:
    from rag_harness.pipelines.endpoint.answer import NO_TEXT  # where a service was asked

    if silent := placed.get(NO_TEXT, 0):
        yield (
            f"{name}: of {counted(sum(placed.values()), 'context')} {silent:,} without text. Recall and other ranking "
            "measures go by the name and count them as found; evidence_recall looks at texts, if questions have "
            "evidence quotes"
        )


# Counts the unreviewed questions behind the figures, and prints the number beside them, with or without gates.


def draft_lines(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield a line a suite with drafts among its selected cases."""
    for name, table in sorted(tables.items()):
        drafts, selected = table.selected_of({REVIEWED: "no"}), table.selected_of({})
        if drafts:
            questions = f"question{'s' * (selected != 1)} {'is' if drafts == 1 else 'are'}"
            yield f"{name}: {drafts} of {selected} {questions} unreviewed"


def error_lines(tables: Iterable[SuiteTable]) -> tuple[list[str], int]:
    """Return a line for each of the first errors that differ by more than chance, and how many trials ended in others.

    One trial is named. Of several with the same error the number is said, and the first, where it is known.
    """
    found = [table.totals for table in tables]
    each = [(why, n) for totals in found for why, n in totals.alike_errors.items()]
    counts: Counter[str] = Counter()
    for why, n in each:
        counts[without_chance(why)] += n
    first = {without_chance(why): trial for totals in reversed(found) for trial, why in reversed(totals.first_errors)}
    shown = {without_chance(why): why for why, _ in reversed(each)}
    kinds = list(counts)[:MOST_ERRORS]
    lines = [_line(counts[kind], first.get(kind, ""), shown[kind]) for kind in kinds]
    return lines, sum(totals.errors for totals in found) - sum(counts[kind] for kind in kinds)


def _line(n: int, trial: str, why: str) -> str:
    if n == 1:
        return f"error {trial}: {why}" if trial else f"error: {why}"
    return f"{n:,} × the same error{f', first {trial}' if trial else ''}: {why}"


# Contexts whose text is not in the page that they name: the right id, and the words of something else.
#
# Ranking measures go by the names of pages. Where the texts are others, they measure what no reader was given.

MOST_ROWS = 2000
"""Most rows that are looked at, spread evenly over the file: their share is that of all of them."""
EXAMPLES = 2
"""How many names of each kind are shown."""


class ForeignText(NamedTuple):
    """What the contexts of a suite have to do with the pages that they name.

    Attributes:
        foreign: how many have a text that the page which they name does not have.
        of: how many name a page that is there and have a text.
        unknown: where no name fits any page: two that are told, and two of pages that are there.
    """

    foreign: int = 0
    of: int = 0
    unknown: tuple[tuple[str, ...], ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the fields of a suite's record that say so."""
        return ({"foreign": (self.foreign, self.of)} if self.of else {}) | (
            {"unknown_pages": self.unknown} if self.unknown else {}
        )


def cuts_pages(experiment: Experiment, settings: Settings) -> bool:
    """Return whether the contexts of an experiment come from this package's own parts, which cut them from pages."""
    return experiment.id not in endpoints_of(settings) and not is_own_code(experiment.code)


def foreign_text(output: Path, record: SuiteRecord, documents: Sequence[Document]) -> ForeignText:
    """Return how many contexts of a suite's rows have a text that the page which they name does not have."""
    pages, foreign, of = PageTexts({document.doc_id: document.text for document in documents}), 0, 0
    told: dict[str, bool] = {}
    for row in _some_rows(output / record.file, record):
        for chunk in row.retrieved_chunks:
            name = chunk.metadata.filename
            told[name] = pages.has(name)
            if told[name] and words_of(chunk.text):
                of += 1
                foreign += not pages.says(name, chunk.text)
    if any(told.values()) or not any(told) or not documents:
        return ForeignText(foreign, of)
    there = tuple(document.doc_id for document in documents[:EXAMPLES])
    return ForeignText(foreign, of, (tuple(filter(None, told))[:EXAMPLES], there))


def _some_rows(file: Path, record: SuiteRecord) -> Iterator[ExperimentResult]:
    if not file.is_file():
        return
    counts, total = of_run(record), sum(1 for _ in numbered_lines(file))
    step = max(1, -(-total // MOST_ROWS))
    for number, (_, line, _) in enumerate(numbered_lines(file)):
        row = row_or_none(line) if number % step == 0 else None
        if row is not None and row.ok and counts(row):
            yield row
