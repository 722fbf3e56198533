"""Validation of finished result files: doubles, questions without a line, and answers that contradict themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from rag_harness.core.errors import DataError
from rag_harness.core.types import GOLDEN
from rag_harness.records.manifest import is_played_name, read_manifest
from rag_harness.records.row import (
    SCHEMA_VERSION,
    ExperimentResult,
    first_problem,
    numbered_lines,
    parse_row,
    rows_in,
)
from rag_harness.records.scores import CAUSES, SCORES, parse_score, row_digest


@dataclass
class FileCheck:
    """The findings in one result file."""

    file: Path
    rows: int = 0
    errors: int = 0
    problems: list[str] = field(default_factory=list)
    what: str = "rows"
    without: str = "with status error"
    unused: int = 0

    def line(self) -> str:
        """Return the finding in one line."""
        unused = f", {self.unused} of rows that are not there" if self.unused else ""
        state = "ok" if not self.problems else f"{len(self.problems)} problems"
        return f"{self.file}: {self.rows} {self.what}, {self.errors} {self.without}{unused}: {state}"


def check_results(path: Path, query_ids: Iterable[str] = (), played: Iterable[str] = ()) -> list[FileCheck]:
    """Check a result file, or all files of a folder. Each must have one row for each of ``query_ids``, where given.

    ``played`` are the turns that simulated users may reach. In an experiment that they ask, each must have a row,
    except the turns after the end of a conversation in ``run.json``.

    Raises:
        DataError: the file does not exist, or the folder has no result file.
    """
    files = [path] if path.is_file() else _result_files(path) if path.is_dir() else []
    if not files:
        raise DataError(f"No result file at {path}: run pytest first, or name a .jsonl file or its folder.")
    wanted, turns = list(query_ids), list(played)
    checks = [_check_file(file, _still_to_come(file, turns) if is_played_name(file.stem) else wanted) for file in files]
    return [*checks, *(_check_scores(file) for file in _score_files(files))]


def _still_to_come(file: Path, turns: list[str]) -> list[str]:
    """Return the turns that must have a row: those before which no conversation has ended."""
    try:
        suites = read_manifest(file.parent).suites.values()
    except DataError:
        return turns
    ended = next((record.ended for record in suites if record.file == file.name), {})
    return [turn for turn in turns if turn not in ended]


def _result_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.jsonl") if file.name != CAUSES)


def _score_files(files: Iterable[Path]) -> list[Path]:
    """Return the score files that belong to the result files ``files``."""
    return [scores for file in files if (scores := file.parent / SCORES / file.name).is_file()]


def _check_scores(file: Path) -> FileCheck:
    """Check that lines are scores, and count the scores whose rows are not there."""
    check = FileCheck(file, what="scores", without="without a value")
    rows = {row.query_id: row_digest(row) for row in rows_in(file.parent.parent / file.name)}
    for number, line, torn in numbered_lines(file):
        score = parse_score(line)
        if score is None:
            check.problems.append(f"{file}:{number}: {'the line is torn' if torn else 'no score'}")
            continue
        check.rows += 1
        check.errors += score.value is None
        # Such a score is kept. Its row may come back, e.g. with the earlier settings, and is then not judged again.
        check.unused += rows.get(score.query_id) != score.row
    return check


def _check_file(file: Path, wanted: list[str]) -> FileCheck:
    check = FileCheck(file)
    rows: list[ExperimentResult] = []
    for number, line, torn in numbered_lines(file):
        try:
            rows.append(parse_row(line))
        except ValidationError as error:
            what = "the line is torn, as a killed run leaves it" if torn else first_problem(error)
            check.problems.append(f"{file}:{number}: {what}")
    check.rows, check.errors = len(rows), sum(not row.ok for row in rows)
    found = [*_inconsistencies(rows), *_gaps(rows, [] if file.stem == GOLDEN else wanted)]
    check.problems += [f"{file}: {problem}" for problem in found]
    return check


def _inconsistencies(rows: list[ExperimentResult]) -> list[str]:
    found = [f"{key} has {n} rows" for key, n in Counter(row.trial_id for row in rows).items() if n > 1]
    prints = {row.fingerprint for row in rows}
    if len(prints) > 1:
        found.append(f"rows of {len(prints)} fingerprints are mixed: {', '.join(sorted(prints))}")
    found += [
        f"{row.trial_id}: schema_version {row.schema_version}, this release reads {SCHEMA_VERSION}"
        for row in rows
        if row.schema_version != SCHEMA_VERSION
    ]
    # Rows of the retrieval suite have no answer.
    answering = [row for row in rows if row.experiment != GOLDEN]
    found += [f"{row.trial_id}: status ok but no answer" for row in answering if row.ok and not row.llm_answer.strip()]
    found += [f"{row.trial_id}: status error but no error" for row in rows if not row.ok and row.error is None]
    return found


def _gaps(rows: list[ExperimentResult], wanted: list[str]) -> list[str]:
    there = {row.query_id for row in rows}
    missing = [query_id for query_id in wanted if query_id not in there]
    if not missing:
        return []
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return [f"{len(missing)} of {len(wanted)} queries have no row: {', '.join(missing[:5])}{more}"]
