"""Snapshots of answers in a run, and their section of the terminal summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_harness.core.types import Case, Expectation, TrialId
from rag_harness.frontends.pytest_plugin.terminal import write_section

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.core.concurrency import Lazy
    from rag_harness.core.settings import Settings
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.records.row import ExperimentResult


_SNAPSHOT = "snapshot"


@dataclass
class KeptAnswers:
    """The snapshots of one experiment.

    Attributes:
        file: where they are.
        answers: the kept answers, by the id of their trial.
        cases: the cases that demand a snapshot, by their query.
        same, changed, missing: trials whose answer is as before, is another one, is not kept yet.
        new: answers that this run keeps, by query.
        replaced: how many of them take the place of others.
        removed: trials whose answers this run keeps no longer.
    """

    file: Path
    answers: dict[str, str]
    cases: dict[str, Case] = field(default_factory=dict)
    same: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    new: dict[str, str] = field(default_factory=dict)
    replaced: int = 0
    removed: list[str] = field(default_factory=list)


class Snapshots:
    """The snapshots of a run. Every process reads them; the one that writes rows writes them.

    Args:
        config: has the options of syrupy.
        settings: of the run.
    """

    def __init__(self, config: pytest.Config, settings: Lazy[Settings]) -> None:
        self._config, self._settings = config, settings
        self.of: dict[str, KeptAnswers] = {}
        """The snapshots of experiments that owe any, by experiment."""

    @property
    def keeps(self) -> str:
        """Which answers the run keeps: all of them, new ones, or none."""
        if self._config.getoption("update_snapshots", False):
            return "all"
        return "new" if self._config.getoption("update_new_snapshots_only", False) else ""

    def filled(self, experiment: str, cases: Sequence[Case]) -> Sequence[Case]:
        """Return cases with the kept answers in those expectations that demand them.

        Raises:
            PrerequisiteError: syrupy is not installed, or a file is none of its own.
        """
        if not any(map(_wants, cases)):
            return cases
        mine = self.of[experiment] = self.of.get(experiment) or KeptAnswers(*self._read(experiment))
        found = [self._filled(experiment, case, mine.answers) if _wants(case) else case for case in cases]
        mine.cases = {case.query.query_id: case for case in found if _wants(case)}
        return found

    @staticmethod
    def _filled(experiment: str, case: Case, answers: Mapping[str, str]) -> Case:
        was = answers.get(_name(experiment, case.query.query_id))
        return _with(case, lambda demand: replace(demand, was=was))

    def _read(self, experiment: str) -> tuple[Path, dict[str, str]]:
        from rag_harness.core.errors import SettingsError
        from rag_harness.evaluation.expectations.snapshots import ENDING, read_snapshots

        settings = self._settings.get()
        folder = settings.folder("snapshots")
        if folder.name == self._config.getoption("snapshot_dirname", ""):
            raise SettingsError(
                f"--snapshot-dirname is {folder.name}, where answers are kept: syrupy deletes in its own folder what "
                f"no assertion of a test has asked for. Name another for syrupy: --snapshot-dirname=__snapshots__"
            )
        file = folder / f"{experiment}{ENDING}"
        return file, read_snapshots(file)

    def renewed(self, case: Case, row: ExperimentResult) -> Case:
        """Return a case as it is after the run has kept the answer in ``row``; the case itself if it keeps none."""
        if not self.keeps or not row.ok or not _wants(case):
            return case
        from rag_harness.evaluation.expectations.snapshots import renewed

        demands = [each for each in case.expect if each.kind == _SNAPSHOT]
        if self.keeps == "new" and demands[0].was is not None:
            return case
        texts = [renewed(each, row.llm_answer).was for each in demands]
        was = next((text for text in texts if text != demands[0].was), demands[0].was)
        return _with(case, lambda demand: replace(demand, was=was))

    def take(self, row: ExperimentResult) -> None:
        """Note whether an answer is as it was, and keep it if the run keeps answers."""
        mine = self.of.get(row.experiment)
        case = mine.cases.get(row.query_id) if mine else None
        if mine is None or case is None or not row.ok:
            return
        before, after = _was(case), _was(self.renewed(case, row))
        if after is not None and after != before:
            mine.new[row.query_id] = after
            mine.replaced += before is not None
        elif before is None:
            mine.missing.append(row.trial_id)
        else:
            (mine.same if _is_as_before(case, row) else mine.changed).append(row.trial_id)

    def write(self, is_whole: bool) -> list[str]:
        """Write the answers that the run keeps, and return the experiments whose files have changed.

        Args:
            is_whole: whether all tests were asked for. Else what nobody demands may be demanded by another test.

        Raises:
            OSError: a file cannot be written.
        """
        from rag_harness.evaluation.expectations.snapshots import write_snapshots

        written = []
        for experiment, mine in self.of.items():
            if self.keeps == "all" and is_whole and not self._config.getoption("no_cleanup", False):
                mine.removed = self.unused(experiment)
            if mine.new or mine.removed:
                kept = {name: text for name, text in mine.answers.items() if name not in mine.removed}
                mine.answers = kept | {_name(experiment, query_id): text for query_id, text in mine.new.items()}
                write_snapshots(mine.file, mine.answers)
                written.append(experiment)
        return written

    def unused(self, experiment: str) -> list[str]:
        """Return the trials whose answers are kept although nobody demands it.

        None where no trial of the file is looked at: then it is of other questions. And none where no answer has come,
        for under xdist what a test demands is known with the first one.
        """
        mine = self.of[experiment]
        demanded = {_name(experiment, query_id) for query_id in mine.cases}
        has_come = mine.same or mine.changed or mine.missing or mine.new
        return sorted(mine.answers.keys() - demanded) if has_come and mine.answers.keys() & demanded else []


def _name(experiment: str, query_id: str) -> str:
    return str(TrialId(experiment, query_id))


def _wants(case: Case) -> bool:
    return any(each.kind == _SNAPSHOT for each in case.expect)


def _with(case: Case, changed: Callable[[Expectation], Expectation]) -> Case:
    """Return a case with other expectations of a snapshot."""
    return replace(case, expect=tuple(changed(each) if each.kind == _SNAPSHOT else each for each in case.expect))


def _was(case: Case) -> str | None:
    return next((each.was for each in case.expect if each.kind == _SNAPSHOT), None)


def _is_as_before(case: Case, row: ExperimentResult) -> bool:
    from rag_harness.records.expectations import AnswerSeen, looked_at

    demands = [each for each in case.expect if each.kind == _SNAPSHOT]
    return all(each.kept for each in looked_at(demands, AnswerSeen(row.llm_answer, explained=False)))


_HOW = "pytest --snapshot-update keeps the answers of now; read the difference before you commit it"
_NAMED = 3
"""How many trials a line names."""


class SnapshotsSection:
    """A section of the terminal summary.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print it, where there is something to know or to do."""
        snapshots = self._session.snapshots
        lines = [line for experiment, mine in sorted(snapshots.of.items()) for line in self._lines(experiment, mine)]
        is_update_called_for = not snapshots.keeps and any(
            each.changed or each.missing for each in snapshots.of.values()
        )
        if lines:
            write_section(terminal, "rag snapshots", [*lines, *([_HOW] if is_update_called_for else [])])

    def _lines(self, experiment: str, mine: KeptAnswers) -> Iterator[str]:
        from rag_harness.runs.gates.configuration import shown_place

        session = self._session
        file = shown_place(session.settings, mine.file)
        if written := _written(mine):
            yield f"{file}: {written}"
        if mine.changed:
            yield f"{experiment}: {_answers(mine.changed, 'not as kept')}"
        if mine.missing:
            why = "empty or very long, and not kept" if session.snapshots.keeps else "without a snapshot yet"
            yield f"{experiment}: {_answers(mine.missing, why)}"
        if session.is_whole and (unused := session.snapshots.unused(experiment)):
            yield f"{file}: {len(unused)} that no question demands: {_named(unused)}"


def _written(mine: KeptAnswers) -> str:
    counts = {"new": len(mine.new) - mine.replaced, "changed": mine.replaced, "taken out": len(mine.removed)}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _answers(trials: Sequence[str], how: str) -> str:
    return f"{len(trials):,} answer{'s' * (len(trials) > 1)} {how}: {_named(trials)}"


def _named(trials: Sequence[str]) -> str:
    more = f" and {len(trials) - _NAMED} more" if len(trials) > _NAMED else ""
    return f"{', '.join(trials[:_NAMED])}{more}"
