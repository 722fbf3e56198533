"""Labels of people: their files, blind sheets, and the scored answers that they belong to."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rag_harness.core.errors import DataError, unknown
from rag_harness.core.escaping import csv_cell as inert
from rag_harness.core.files import write_atomically
from rag_harness.core.json_text import number_as_text, read_json
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.expectations import rubric_measure
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult, first_problem, rows_in
from rag_harness.records.scores import SCORES, Author, ScoreLine, read_scores, row_digest

_LONGEST_FIELD = 1 << 30


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line: its values by name, its file and its number."""

    values: Mapping[str, Any]
    file: Path
    number: int

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.number}"


def read_lines(file: Path, problems: list[str]) -> Iterator[FileLine]:
    """Yield the lines of ``file``. Unreadable lines are added to ``problems``.

    Raises:
        DataError: the file does not exist, or is not text.
    """
    text = _text(file)
    if file.suffix.lower() == ".csv":
        yield from _csv(text, file, problems)
        return
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end the line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _json(line, file, number, problems)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise DataError(f"No file {file}. Name your labels: a .jsonl or .csv file.") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error


def _json(line: str, file: Path, number: int, problems: list[str]) -> Iterator[FileLine]:
    try:
        values = read_json(line)
    except ValueError as error:
        problems.append(f"{file}:{number}: no JSON: {error}")
        return
    if isinstance(values, dict):
        yield FileLine(values, file, number)
    else:
        problems.append(
            f"{file}:{number}: a line is an object with 'human' and what it is about; found {line.strip()[:60]}"
        )


def _csv(text: str, file: Path, problems: list[str]) -> Iterator[FileLine]:
    # In some countries spreadsheets write semicolons.
    head = text.partition("\n")[0]
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=";" if ";" in head and "," not in head else ",")
    if "human" not in (reader.fieldnames or ()):
        problems.append(f"{file}:1: no column 'human'; found {', '.join(reader.fieldnames or ()) or 'nothing'}")
        return
    # Contexts in a sheet may be longer than the default limit of a field, 128 kB.
    usual = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for values, number in _numbered(reader):
            if any(isinstance(value, str) and value.strip() for value in values.values()):
                yield FileLine(
                    {name: value for name, value in values.items() if name and value is not None}, file, number
                )
    except csv.Error as error:
        problems.append(f"{file}:{reader.line_num}: no CSV: {error}")
    finally:
        csv.field_size_limit(usual)


