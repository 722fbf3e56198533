"""How many questions of a run were answered, by which models, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from math import isfinite

from rag_harness.report.origins import Origin
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import author, judges_said
from rag_harness.results.manifest import RunManifest


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a run, over all experiments.

    Attributes:
        asked: number of trials that the run was to look at.
        rows: number of trials that ended with an answer.
        errors: number of trials that ended with an error.
        lost: number of trials without a row.
        authors: the models that answered, for people; one that is no LLM says so.
        judges: the judges, for people.
        origins: where the answers come from, for people: "200 replayed (recorded 23 Nov 2026)".
        earlier: experiments of an earlier run, which this one did not look at.
    """

    asked: int
    rows: int
    errors: int
    lost: int
    authors: tuple[str, ...]
    judges: tuple[str, ...]
    origins: tuple[str, ...]
    earlier: tuple[str, ...] = ()


def answered(tables: Mapping[str, SuiteTable], manifest: RunManifest) -> Answered:
    """Return what is to be said about the answers of the experiments."""
    asked = sum(table.selected_of({}) for table in tables.values())
    errors = sum(table.totals.errors for table in tables.values())
    lost = sum(table.lost_of({}) for table in tables.values())
    models: Counter[str] = Counter()
    for table in tables.values():
        models.update(table.totals.models)
    return Answered(
        asked=asked,
        rows=asked - errors - lost,
        errors=errors,
        lost=lost,
        authors=tuple(dict.fromkeys(author(model) for model, _ in models.most_common())),
        judges=tuple(judges_said(manifest.suites[name] for name in tables)),
        origins=tuple(_origins(tables)),
        earlier=tuple(name for name in tables if manifest.suites[name].made),
    )


def _origins(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    found = [table.totals.origins for table in tables.values()]
    replayed, resumed = Origin(), Origin()
    for each in found:
        _gather(replayed, each.replayed)
        _gather(resumed, each.resumed)
    declined = sum(each.declined for each in found)
    computed = sum(each.computed for each in found) - declined
    asked = sum(each.asked.n for each in found)
    partly = sum(each.partly.n for each in found)
    if asked:
        parts = f", {'' if partly == asked else f'{partly:,} '}with replayed parts" if partly else ""
        yield f"{asked:,} asked now{parts}"
    if replayed.n:
        yield f"{replayed.n:,} replayed (recorded {_when(replayed)})"
    if resumed.n:
        yield f"{resumed.n:,} reused from the run of {_when(resumed)}"
    if declined:
        yield f"{declined:,} declined without a model"
    if computed:
        yield f"{computed:,} computed without a model"


def _gather(total: Origin, part: Origin) -> None:
    total.n += part.n
    total.undated += part.undated
    total.earliest, total.latest = min(total.earliest, part.earliest), max(total.latest, part.latest)


def _when(origin: Origin) -> str:
    if not isfinite(origin.earliest):
        return "at an unknown time"
    first, last = (_day(each) for each in (origin.earliest, origin.latest))
    return first if first == last else f"{first} to {last}"


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%d %b %Y}".lstrip("0")
