"""Rows and scores that need not be made again: those in the files, and those in journals of dead processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_harness.engine.journal import JOURNALS, abandoned, left_behind, remove, tidy
from rag_harness.measures import Score
from rag_harness.results.file import PREVIOUS, all_rows, keep_aside, last_rows, set_torn_apart, sync, take_over
from rag_harness.results.result_paths import DERIVED, result_path, scores_path
from rag_harness.results.row import ExperimentResult, row_or_none, rows_in
from rag_harness.results.score import BEGIN, SCORES, ScoreLine, parse_score, read_scores, row_digest
from rag_harness.results.score_file import take_over_scores
from rag_harness.types import TrialId

_Key = tuple[str, str, str]


class Stored:
    """The scores and the rows of earlier runs, and of dead workers of this run. Rows with an error are made again.

    Args:
        output: folder of the result files.
        run: id of this run; its journals' names begin with it.
        anew: whether earlier runs are ignored.
    """

    def __init__(self, output: Path, run: str, anew: bool) -> None:
        self._output, self._run, self._anew = output, run, anew
        self._earlier: dict[tuple[str, str], dict[str, ExperimentResult]] = {}
        self._left_behind: dict[_Key, tuple[ExperimentResult, bool]] = {}
        self._failed: dict[_Key, ExperimentResult] = {}
        self._scores: dict[str, dict[tuple[str, ...], ScoreLine]] = {}
        self._scores_left: dict[TrialId, list[bytes]] = {}
        self._read: set[Path] = set()

    def find(self, experiment: str, fingerprint: str, query_id: str) -> tuple[ExperimentResult, bool] | None:
        """Return the row of a trial, and whether an earlier run has made it; None where the trial has to be run."""
        earlier = self._earlier_row(experiment, fingerprint, query_id)
        if earlier is not None and earlier.ok:
            return earlier, True
        return self._left_behind.get((experiment, fingerprint, query_id))

    def last(
        self, experiment: str, fingerprint: str, query_id: str, *, of_any_run: bool = False
    ) -> ExperimentResult | None:
        """Return the last row of a trial, also one that ended with an error; None where there is none.

        ``of_any_run``: the last row in the file counts, whatever its fingerprint, where this run has none.
        """
        found = self.find(experiment, fingerprint, query_id)
        if found is not None:
            return found[0]
        left = self._failed.get((experiment, fingerprint, query_id))
        return left or self._earlier_row(experiment, "" if of_any_run else fingerprint, query_id)

    def _earlier_row(self, experiment: str, fingerprint: str, query_id: str) -> ExperimentResult | None:
        if self._anew:
            return None
        wanted = experiment, fingerprint
        if wanted not in self._earlier:
            file = result_path(self._output, experiment)
            self._earlier[wanted] = all_rows(file, fingerprint) if fingerprint else last_rows(file)
        return self._earlier[wanted].get(query_id)

    def score(self, experiment: str, key: tuple[str, ...]) -> ScoreLine | None:
        """Return the known score with this key; None where the row has to be judged."""
        if experiment not in self._scores:
            earlier = () if self._anew else read_scores(scores_path(self._output, experiment))
            self._scores[experiment] = {score.key: score for score in earlier if score.is_final}
        return self._scores[experiment].get(key)

    def scores_of(self, experiment: str, query_id: str) -> list[ScoreLine]:
        """Return the known scores of an experiment's query."""
        self.score(experiment, ())
        return [each for each in self._scores[experiment].values() if each.query_id == query_id]

    def reread(self, journal: Path, trial: TrialId) -> ExperimentResult:
        """Return a row that this process has put into its journal."""
        rows = [row for row in map(row_or_none, journal.read_bytes().splitlines()) if row]
        return [row for row in rows if row.trial == trial][-1]

    def reread_scores(self, journal: Path, trial: TrialId) -> dict[str, Score]:
        """Return the scores of a trial, by measure, that this process has put into its journal."""
        found = self.reread_lines(journal, trial)
        return {one.measure: Score(one.value, one.reason, one.detail, one.undefined) for one in found}

    def reread_lines(self, journal: Path, trial: TrialId) -> list[ScoreLine]:
        """Return the lines of a trial's scores that this process has put into its journal; none of repeats."""
        lines = [line for line in journal.read_bytes().splitlines() if line.startswith(BEGIN)]
        found = [score for score in map(parse_score, lines) if score is not None and score.trial == trial]
        return [one for one in found if not one.repeat]

    def scores_left_of(self, trial: TrialId) -> list[bytes]:
        """Return the lines of a trial's scores that dead workers of this run have left."""
        return self._scores_left.get(trial, [])

    def look_for_the_dead(self) -> None:
        """Read the journals of processes that have died since the last look."""
        for file, lines in left_behind(self._output / JOURNALS, self._read).items():
            ours = file.name.startswith(self._run)
            if ours or not self._anew:
                self._add(lines, earlier=not ours)
            self._read.add(file)

    def _add(self, lines: list[bytes], earlier: bool) -> None:
        for line in lines:
            if line.startswith(BEGIN):
                self._add_score(parse_score(line), line, earlier)
                continue
            row = row_or_none(line)
            if row is not None and row.ok:
                self._left_behind[row.experiment, row.fingerprint, row.query_id] = row, earlier
            elif row is not None:
                self._failed[row.experiment, row.fingerprint, row.query_id] = row

    def _add_score(self, score: ScoreLine | None, line: bytes, earlier: bool) -> None:
        if score is None or not score.is_final:
            return
        self.score(score.experiment, score.key)
        self._scores[score.experiment][score.key] = score
        if not earlier:
            self._scores_left.setdefault(score.trial, []).append(line)


