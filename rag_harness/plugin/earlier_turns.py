"""Judges answers by the contexts of earlier turns, after the last test: until then the rows are not all there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.derived import print_section
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.engine.row_judging import JudgedRow, Judging
    from rag_harness.measures import Score
    from rag_harness.measures.judged.carried import EarlierContexts, LateMeasure
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.results.row import ExperimentResult

SPENT = "the workers have shared the budget among them, so no judge was asked about earlier turns; run without -n"

Conversations = Mapping[str, Mapping[int, "ExperimentResult"]]
"""The rows of each conversation by the numbers of their turns."""


class EarlierTurns:
    """Has the late measures worked out, in the process that writes."""

    def __init__(self, session: RagSession, recorder: Recorder, trials: TrialRunner) -> None:
        self._session, self._recorder, self._trials = session, recorder, trials
        self._problem = ""

    def judge(self) -> None:
        """Judge all rows of the run that a late measure is wanted of. Not if the run was stopped."""
        for experiment in list(self._recorder.arrived):
            measures = [] if experiment == GOLDEN else self._session.wanted.late_measures(experiment)
            for measure in measures:
                _, why = tried(partial(self._judged, experiment, measure))
                self._problem = self._problem or (f"{measure.name} cannot be told: {why}" if why else "")

    def _judged(self, experiment: str, measure: LateMeasure) -> None:
        """Judge the rows of an experiment, and hand the scores to the writer of the files."""
        kit = self._trials.equipment
        engine, find = kit.engine.get(), kit.stored.get().score
        conversations, cases = self._conversations(experiment), self._cases(experiment)
        keys = []
        for number, judging in enumerate(self._trials.judgements.judges):
            said = self._said(experiment, measure.builds_on, judging)
            for row, earlier in self._asked(experiment, conversations):
                case, of_row = cases[row.query_id], _of(said, row)
                if measure.applies(case):
                    continue
                key = row.trial, measure.name, number
                job = partial(judging.later, row, case, measure, of_row, earlier, find)
                engine.submit(key, job, first=True)
                keys.append(key)
        for key in keys:
            judged = cast("JudgedRow", engine.result(key))
            engine.forget(key)
            self._recorder.take_later(experiment, judged.plain())

    def _cases(self, experiment: str) -> Mapping[str, Any]:
        return {case.query.query_id: case for case in self._session.cases.all_of(experiment)}

    def _conversations(self, experiment: str) -> Conversations:
        """Return the rows of this run's code: those of the run, and of earlier turns that it did not select."""
        from rag_harness.results.result_paths import result_path
        from rag_harness.results.row import rows_in

        fingerprints = self._recorder.fingerprints.get(experiment, set())
        found: dict[str, dict[int, ExperimentResult]] = {}
        for row in rows_in(result_path(self._session.output, experiment)):
            place = row.asked.place
            if place and row.fingerprint in fingerprints:
                found.setdefault(place["conversation"], {})[int(place["turn"])] = row
        return found

    def _asked(
        self, experiment: str, conversations: Conversations
    ) -> Iterator[tuple[ExperimentResult, EarlierContexts | str]]:
        """Yield each answer of the run, with the contexts of the turns before it."""
        arrived = self._recorder.arrived[experiment]
        shared = bool(self._session.settings.budget and getattr(self._session.config.option, "tx", None))
        for turns in conversations.values():
            for number, row in sorted(turns.items()):
                if row.ok and row.query_id in arrived:
                    yield row, SPENT if shared else _earlier(turns, number)

    def _said(self, experiment: str, measure: str, judging: Judging) -> Mapping[tuple[str, str], Score]:
        """Return what a judge has said of each row, by query and digest of the row."""
        from rag_harness.measures import Score, measure_named
        from rag_harness.results.result_paths import scores_path
        from rag_harness.results.score import read_scores

        wanted = measure, measure_named(measure).version, 0, judging.author
        return {
            (each.query_id, each.row): Score(each.value, each.reason, each.detail, each.undefined)
            for each in read_scores(scores_path(self._session.output, experiment))
            if (each.measure, each.version, each.repeat, each.author) == wanted
        }

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print why a measure could not be worked out."""
        print_section(terminal, "rag earlier turns", self._problem, None)


def _earlier(turns: Mapping[int, ExperimentResult], number: int) -> EarlierContexts | str:
    lacking = next((turn for turn in range(1, number) if turn not in turns), 0)
    if lacking:
        return f"turn {lacking} has no row in this run"
    return [(turn, [chunk.text for chunk in turns[turn].retrieved_chunks]) for turn in range(number - 1, 0, -1)]


def _of(said: Mapping[tuple[str, str], Score], row: ExperimentResult) -> Score:
    from rag_harness.measures import Score
    from rag_harness.results.score import row_digest

    return said.get((row.query_id, row_digest(row)), Score(None, "no judgement"))
