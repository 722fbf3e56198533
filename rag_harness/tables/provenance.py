"""The provenance of the answers behind figures, and runs that left no results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.types import GOLDEN
from rag_harness.records.manifest import BegunRun, read_begun, read_manifest, seconds_of
from rag_harness.tables.blocks import Origin, Origins
from rag_harness.tables.suite_table import SuiteTable

# Says in words where the answers behind a run's figures come from.

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


def renewal(tables: Mapping[str, SuiteTable], may_ask: bool, made_anew: bool) -> str:
    """Return how to get new answers; empty where this run asked for all of them.

    Args:
        tables: tables of the run, by suite.
        may_ask: whether this mode may ask models and services.
        made_anew: whether rows of earlier runs are ignored anyway.
    """
    origins = [table.totals.origins for table in tables.values()]
    found = []
    if any(each.resumed.n for each in origins) and not made_anew:
        found.append("--rag-overwrite makes reused rows anew")
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
        return "recorded nobody knows when"
    text = f"recorded {_when(origin)} ({_age(origin, now)})"
    return text + (f", {origin.undated} of them nobody knows when" if origin.undated else "")


def _when(origin: Origin) -> str:
    if not isfinite(origin.earliest):
        return "nobody knows when"
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
        return "later than this run by the clock, so nobody knows how old"
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
        return f"{undated} answers were recorded nobody knows when"
    newest = max(origins.replayed.latest, origins.partly.latest, origins.replayed_then.latest)
    if newest > now + _SKEW:
        return f"answers are dated {_minute(newest)}, which is later than now: nobody knows how old"
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