def _numbered(reader: csv.DictReader[str]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each row with the number of its first line: a field may contain line breaks."""
    before = reader.line_num
    for values in reader:
        yield values, before + 1
        before = reader.line_num


ENDING = ".key.json"


def write_key(file: Path, rows: Mapping[str, tuple[str, str]]) -> None:
    """Write the row, experiment and query, of each item."""
    content = {item: {"experiment": experiment, "query_id": query_id} for item, (experiment, query_id) in rows.items()}
    lines = ",\n".join(f" {json.dumps(item)}: {json.dumps(row, ensure_ascii=False)}" for item, row in content.items())
    write_atomically(file, f"{{\n{lines}\n}}\n".encode())


def key_of(item: str, sheet: Path, key: Path | None) -> tuple[str, str]:
    """Return the row of an item.

    Raises:
        DataError: the key is missing, or lacks the item.
    """
    file = key or sheet.with_suffix("").with_suffix(ENDING)
    rows = _read(file)
    if rows is None:
        raise DataError(f"item {item!r} needs the key of its sheet; {file} is none. Name it with --key FILE")
    if item not in rows:
        raise DataError(f"item {item!r} is not in the key {file}")
    return rows[item]


def _read(file: Path) -> dict[str, tuple[str, str]] | None:
    try:
        said = read_json(file.read_text(encoding="utf-8"))
        return {item: (str(row["experiment"]), str(row["query_id"])) for item, row in said.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


# Reads files of people's labels. One error lists all problems, each with file and line.

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MOST_PROBLEMS = 20


def _number(value: Any) -> Any:
    """Accept a number as text, as CSV has it, and yes or no. Empty means not labelled."""
    if isinstance(value, str):
        text = value.strip().lower()
        return _WORDS.get(text, text or None)
    return value


_Text = Annotated[str, BeforeValidator(number_as_text)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Number = Annotated[_Finite | None, BeforeValidator(_number)]


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """One person's label of one answer.

    ``experiment`` and ``query_id`` name its row. For an answer outside any run the experiment is empty, and
    ``query_id`` is the answer's id. ``human`` is 0 or 1, or a rating. ``score`` is a judge's score, where the file has
    it, and ``author`` is that judge, where the file names it. ``where`` is file and line.
    """

    experiment: str
    query_id: str
    human: float
    rater: str = ""
    cluster: str = ""
    score: float | None = None
    answer: str = ""
    author: Author | None = None
    where: str = ""

    @property
    def item(self) -> tuple[str, str]:
        """The labelled answer."""
        return self.experiment, self.query_id


class _LabelLine(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")
    experiment: _Text = ""
    query_id: _Text = ""
    id: _Text = ""
    item: _Text = ""
    human: _Number = None
    rater: _Text = ""
    cluster: _Text = ""
    score: _Number = None
    answer: str = ""
    judge: str = ""
    model: str = ""
    revision: _Text = ""

    @model_validator(mode="after")
    def _named(self) -> _LabelLine:
        if not (self.item or self.id or (self.experiment and self.query_id)):
            raise ValueError("names no answer: give experiment and query_id of its row, or an id of its own")
        return self


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of some files, and the number of lines without a label."""

    each: tuple[AnswerLabel, ...]
    unlabelled: int = 0


def read_labels(files: Sequence[Path], key: Path | None = None) -> Labels:
    """Read labels, JSON Lines or CSV. Labels of several people are several lines, or files, about the same answers.

    Args:
        files: files of labels, or filled sheets.
        key: file with the row of each item of a sheet; by default the file beside the sheet.

    Raises:
        DataError: a file is missing, nothing in it is labelled, or lines are malformed, each as ``file:line: …``.
    """
    problems: list[str] = []
    labels: list[AnswerLabel] = []
    unlabelled = 0
    for file in files:
        for found in read_lines(file, problems):
            label = _label(found, key, problems)
            unlabelled += label is None
            labels += [label] if label else []
    problems += _twice(labels)
    if problems:
        raise DataError("\n".join(at_most(problems)))
    if not labels:
        named = ", ".join(map(str, files))
        raise DataError(f"Nothing is labelled in {named}: write 0 or 1, or a rating, into 'human' of each line.")
    return Labels(tuple(labels), unlabelled)


def scaled(labels: Sequence[AnswerLabel], low: float, high: float) -> list[AnswerLabel]:
    """Return the labels with their ratings, ``low`` to ``high``, scaled to 0 to 1.

    Raises:
        DataError: a rating is outside the range, or the range is empty.
    """
    if not (isfinite(low) and isfinite(high) and low < high):
        raise DataError(f"A scale goes from a lower to a higher number, e.g. 1:5; got {low:g}:{high:g}.")
    beyond = [
        f"{label.where}: human: {label.human:g} is not from {low:g} to {high:g}"
        for label in labels
        if not low <= label.human <= high
    ]
    if beyond:
        hint = "Name the scale of your ratings: --scale 1:5." if (low, high) == (0, 1) else "Correct them, or --scale."
        raise DataError("\n".join([*at_most(beyond), hint]))
    return [replace(label, human=(label.human - low) / (high - low)) for label in labels]


def _label(found: FileLine, key: Path | None, problems: list[str]) -> AnswerLabel | None:
    try:
        line = _LabelLine.model_validate(found.values)
    except ValidationError as error:
        problems += [f"{found.where}: {_said(each)}" for each in error.errors()]
        return None
    if line.human is None:
        return None
    try:
        experiment, query_id = _row_of(line, found, key)
    except DataError as error:
        problems.append(f"{found.where}: {error}")
        return None
    author = Author(line.judge, line.model, line.revision) if line.judge else None
    return AnswerLabel(
        experiment, query_id, line.human, line.rater, line.cluster, line.score, line.answer, author, found.where
    )


def _row_of(line: _LabelLine, found: FileLine, key: Path | None) -> tuple[str, str]:
    if line.experiment and line.query_id:
        return line.experiment, line.query_id
    return ("", line.id) if line.id else key_of(line.item, found.file, key)


def _said(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{field}: {message}; found {error['input']!r}" if field else message


def _twice(labels: Sequence[AnswerLabel]) -> list[str]:
    seen: dict[tuple[str, str, str], str] = {}
    problems = []
    for label in labels:
        first = seen.setdefault((*label.item, label.rater), label.where)
        if first != label.where:
            who = f"by {label.rater!r}" if label.rater else "without a rater: name who said what"
            problems.append(
                f"{label.where}: {'-'.join(filter(None, label.item))} is labelled twice {who}, first at {first}"
            )
    return problems


def at_most(problems: Sequence[str]) -> list[str]:
    """Return the first problems, as many as a person reads, and the number of the others."""
    beyond = len(problems) - _MOST_PROBLEMS
    return [*problems[:_MOST_PROBLEMS], *([f"and {beyond} more"] if beyond > 0 else [])]


# Joins the scores of ``rag-harness judge score`` with labels of the same answers.


class _JudgedAnswer(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")
    id: Any
    judge: str
    model: str
    revision: str
    scores: dict[str, float | None]


def with_scores(labels: Sequence[AnswerLabel], file: Path, measure: str) -> list[AnswerLabel]:
    """Return the labels with the scores of ``measure`` from ``file``, and with the judge that gave them.

    Raises:
        DataError: the file is missing or malformed, or lacks a labelled answer.
    """
    problems: list[str] = []
    said = _read_judged_answers(file, problems)
    problems += [
        f"{label.where}: {label.query_id!r} is not among the {len(said)} answers of {file}: judge it, too"
        for label in labels
        if not label.experiment and label.query_id not in said
    ]
    if problems:
        raise DataError("\n".join(at_most(problems)))
    return [label if label.experiment else _with(label, said[label.query_id], measure) for label in labels]


def _read_judged_answers(file: Path, problems: list[str]) -> Mapping[str, _JudgedAnswer]:
    said: dict[str, _JudgedAnswer] = {}
    for found in read_lines(file, problems):
        try:
            line = _JudgedAnswer.model_validate(found.values)
            said[str(line.id)] = line
        except ValidationError as error:
            problems.append(f"{found.where}: no line of rag-harness judge score: {first_problem(error)}")
    return said


def _with(label: AnswerLabel, line: _JudgedAnswer, measure: str) -> AnswerLabel:
    return replace(label, score=line.scores.get(measure), author=Author(line.judge, line.model, line.revision))


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
        DataError: no answers exist, the measure is not judged, or several judges have scored and none is named.
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
    """Return the version of a measure's scores in a folder; for a rubric, the version of its criteria that were judged.

    Raises:
        DataError: experiments were judged by different criteria of a rubric.
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
        SettingsError: the measure does not exist.
        DataError: the measure needs no judge.
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
    """Return the message that an answer does not exist, with the nearest name. A run has too many names to list all."""
    hint = unknown(kind, name, known).partition(" Known:")[0]
    return f"{hint} {where} has {len(known)} answers."


SHEET_COLUMNS = ("item", "question", "contexts", "answer", "human", "rater", "comment")


def sample_of_answers(scored: ScoredAnswers, n: int, seed: int = 0) -> list[Item]:
    """Pick ``n`` answers, or all where there are fewer: equally many of each experiment, in random order.

    Within an experiment all answers are equally likely, as PPI++ needs. The sample is systematic: every k-th answer in
    the order of the judge's scores. Answers whose judgement gave no score cannot be compared, and are not picked.

    Raises:
        DataError: n is below 1.
    """
    if n < 1:
        raise DataError(f"-n is a number of answers, 1 or more; got {n}.")
    rng = random.Random(seed)
    by_experiment: dict[str, list[Item]] = {}
    for item in scored.scores or [item for item in scored.rows if item not in scored.missing]:
        by_experiment.setdefault(item[0], []).append(item)
    shares = _shares({name: len(items) for name, items in by_experiment.items()}, n)
    chosen = [item for name, share in shares.items() for item in _spread(by_experiment[name], share, scored, rng)]
    rng.shuffle(chosen)
    return chosen


def write_sheet(prefix: Path, items: Sequence[Item], rows: Mapping[Item, ExperimentResult]) -> list[Path]:
    """Write ``prefix``.csv and .jsonl, to be filled in, and .key.json with the row of each item; return all paths.

    Raises:
        DataError: one of the files exists: it may contain people's work.
    """
    files = [prefix.with_name(prefix.name + ending) for ending in (".csv", ".jsonl", ENDING)]
    for file in files:
        if file.exists():
            raise DataError(f"{file} is there already and may hold labels. Name another sheet with -o NAME.")
    named = {f"a{number:0{len(str(len(items)))}}": item for number, item in enumerate(items, 1)}
    write_atomically(files[0], _sheet_csv(named, rows).encode("utf-8-sig"))
    write_atomically(files[1], (line.encode() for line in _jsonl(named, rows)))
    write_key(files[2], named)
    return files


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Distribute ``n`` one by one over the experiments that have answers left."""
    shares = dict.fromkeys(sorted(sizes), 0)
    for _ in range(min(n, sum(sizes.values()))):
        left = [name for name in shares if shares[name] < sizes[name]]
        shares[min(left, key=shares.__getitem__)] += 1
    return shares


def _spread(items: Sequence[Item], share: int, scored: ScoredAnswers, rng: random.Random) -> Iterator[Item]:
    mixed = rng.sample(sorted(items), len(items))
    mixed.sort(key=lambda item: scored.scores.get(item, 0.0))
    start = rng.random()
    return (mixed[int((start + number) * len(mixed) / share)] for number in range(share))


def _jsonl(named: Mapping[str, Item], rows: Mapping[Item, ExperimentResult]) -> Iterator[str]:
    for name, item in named.items():
        yield json.dumps(dict(zip(SHEET_COLUMNS, _cells(name, rows[item]), strict=True)), ensure_ascii=False) + "\n"


def _sheet_csv(named: Mapping[str, Item], rows: Mapping[Item, ExperimentResult]) -> str:
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(SHEET_COLUMNS)
    for name, item in named.items():
        writer.writerow(_as_text(cell) for cell in _cells(name, rows[item]))
    return text.getvalue()


def _cells(name: str, row: ExperimentResult) -> tuple[str, str, list[str], str, None, str, str]:
    return name, row.query, [chunk.text for chunk in row.retrieved_chunks], row.llm_answer, None, "", ""


def _as_text(cell: str | list[str] | None) -> str:
    text = "\n\n".join(f"[{n}] {chunk}" for n, chunk in enumerate(cell, 1)) if isinstance(cell, list) else cell or ""
    return inert(text)
