"""Reads the answers of a run and a judge's scores of them from ``output/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_harness.errors import DataError, unknown
from rag_harness.judges.calibration.labels import AnswerLabel
from rag_harness.measures import measure_named
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.measures.judged.rubric_measure import rubric_measure
from rag_harness.results.manifest import read_manifest
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.results.score import SCORES, Author, ScoreLine, read_scores, row_digest
from rag_harness.types import GOLDEN

Item = tuple[str, str]
"""Experiment and query of a row."""


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The answers of a run, and one judge's scores of them.

    ``scores`` has the answers with a value, ``missing`` the reasons of judged answers without one. ``author`` is None
    where nothing was judged.
    """

    rows: Mapping[Item, ExperimentResult]
    scores: Mapping[Item, float]
    missing: Mapping[Item, str]
    author: Author | None
    version: int


def read_scored(output: Path, measure: str, judge: str = "") -> ScoredAnswers:
    """Read rows and scores of ``output``. ``judge`` names the judge, where several have scored.

    Raises:
        DataError: there are no answers, the measure is not judged, or several judges have scored and none is named.
    """
    judged_measure(measure)
    rows = _rows(output)
    if not rows:
        raise DataError(f"No answers in {output}: run pytest first, or name the folder with --output DIR.")
    version = _version(output, measure)
    lines = [line for line in _lines(output, rows) if (line.measure, line.version) == (measure, version)]
    author = _author({line.author for line in lines if _meant(line.author, judge)}, output, judge, measure)
    said = {(line.experiment, line.query_id): line for line in lines if line.author == author}
    scores = {item: line.value for item, line in said.items() if line.value is not None}
    missing = {item: line.reason for item, line in said.items() if line.value is None}
    return ScoredAnswers(rows, scores, missing, author, version)


def _version(output: Path, measure: str) -> int:
    """Return the version of a measure's scores in a folder; of a rubric, that of the criteria that were asked.

    Raises:
        DataError: experiments were held against different criteria of a rubric.
    """
    if rubric_measure(measure) is None:
        return judged_measure(measure).version
    suites = read_manifest(output).suites.values()
    versions = {record.rubrics[measure] for record in suites if measure in record.rubrics}
    if len(versions) > 1:
        raise DataError(f"{measure} was changed between the experiments in {output}: run all of them again first.")
    return next(iter(versions), 0)


def judged_measure(name: str) -> JudgedMeasure:
    """Return the judged measure of that name.

    Raises:
        SettingsError: there is no such measure.
        DataError: it needs no judge.
    """
    found = measure_named(name)
    if not isinstance(found, JudgedMeasure):
        raise DataError(
            f"{name} needs no judge, so there is nothing to calibrate. Name a judged measure: faithfulness."
        )
    return found


def _rows(output: Path) -> dict[Item, ExperimentResult]:
    files = [file for file in sorted(output.glob("*.jsonl")) if file.stem != GOLDEN]
    return {(row.experiment, row.query_id): row for file in files for row in rows_in(file) if row.ok}


def _lines(output: Path, rows: Mapping[Item, ExperimentResult]) -> list[ScoreLine]:
    """Return the scores that belong to these rows in their present form."""
    digests = {item: row_digest(row) for item, row in rows.items()}
    files = sorted((output / SCORES).glob("*.jsonl"))
    every = (line for file in files for line in read_scores(file))
    return [line for line in every if digests.get((line.experiment, line.query_id)) == line.row]


def _meant(author: Author, judge: str) -> bool:
    return not judge or judge in (author.judge, author.model, f"{author.judge}@{author.model}")


def _author(found: set[Author], output: Path, judge: str, measure: str) -> Author | None:
    latest = found & _of_last_run(output)
    authors = sorted(latest or found, key=lambda author: (author.judge, author.model, author.revision))
    if judge and not authors:
        raise DataError(
            f"No score of {measure} in {output / SCORES} is by {judge!r}. Judge with it first, or leave --judge."
        )
    if len(authors) > 1:
        named = "; ".join(map(whole_name, authors))
        raise DataError(
            f"{output / SCORES} has scores of {measure} by {len(authors)} judges: {named}. Name one by its name "
            "or model, --judge NAME; of several revisions run pytest again, so that one is the last."
        )
    return authors[0] if authors else None


def whole_name(author: Author) -> str:
    """Return a judge's name for people."""
    return " ".join(part for part in (author.judge, author.model, author.revision) if part)


def judges_called(output: Path, judge: str) -> int:
    """Return how many judges of this name the last run had: a panel may have one name with several models."""
    return sum(author.judge == judge for author in _of_last_run(output))


def _of_last_run(output: Path) -> set[Author]:
    try:
        suites = read_manifest(output).suites.values()
    except DataError:
        return set()
    return {Author(*author) for suite in suites for author in suite.authors}


def in_clusters(labels: Sequence[AnswerLabel], rows: Mapping[Item, ExperimentResult]) -> list[AnswerLabel]:
    """Return labels with the conversation of their row as the cluster, else its first page, where they name none."""
    of = {item: _cluster(row) for item, row in rows.items()}
    return [label if label.cluster else replace(label, cluster=of.get(label.item, "")) for label in labels]


def _cluster(row: ExperimentResult) -> str:
    if place := row.asked.place:
        return f"conversation {place['conversation']}"
    return next((f"page {page}" for page in row.context_reference), "")


def missing_rows(items: Mapping[Item, str], rows: Mapping[Item, ExperimentResult]) -> list[str]:
    """Say for each item without a row where it was named."""
    known: Sequence[str] = sorted({experiment for experiment, _ in rows})
    return [f"{where}: {_unknown_row(item, rows, known)}" for item, where in items.items() if item not in rows]


def _unknown_row(item: Item, rows: Mapping[Item, ExperimentResult], known: Sequence[str]) -> str:
    experiment, query_id = item
    if experiment not in known:
        return unknown("experiment", experiment, known)
    return unknown_short("query", query_id, [query for name, query in rows if name == experiment], experiment)


def unknown_short(kind: str, name: str, known: Sequence[str], where: str) -> str:
    """Say that there is no such answer, with the nearest name: a run has too many to list all."""
    hint = unknown(kind, name, known).partition(" Known:")[0]
    return f"{hint} {where} has {len(known)} answers."
