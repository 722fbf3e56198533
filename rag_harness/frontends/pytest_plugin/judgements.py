"""Judgements of rows, from the store or from a judge as soon as a row is there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from rag_harness.core.concurrency import Lazy

if TYPE_CHECKING:
    from rag_harness.core.types import Case, TrialId
    from rag_harness.evaluation.measures import Score
    from rag_harness.evaluation.measures.judged import JudgedMeasure
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trials import RunResources
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.judging import JudgedRow, PanelJudging, RowJudge
    from rag_harness.runs.trial import Trial


MOST_ALONE = 5
"""How many trials may be answered one at a time until the judge has answered once."""
REPEATED = 50
"""How many rows --rag-judge-repeats judges again."""


class Judgements:
    """The judging of rows in one process.

    Args:
        session: state of the run.
        equipment: runs jobs, finds what need not be judged again, and keeps scores.
    """

    def __init__(self, session: RagSession, equipment: RunResources) -> None:
        self._session, self._kit = session, equipment
        self._judging = Lazy(self._make_judging)
        self._under_way: set[TrialId] = set()
        self._done: dict[TrialId, JudgedRow] = {}
        self._shipped: dict[TrialId, str] = {}
        self._last: TrialId | None = None
        self._kept: dict[TrialId, set[str]] = {}
        self._repeated: frozenset[TrialId] | None = None
        self._is_made, self._is_tried, self._tries = False, False, 0

    @property
    def judges(self) -> Sequence[RowJudge]:
        """The judging of each judge of the run."""
        from rag_harness.runs.judging import PanelJudging

        judging = self._judging.get()
        return judging.judges if isinstance(judging, PanelJudging) else [judging]

    def make_sure(self, experiment: str) -> None:
        """Make the judge before an experiment is asked whose answers it will judge.

        Raises:
            CriticalError: the judge cannot be made; for example, a package is missing.
        """
        from rag_harness.core.errors import CriticalError

        if self._is_made or not self._session.wanted.judged_measures(experiment):
            return
        self._is_made = True
        if why := self._judging.get().made():
            raise CriticalError(f"The judge cannot be asked: {why}")

    def _is_remote(self) -> bool:
        from rag_harness.evaluation.judges.traits import asks_a_model

        return self._session.access.calls_network and asks_a_model(self._session.settings)

    def is_untried(self, experiment: str) -> bool:
        """Whether a judge over the network is to be asked, and no call has yet shown whether it works."""
        return not self._is_tried and bool(self._session.wanted.judged_measures(experiment)) and self._is_remote()

    def try_out(self, trial: TrialId) -> None:
        """Wait for the first judgement of a run. If no judgement can succeed, not all trials are paid for.

        Raises:
            CriticalError: the judge's key, model or address is refused.
        """
        from rag_harness.core.errors import CriticalError

        if self._is_tried or not self._is_remote():
            return
        self._tries += 1
        judged = self._came_of((trial, "judged")) if trial in self._under_way else None
        # A failed row tells nothing about the judge, nor does one without a measure. The next row may; only a few go
        # alone.
        spent = judged is not None and (judged.spent.usage.calls or judged.spent.recorded)
        self._is_tried = bool(spent or self._judging.get().broken) or self._tries >= MOST_ALONE
        if why := self._judging.get().broken:
            raise CriticalError(f"The judge cannot be asked: {why}")

    def _make_judging(self) -> RowJudge | PanelJudging:
        from rag_harness.runs.judging import judging_of, kept_scores

        session = self._session
        kept = kept_scores(session.settings)
        if kept is not None:
            session.closing.callback(kept.flush)
        return judging_of(session.parts, session.gold_pages, self._kit.workplace.get().ask, repeats=True, kept=kept)

    async def of_user(self, row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure]) -> JudgedRow:
        """Return the judgement of what a simulated user has said."""
        return await self._judging.get().row(row, case, measures, self._kit.stored.get().score)

    def choose_repeated(self, trials: Iterable[TrialId]) -> None:
        """Choose at random which of the selected trials are judged again. Every process chooses the same."""
        from rag_harness.evaluation.judges.traits import all_say_the_same

        settings = self._session.settings
        if self._repeated is None:
            judged = [trial for trial in trials if self._session.wanted.judged_measures(trial.experiment)]
            wanted = settings.judge_repeats and not all_say_the_same(settings)
            self._repeated = frozenset(sorted(set(judged), key=_lot)[: REPEATED if wanted else 0])

    def after(self, trial: Trial, row: ExperimentResult) -> bool:
        """Judge a new row if a measure wants it; return whether its judgement is under way."""
        if trial.id in self._under_way:
            return True
        measures = self._session.wanted.judged_measures(trial.experiment) if row.ok else []
        if not measures or trial.id in self._shipped:
            return False
        self._under_way.add(trial.id)
        self._submit((trial.id, "judged"), trial, row, measures)
        return True

    def _submit(self, key: Hashable, trial: Trial, row: ExperimentResult, measures: Sequence[JudgedMeasure]) -> None:
        judging, find = self._judging.get(), self._kit.stored.get().score
        turns = self.turns_of(trial.id)
        self._kit.engine.get().submit(key, lambda: judging.row(row, trial.case, measures, find, turns), first=True)

    def _came_of(self, key: Hashable) -> JudgedRow:
        """Wait for the result of judging."""
        return cast("JudgedRow", self._kit.engine.get().result(key))

    def turns_of(self, trial: TrialId) -> int:
        """Return how often the judge is asked again about the answer of a trial."""
        return self._session.settings.judge_repeats if trial in (self._repeated or ()) else 0

    def ship(self, trial: TrialId, test: str, forget: bool) -> JudgedRow | None:
        """Return the judgement of a trial as the writer of the files needs it; None if nothing has to be written.

        Only the first test of a trial ships it. If a plugin runs that test again, it ships again because the plugin has
        dropped the first report. ``forget`` says that no other test will ask.
        """
        judged = self._result(trial)
        self._forget_the_last(trial)
        if judged is None:
            return None
        self._last = trial if forget else None
        return judged if self._shipped.setdefault(trial, test) == test else None

    def _forget_the_last(self, trial: TrialId) -> None:
        """Forget the trial whose last test is over, unless that test is being run again."""
        if self._last not in (None, trial):
            self._kept.setdefault(self._last, set()).update(self._done.pop(self._last).scores)
            self._last = None

    def _result(self, trial: TrialId) -> JudgedRow | None:
        if trial in self._under_way:
            key = trial, "judged"
            judged = self._came_of(key)
            self._kit.engine.get().forget(key)
            # Scores that a dead worker left are added: the writer of the files has not seen them.
            self._done[trial] = replace(judged, new=(*self._kit.stored.get().scores_left_of(trial), *judged.new))
            self._under_way.discard(trial)
        return self._done.get(trial)

    def forget(self, trial: TrialId) -> None:
        """Forget what was said of an answer that another one replaces."""
        self._done.pop(trial, None)
        self._kept.pop(trial, None)

    def of(self, trial: Trial, row: ExperimentResult) -> LazyScores:
        """Return the scores of a trial by measure; each is waited for when it is asked for."""
        trial = self._session.cases.renewed(trial, row)
        names = [measure.name for measure in self._session.wanted.judged_measures(trial.experiment)]
        return LazyScores(names, lambda name: self._score(trial, row, name))

    def _score(self, trial: Trial, row: ExperimentResult, name: str) -> Score:
        from rag_harness.evaluation.measures import Score
        from rag_harness.evaluation.measures.conversations import LATER

        if not row.ok:
            return Score(None, "no answer")
        wanted = self._session.wanted.judged_measures(trial.experiment, [name])
        if self._session.wanted.is_late(name):
            return Score(None, LATER)
        if not wanted:
            return _of_the_row(name, row, trial.case)
        judged = self._result(trial.id)
        found = dict(judged.scores) if judged is not None else {}
        if any(measure.name not in found and measure.name in self._kept.get(trial.id, ()) for measure in wanted):
            found = {**self._reread(trial.id), **found}
        missing = [measure for measure in wanted if measure.name not in found and not measure.applies(trial.case)]
        if missing:
            found |= self._judge_now(trial, row, missing)
        return _of(name, wanted, found, trial.case)

    def _reread(self, trial: TrialId) -> Mapping[str, Score]:
        """Return the scores of a trial that were forgotten, from the journal."""
        from rag_harness.runs.judging import PanelJudging

        stored, journal, judging = self._kit.stored.get(), self._kit.journal.get().file, self._judging.get()
        if isinstance(judging, PanelJudging):
            return judging.scores_of(stored.reread_lines(journal, trial))
        return stored.reread_scores(journal, trial)

    def _judge_now(self, trial: Trial, row: ExperimentResult, measures: Sequence[JudgedMeasure]) -> Mapping[str, Score]:
        """Judge a measure that was not named before the run. The scores are kept for later, but are in no table."""
        key = trial.id, *(measure.name for measure in measures)
        self._submit(key, trial, row, measures)
        judged = self._came_of(key)
        self._kit.engine.get().forget(key)
        self._kept.setdefault(trial.id, set()).update(judged.scores)
        return judged.scores


def _lot(trial: TrialId) -> bytes:
    return blake2b(str(trial).encode()).digest()


def _of(name: str, wanted: Sequence[JudgedMeasure], found: Mapping[str, Score], case: Case) -> Score:
    from rag_harness.evaluation.measures import Score, measure_named
    from rag_harness.evaluation.measures.measure import CompositeMeasure

    not_applying = {m.name: Score(None, why, undefined=True) for m in wanted if (why := m.applies(case))}
    measure: object = measure_named(name)
    scores = {**found, **not_applying}
    return measure.score(scores) if isinstance(measure, CompositeMeasure) else scores[name]


def _of_the_row(name: str, row: ExperimentResult, case: Case) -> Score:
    """Return the score of a measure that needs no judge."""
    from rag_harness.evaluation.measures import RowMeasure, Score, measure_named, scored

    measure: object = measure_named(name)
    if not isinstance(measure, RowMeasure):
        return Score(None, f"{name} is neither judged nor read off a row")
    why = measure.applies(case)
    return Score(None, why, undefined=True) if why else scored(measure, case, row)


class LazyScores(Mapping[str, "Score"]):
    """Scores by measure. Measures named before the run are iterated; any other is judged when asked for."""

    def __init__(self, names: Sequence[str], score: Callable[[str], Score]) -> None:
        self._names, self._score_of = names, score

    def __getitem__(self, name: str) -> Score:
        return self._score_of(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
