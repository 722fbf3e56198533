"""Repeats of trials, and failed tests that are run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from rag_harness.core.concurrency import Lazy
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin.items import trial_id_of
from rag_harness.frontends.pytest_plugin.trial_report import RunAgainOn, TrialResult, ended_turn

if TYPE_CHECKING:
    import pytest

    from rag_harness.core.protocols import Experiment, JudgeParts
    from rag_harness.core.types import Case
    from rag_harness.evaluation.measures import Score
    from rag_harness.evaluation.measures.judged import JudgedMeasure
    from rag_harness.evaluation.measures.opinion import Material
    from rag_harness.frontends.pytest_plugin.conversations import OwnTurns
    from rag_harness.frontends.pytest_plugin.judgements import Judgements
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trial_report import EndedTurn
    from rag_harness.frontends.pytest_plugin.trials import RunResources
    from rag_harness.models.calls import Session
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.engine import AskJudge, RepeatedTrial, Repeating
    from rag_harness.runs.judging import PanelJudging, RowJudge
    from rag_harness.runs.trial import Trial, TrialOutcome


class Repeats:
    """The repeats of one process.

    Args:
        session: state of the run.
        equipment: runs jobs, finds what need not be run or judged again, and keeps rows.
        judgements: says how often the judge is asked again about a trial.
        own_turns: know which trials are turns that go on from the answers before them.
    """

    def __init__(
        self, session: RagSession, equipment: RunResources, judgements: Judgements, own_turns: OwnTurns
    ) -> None:
        self._session, self._kit, self._judgements, self._own_turns = session, equipment, judgements, own_turns
        self._repeating = Lazy(self._make)
        self._under_way: dict[TrialId, list[Any]] = {}
        self._shipped: set[TrialId] = set()

    def _make(self) -> Repeating:
        from rag_harness.runs.engine import Repeating

        judging = lru_cache(maxsize=None)(self._judging)
        kit = self._kit
        return Repeating(kit.workplace.get(), judging, kit.stored.get().score, kit.journal.get().keep)

    def _judging(self, repeat: int) -> RowJudge | PanelJudging:
        """Return the judging of the answers number ``repeat``. Judgements of other answers are not used again."""
        from rag_harness.evaluation.judges.traits import parts_of_judges
        from rag_harness.runs.judging import PanelJudging

        judges = [self._judging_by(parts, repeat) for parts in parts_of_judges(self._session.parts)]
        rule = self._session.settings.panel
        return PanelJudging(rule, judges) if rule else judges[0]

    def _judging_by(self, parts: JudgeParts, repeat: int) -> RowJudge:
        from rag_harness.evaluation.judges.factory import create_judge
        from rag_harness.evaluation.judges.traits import says_the_same
        from rag_harness.runs.engine import JUDGE_SEEDS
        from rag_harness.runs.judging import RowJudge as Judging

        session = self._session
        first = JUDGE_SEEDS * (repeat - 1)
        computes = says_the_same(parts.settings)

        make = partial(create_judge, parts, None if computes else first)
        ask = self._kit.workplace.get().ask
        elsewhere = _of_repeat(ask, 0 if computes else first, first) if ask else None
        seconds = session.settings.deadline
        return Judging(make, self._gold_pages, seconds, lambda n: create_judge(parts, first + n), elsewhere)

    def _gold_pages(self, derived: str, case: Case) -> list[str]:
        return self._session.gold_pages(derived.partition("+")[0], case)

    def after(self, trial: Trial, experiment: Experiment) -> bool:
        """Answer a trial again if repeats are wanted; return whether they are under way."""
        settings = self._session.settings
        if settings.repeats < 2 or trial.experiment == GOLDEN or trial.id in self._shipped:
            return False
        from rag_harness.runs.engine import computes_its_answers

        if trial.id not in self._under_way and not computes_its_answers(experiment.id, settings):
            keys = [_key(trial, repeat) for repeat in range(2, settings.repeats + 1)]
            self._under_way[trial.id] = keys
            for key in keys:
                self._submit(trial, experiment, key[2])
        return trial.id in self._under_way

    def _submit(self, trial: Trial, experiment: Experiment, repeat: int) -> None:
        if not self._own_turns.are(trial):
            self._kit.engine.get().submit(_key(trial, repeat), self._job(trial, experiment, repeat), first=True)
            return
        # A repeat of a conversation goes on from its own answers.
        self._own_turns.submit_in_a_row(
            trial, lambda turn: _key(turn, repeat), lambda turn: self._job_of_turn(turn, experiment, repeat), repeat
        )

    def _job_of_turn(
        self, trial: Trial, experiment: Experiment, repeat: int
    ) -> Callable[[], Coroutine[Any, Any, RepeatedTrial]]:
        from rag_harness.runs.engine import RepeatedTrial
        from rag_harness.runs.trial import TrialOutcome

        history = self._own_turns.history

        async def job() -> RepeatedTrial:
            asked = await self._own_turns.asked(trial, repeat)
            if isinstance(asked, TrialOutcome):
                again, outcome = RepeatedTrial(ended=asked.ended), asked
            else:
                again = await self._turn(asked, experiment, repeat)
                outcome = TrialOutcome(again.row, not_run="" if again.row else "it was not run")
            history.take_outcome(trial, outcome, repeat, again.is_stored)
            return again

        return job

    async def _turn(self, trial: Trial, experiment: Experiment, repeat: int) -> RepeatedTrial:
        from dataclasses import replace

        from rag_harness.records.manifest import repeat_fingerprint, repeat_name

        own = repeat_fingerprint(self._session.identities.fingerprint(experiment), repeat)
        stored, name = self._kit.stored.get(), repeat_name(trial.experiment, repeat)
        is_asked = self._session.identities.looks_at_earlier_turns(experiment)
        self._own_turns.restarted.decide(
            trial,
            lambda turn: stored.last(name, own, turn.case.query.query_id, of_any_run=is_asked),
            repeat,
        )
        self._own_turns.restarted.keep(trial, repeat)
        with self._own_turns.noting(replace(trial, experiment=name), own):
            return await self._job(trial, experiment, repeat, self._own_turns.session_of(trial, repeat))()

    def _job(
        self, trial: Trial, experiment: Experiment, repeat: int, in_session: Session = ""
    ) -> Callable[[], Coroutine[Any, Any, RepeatedTrial]]:
        from rag_harness.records.manifest import repeat_fingerprint, repeat_name
        from rag_harness.runs.engine import RepeatedTrial

        fingerprint = self._session.identities.fingerprint(experiment)
        measures = self._session.wanted.judged_measures(trial.experiment)
        name, query_id = repeat_name(trial.experiment, repeat), trial.case.query.query_id
        own = repeat_fingerprint(fingerprint, repeat)
        stored = self._stored(trial, name, own) if in_session != "restarted" else None
        left = self._kit.stored.get().scores_left_of(TrialId(name, query_id))
        if stored is not None and not measures:
            return _taken(*stored, left)  # no workplace here: it might open a cluster for nothing
        repeating = self._repeating.get()
        # Opening the workplace has brought what nodes had, so the files may have the row now.
        stored = stored or (self._stored(trial, name, own) if in_session != "restarted" else None)

        async def job() -> RepeatedTrial:
            row, earlier = stored or (
                await repeating.answer(trial, repeat, experiment, fingerprint, in_session),
                False,
            )
            if row is None:
                return RepeatedTrial()
            scores = await repeating.judge(trial, repeat, row, measures, self._judgements.turns_of(trial.id))
            lines = (*(() if earlier else (row.line().encode(),)), *left, *scores)
            return RepeatedTrial(lines, scores, row, is_stored=stored is not None)

        return job

    def _stored(self, trial: Trial, name: str, fingerprint: str) -> tuple[ExperimentResult, bool] | None:
        """Return the stored row of a repeat that was asked the same, and whether an earlier run made it."""
        from rag_harness.runs.conversations import is_asked

        found = self._kit.stored.get().find(name, fingerprint, trial.case.query.query_id)
        return found if found is None or is_asked(found[0], trial) else None

    def drop(self, trial: TrialId) -> None:
        """Drop the repeats of a trial whose test will not come."""
        for key in self._under_way.pop(trial, []):
            self._kit.engine.get().drop(key)

    def ship(self, trial: TrialId) -> tuple[tuple[str, ...], tuple[EndedTurn, ...]]:
        """Return what a test's report carries of a trial's repeats, once: lines for the files, and turns that ended."""
        from rag_harness.records.manifest import repeat_name

        keys = self._under_way.pop(trial, [])
        self._shipped.add(trial)
        lines: list[str] = []
        ended: list[EndedTurn] = []
        for key in keys:
            again = cast("RepeatedTrial", self._kit.engine.get().result(key))
            self._kit.engine.get().forget(key)
            lines += [line.decode() for line in again.lines]
            if again.ended is not None:
                name = repeat_name(trial.experiment, key[2])
                ended.append(ended_turn(TrialId(name, trial.query_id), again.ended))
        return tuple(lines), tuple(ended)


def _key(trial: Trial, repeat: int) -> tuple[TrialId, str, int]:
    return trial.id, "repeat", repeat


def _taken(
    row: ExperimentResult, earlier: bool, left: Sequence[bytes]
) -> Callable[[], Coroutine[Any, Any, RepeatedTrial]]:
    """Return a job that gives a row that is there already. The row is written unless an ``earlier`` run wrote it."""
    from rag_harness.runs.engine import RepeatedTrial

    async def job() -> RepeatedTrial:
        lines = (*(() if earlier else (row.line().encode(),)), *left)
        return RepeatedTrial(lines, row=row, is_stored=True)

    return job


def _of_repeat(ask: AskJudge, first: int, behind: int) -> AskJudge:
    """Return a function that asks the judge elsewhere about a repeat: its seeds are ``first``, then ``behind`` + n."""

    async def asked(material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        return await ask(material, measures, behind + turn if turn else first)

    return asked


class RunAgain:
    """Asks for a new answer where a test failed on the last one, in one process.

    Args:
        session: state of the run.
        equipment: answers trials.
        judgements: forget what was said of the last answer.
        own_turns: know which trials are turns that others go on from.
    """

    def __init__(
        self, session: RagSession, equipment: RunResources, judgements: Judgements, own_turns: OwnTurns
    ) -> None:
        self._session, self._kit = session, equipment
        self._judgements, self._own_turns = judgements, own_turns
        self._answers: dict[TrialId, ExperimentResult] = {}
        self._times: Counter[TrialId] = Counter()
        self._items: list[pytest.Item] = []

    def result(
        self, item: pytest.Item, trial: Trial, experiment: Experiment, last: TrialResult
    ) -> tuple[TrialResult, RunAgainOn]:
        """Return what a test gets that is run again, and whether that is a new answer.

        Args:
            item: the test.
            trial: its trial.
            experiment: of the trial.
            last: what the test, or a process before this one, was given first.
        """
        self._items = item.session.items
        known = self._answers.get(trial.id, last.row)
        found = self._asked(trial, experiment) if self._may_ask(trial, known) else None
        # No answer replaces one: what the next run takes over would be another row than what this one was judged by.
        if found is None or found.repeats_itself or (known.ok and not found.ok):
            return replace(last, row=known), "same"
        self._answers[trial.id] = found
        self._judgements.forget(trial.id)
        return TrialResult(found), "new"

    def _may_ask(self, trial: Trial, known: ExperimentResult) -> bool:
        """Whether a new answer is nobody else's business: no judgement, repeat, turn or other test is about the last.

        A recorded or computed answer would come back as it is.
        """
        session = self._session
        is_alone = self._tests_of[trial.id] == 1 and not self._own_turns.are(trial) and trial.experiment != GOLDEN
        is_looked_at = (
            session.wanted.judged_measures(trial.experiment)
            or session.settings.repeats > 1
            or session.settings.stop_early
            or trial.experiment in session.snapshots.of
        )
        return is_alone and not is_looked_at and not known.repeats_itself

    @cached_property
    def _tests_of(self) -> Counter[TrialId]:
        return Counter(found for each in self._items if (found := trial_id_of(each)) is not None)

    def _asked(self, trial: Trial, experiment: Experiment) -> ExperimentResult | None:
        """Ask now, and return the row; None where it was not run, as where the budget is spent."""
        self._times[trial.id] += 1
        key = trial.id, "run again", self._times[trial.id]
        fingerprint = self._session.identities.fingerprint(experiment)
        engine, workplace = self._kit.engine.get(), self._kit.workplace.get()
        engine.submit(key, lambda: workplace.answer(trial, experiment, fingerprint), first=True)
        outcome = cast("TrialOutcome", engine.result(key))
        engine.forget(key)
        return outcome.row


def run_again_lines(found: Mapping[str, RunAgainOn]) -> Iterator[str]:
    """Yield how many tests were run again after they had failed, by what they looked at then."""
    from rag_harness.tables.wording import counted

    counts = Counter(found.values())
    if n := counts["new"]:
        yield f"{counted(n, 'test')} failed and {_were(n)} run again on a new answer, whose row replaced the failed one"
    if n := counts["same"]:
        yield (
            f"{counted(n, 'test')} failed and {_were(n)} run again on the same answer: one that is recorded, judged, "
            "repeated, kept, or shared with another test or turn is not asked for again"
        )


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
