"""The measures that a run was asked for, found in its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.gates.gates_of_run import measures_by_suite
from rag_harness.measures import Measure, default_measures, is_judged, measure_named
from rag_harness.measures.metamorphic import metamorphic_of
from rag_harness.report.slices_asked import measures_of
from rag_harness.results.manifest import RunManifest
from rag_harness.results.score import CHECKED, read_scores
from rag_harness.settings.listed import names_in
from rag_harness.types import GOLDEN


def asked_measures(output: Path, manifest: RunManifest, suite: str) -> list[Measure]:
    """Return the measures of a suite: those of every run, the judged ones, those of its checks and of its gates.

    Raises:
        SettingsError: the run was judged on a measure that is not registered here.
    """
    record, k = manifest.suites[suite], int(manifest.settings.get("k") or 10)
    kept = {measure.name: measure for measure in default_measures(suite == GOLDEN, k)}
    checked = metamorphic_of({score.measure for score in read_scores(output / CHECKED / record.file)})
    played = ["goal_reached"] if record.history == "played" else []
    more = dict.fromkeys(
        [
            *(*played, *record.judged, *checked, *_gated(manifest.settings, suite, k)),
            *(*_sliced(manifest.settings, k), *_named(manifest.settings)),
        ]
    )
    return [*kept.values(), *(measure_named(name) for name in more if name not in kept)]


def gated_measures(settings: dict[str, Any], suite: str) -> list[str]:
    """Return the measures that the gates of a run are on for a suite, sorted."""
    return sorted(set(_gated(settings, suite, int(settings.get("k") or 10))))


def _gated(settings: dict[str, Any], suite: str, k: int) -> Iterator[str]:
    """Yield the measures that the run's gates name. A gate on a plug-in that is not installed here names none."""
    for text in _gates(settings):
        try:
            named = measures_by_suite([text], k).get(suite, [])
            yield from (measure_named(name).name for name in named)
        except SettingsError:
            continue


def _sliced(settings: dict[str, Any], k: int) -> Iterator[str]:
    """Yield the measures of comparisons by slice that are known here."""
    for text in slices_in(settings):
        try:
            yield from measures_of([text], k)
        except SettingsError:
            continue


def _named(settings: dict[str, Any]) -> Iterator[str]:
    """Yield the measures that the run named and that are read off its rows: judged ones are in its record."""
    options = [found for option in ("measures", "headline") if isinstance(found := settings.get(option), list)]
    for name in names_in(each for found in options for each in found if isinstance(each, str)):
        try:
            if not is_judged(name):
                yield measure_named(name).name
        except SettingsError:
            continue


def slices_in(settings: Mapping[str, Any]) -> Sequence[str]:
    """Return the slices in a run's settings; empty for settings of a release without slices."""
    found = settings.get("slices")
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _gates(settings: dict[str, Any]) -> Sequence[str]:
    def listed(found: object) -> Iterable[Any]:
        return found if isinstance(found, list) else []

    of_data = (listed(each.get("gates")) for each in listed(settings.get("data")) if isinstance(each, dict))
    texts = [*listed(settings.get("gate")), *(text for texts in of_data for text in texts)]
    return [text for text in texts if isinstance(text, str)]