@dataclass
class Adopted:
    """What was taken over from journals: the numbers of new rows and scores, and of damaged lines."""

    rows: int = 0
    scores: int = 0
    damaged: int = 0


def adopt_journals(output: Path) -> Adopted:
    """Move the lines of dead processes' journals into the result files. Unreadable lines go to ``previous/``.

    So do lines that a full disk has torn in the result files, whether or not anything is written to them later.
    """
    adopted = Adopted(damaged=_torn_set_apart(output))
    if not (output / JOURNALS).is_dir():
        return adopted
    with abandoned(output / JOURNALS) as journals:
        recorded = _lines_in_files(output) if journals else {}
        by_file: dict[Path, list[tuple[ExperimentResult, bytes]]] = {}
        scores: dict[Path, list[tuple[ScoreLine, bytes]]] = {}
        damaged: list[bytes] = []
        # Most lines are already in a result file, byte for byte. They are compared as bytes: to parse them as rows
        # took most of the time at the end of a run.
        safe: set[Path] = set()
        for line in (line for lines in journals.values() for line in lines):
            file = recorded.get(hash(line))
            score = parse_score(line) if file is None and line.startswith(BEGIN) else None
            row = row_or_none(line) if file is None and score is None and line.endswith(b"\n") else None
            if file is not None:
                safe.add(file)
            elif score is not None:
                scores.setdefault(scores_path(output, score.experiment), []).append((score, line))
            elif row is None:
                damaged.append(line)
            else:
                by_file.setdefault(result_path(output, row.experiment), []).append((row, line))
        adopted.rows = sum(take_over(file, rows) for file, rows in by_file.items())
        adopted.scores = sum(take_over_scores(file, _of_rows(file, lines)) for file, lines in scores.items())
        adopted.damaged += keep_aside(output / PREVIOUS / "journal-damaged.jsonl", damaged)
        # The journals are removed below, so these files must be safe on the disk first.
        for file in safe:
            sync(file)
        for journal in journals:
            remove(journal)
    tidy(output / JOURNALS)
    return adopted


def _torn_set_apart(output: Path) -> int:
    return sum(set_torn_apart(file, output / PREVIOUS / "torn.jsonl") for file in _files(output))


def _files(output: Path) -> list[Path]:
    folders = (output, output / SCORES, output / DERIVED, output / DERIVED / SCORES)
    return [file for folder in folders for file in folder.glob("*.jsonl")]


def _of_rows(file: Path, scores: list[tuple[ScoreLine, bytes]]) -> list[tuple[ScoreLine, bytes]]:
    """Leave out scores of rows that were not taken. Two workers may have run one trial: the first row counts."""
    rows = {(row.query_id, row_digest(row)) for row in rows_in(file.parent.parent / file.name)}
    return [(score, line) for score, line in scores if (score.query_id, score.row) in rows]


def _lines_in_files(output: Path) -> dict[int, Path]:
    """Return the file of each whole line of the result files, by the line's hash: there are many long lines."""
    found: dict[int, Path] = {}
    for file in _files(output):
        with file.open("rb") as stream:
            found |= dict.fromkeys((hash(line) for line in stream if line.endswith(b"\n")), file)
    return found
