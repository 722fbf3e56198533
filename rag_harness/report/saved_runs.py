"""Reads a run by the name that a person gives it: its output folder, or a saved baseline."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.report.asked_measures import asked_measures
from rag_harness.report.baseline import SavedRun, check_as_written, load_saved_run, saved_run
from rag_harness.report.tables import read_tables
from rag_harness.results.manifest import MANIFEST, read_manifest
from rag_harness.results.missing_run import runs_near


def read_run(named: str, baselines: Path = Path("baselines")) -> SavedRun:
    """Return the values of each case of a run.

    Args:
        named: an output folder, a file that --rag-save wrote, or its name.
        baselines: the folder of such names.

    Raises:
        DataError: it is none of these, or damaged, or a file that was edited; says where it was searched.
    """
    place = Path(named)
    if place.is_dir():
        return _of_output(place)
    for file in (place, baselines / f"{named}.json"):
        if file.is_file():
            check_as_written(file)
            return load_saved_run(file)
    raise DataError(
        f"{named!r} is no run: there is neither a folder {place} with {MANIFEST} nor a file {baselines / named}.json. "
        f"Name the output folder of a run, or what --rag-save wrote of it.{runs_near(place, MANIFEST)}"
    )


def _of_output(output: Path) -> SavedRun:
    manifest = read_manifest(output)
    return saved_run(manifest, read_tables(output, partial(asked_measures, output, manifest)))
