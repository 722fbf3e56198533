"""Judge a row by the wanted measures, and return lines of scores. A failure of the judge is a score without a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.engine.judged_material import material_of
from rag_harness.engine.kept_scores import KeptScores
from rag_harness.engine.workplace import AskJudge
from rag_harness.errors import CriticalError, PrerequisiteError, RagHarnessError
from rag_harness.files.log import log
from rag_harness.judges.scoring import judged
from rag_harness.judges.spent import Spent, spending
from rag_harness.measures import Score
from rag_harness.measures.judged import CITATIONS, Judge, JudgedMeasure, Material, Support
from rag_harness.measures.judged.carried import EarlierContexts, LateMeasure
from rag_harness.measures.judged.criteria import CRITERIA, MaterialOfCase
from rag_harness.measures.judged.judged_expectations import JudgedExpectations
from rag_harness.measures.judged.turn_material import MaterialOfTurn
from rag_harness.registry.own_parts import may_be_kept, stated_fingerprint
from rag_harness.registry.package_digest import package_digest
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score import Author, ScoreLine, row_digest, text_digest
from rag_harness.types import Case
from rag_harness.work.checks_in_time import is_long
from rag_harness.work.deadline import Deadline
from rag_harness.work.local_work import in_a_thread, inline
from rag_harness.work.once import Once

PagesOf = Callable[[str, Case], Sequence[str]]
"""Returns the texts of the relevant documents of an experiment's case."""
Find = Callable[[str, tuple[str, ...]], ScoreLine | None]
"""Returns the known score of an experiment with this key; None where it has to be judged."""


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """The scores of a row by measure, the lines of the new ones, and what judging cost. ``panel`` are the judges, in
    their order, where several have judged."""

    author: Author
    scores: Mapping[str, Score]
    new: tuple[bytes, ...] = ()
    spent: Spent = field(default_factory=Spent)
    panel: tuple[Author, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return what the writer of the files needs, in types that xdist can send."""
        used = self.spent.usage
        return {
            "authors": [[who.judge, who.model, who.revision] for who in self.panel or (self.author,)],
            "lines": [line.decode() for line in self.new],
            "spent": [used.prompt_tokens, used.completion_tokens, used.calls, self.spent.recorded],
        }


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A measure of one row, with the digest of the other texts that it reads."""

    measure: JudgedMeasure
    row: str
    gold: str

    def line(self, row: ExperimentResult, author: Author, score: Score, repeat: int = 0) -> ScoreLine:
        return ScoreLine(
            measure=self.measure.name,
            version=self.measure.version,
            experiment=row.experiment,
            query_id=row.query_id,
            row=self.row,
            gold=self.gold,
            author=author,
            value=score.value,
            reason=score.reason,
            undefined=score.undefined,
            detail=score.detail if not repeat else {},
            repeat=repeat,
        )


class Judging:
    """The judge of one process.

    Args:
        make_judge: makes the judge on first use.
        pages_of: returns gold pages; called only for measures that read them.
        seconds: seconds that judging a row may take.
        anew: makes a judge without earlier answers, for the nth repeat.
        elsewhere: asks the judge of another process; None where this process asks.
        kept: scores of earlier replays; None where each is asked for.
        stated: returns what scores hang on beside the judge's revision; None where none of an earlier run is reused.
    """

    def __init__(
        self,
        make_judge: Callable[[], Judge],
        pages_of: PagesOf,
        seconds: float,
        anew: Callable[[int], Judge] | None = None,
        elsewhere: AskJudge | None = None,
        kept: KeptScores | None = None,
        *,
        stated: Callable[[], str | None] = lambda: "",
    ) -> None:
        self._stated = Once(stated)
        self._judge, self._pages_of, self._seconds, self._anew = Once(make_judge), pages_of, seconds, anew
        self._elsewhere, self._kept = elsewhere, kept
        self._broken = ""

    @property
    def broken(self) -> str:
        """Why no judgement can succeed; empty while no reason is known."""
        return self._broken

    @property
    def author(self) -> Author:
        """Whose judgements these are.

        Raises:
            PrerequisiteError: the judge cannot be made.
        """
        judge = self._judge.get()
        return Author(judge.name, judge.model, judge.revision + (self._stated.get() or ""))

    def made(self) -> str:
        """Make the judge on the first call. Return why it cannot be made; empty where it can."""
        self._author_or_nobody()
        return self._broken

    async def row(
        self, row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure], find: Find, repeats: int = 0
    ) -> JudgedRow:
        """Return the scores of a row that has an answer. Scores that ``find`` knows are not judged again.

        ``repeats`` is how often the judge is asked again, to see whether its scores agree.
        """
        applying = [measure for measure in measures if not measure.applies(case)]
        author, material = self._author_or_nobody(), await self._material(row, case, applying)
        digest = row_digest(row)
        wanted = [_Wanted(measure, digest, self._gold_digest(measure, material)) for measure in applying]
        with spending() as spent:
            turns = [await self._turn(row, author, material, wanted, find, turn) for turn in range(repeats + 1)]
        return JudgedRow(author, turns[0][0], tuple(line for _, lines in turns for line in lines), spent)

    async def later(
        self,
        row: ExperimentResult,
        case: Case,
        measure: LateMeasure,
        said: Score,
        earlier: EarlierContexts | str,
        find: Find,
    ) -> JudgedRow:
        """Return the score of a measure that needs earlier rows. A score that ``find`` knows is not judged again.

        Args:
            row: the row.
            case: its case.
            measure: the measure.
            said: the row's score of the measure that this one builds on, by this judge.
            earlier: contexts of earlier turns, or why they are not known.
            find: returns known scores.
        """
        author = self._author_or_nobody()
        asked = measure.later(await self._material(row, case, [measure]), said, earlier)
        gold = text_digest([*_made_by(measure), repr(asked)])
        wanted = _Wanted(measure, row_digest(row), gold)
        known = find(row.experiment, wanted.line(row, author, Score(None)).key) if self._reuses(measure) else None
        if known is not None and known.gold == gold:
            return JudgedRow(author, {measure.name: _score(known)})
        with spending() as spent:
            score = asked if isinstance(asked, Score) else (await self._ask(asked, [measure], 0))[measure.name]
        return JudgedRow(author, {measure.name: score}, (wanted.line(row, author, score).line(),), spent)

    async def _turn(
        self,
        row: ExperimentResult,
        author: Author,
        material: Material,
        wanted: Sequence[_Wanted],
        find: Find,
        turn: int,
    ) -> tuple[dict[str, Score], list[bytes]]:
        """Return the scores of one turn, and the lines of those that are new."""
        may_be_known = [one for one in wanted if self._reuses(one.measure)]
        keys = {one.measure.name: one.line(row, author, Score(None), turn).key for one in may_be_known}
        known = {name: line for name, key in keys.items() if (line := find(row.experiment, key))}
        left = [one for one in wanted if one.measure.name not in known or known[one.measure.name].gold != one.gold]
        said = await self._ask(material, [one.measure for one in left], turn)
        lines = [one.line(row, author, said[one.measure.name], turn).line() for one in left]
        return {name: _score(line) for name, line in known.items()} | dict(said), lines

    def _reuses(self, measure: JudgedMeasure) -> bool:
        """Return whether an earlier score of a measure may be reused. Of a judge that has failed nobody knows."""
        return not self._broken and self._stated.get() is not None and may_be_kept(measure)

    def _author_or_nobody(self) -> Author:
        try:
            return self.author
        except PrerequisiteError as error:
            self._broken = self._broken or str(error)
        except Exception as error:  # a user's own judge may raise anything when it is made
            log.error("The judge cannot be had", exc_info=error)
            self._broken = self._broken or f"{type(error).__name__}: {error}"
        return Author("nobody", "", "")

    async def _material(self, row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure]) -> Material:
        pages = self._pages(row.experiment, case) if any(map(_needs_pages, measures)) else ()
        if is_long(row.llm_answer):  # looking at it takes a while, and this loop has other answers to serve
            return await in_a_thread(lambda: material_of(row, case, measures, pages))
        return material_of(row, case, measures, pages)

    def _gold_digest(self, measure: JudgedMeasure, material: Material) -> str:
        """Return the digest of what else decides a score, beside row and judge's revision: texts and measure."""
        pages = material.gold_pages if _needs_pages(measure) else ()
        return text_digest([*material.quotes, "", *pages, "", *_made_by(measure), *self._beside(measure, material)])

    def _beside(self, measure: JudgedMeasure, material: Material) -> list[str]:
        """Return what further questions depend on; nothing for measures that ask none."""
        expected = material.expected if isinstance(material, MaterialOfCase) else ()
        counted = [each for each in expected if isinstance(measure, JudgedExpectations) and measure.counts(each)]
        more = [f"{each.expectation!r} {each.kept}" for each in counted]
        if self._broken:
            return more
        more += sorted(material.kinds) if isinstance(material, MaterialOfTurn) else []
        is_turn = isinstance(material, MaterialOfTurn)
        of_turns = getattr(self._judge.get(), "identity_of_turns", None) if is_turn else None
        more += [of_turns()] if of_turns else []
        identity = getattr(self._judge.get(), "identity_of", None)
        return [identity(measure.asks), *more] if identity and {CITATIONS, CRITERIA} & set(measure.asks) else more

    def _pages(self, experiment: str, case: Case) -> Sequence[str]:
        try:
            return self._pages_of(experiment, case)
        except (OSError, RagHarnessError) as error:
            log.error("The relevant documents of %s cannot be read", case.query.query_id, exc_info=error)
            return ()

    async def _ask(self, material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        """Return the score of each measure. Those of earlier replays are not asked for."""
        if self._kept is None or turn or self._broken:
            return await self._asked(material, measures, turn)
        known = self._kept.of(self.author, material, measures)
        left = [measure for measure in measures if measure.name not in known]
        said = await self._asked(material, left, turn)
        self._kept.keep(self.author, material, left, said)
        return {**known, **said}

    async def _asked(self, material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        if not measures:
            return {}
        try:
            return await self._in_time(material, measures, turn)
        except (CriticalError, PrerequisiteError) as error:
            # No later judgement can succeed. The others are not asked for, and their scores say so.
            self._broken = self._broken or f"{type(error).__name__}: {error}"
            log.error("The judge cannot be asked", exc_info=error)
            return _none(measures, self._broken)
        except RagHarnessError as error:
            return _none(measures, str(error))
        except Exception as error:  # a user's own measure or judge may raise anything
            log.error("A row could not be judged", exc_info=error)
            return _none(measures, f"{type(error).__name__}: {error}")

    async def _in_time(self, material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        if self._broken:
            return _none(measures, self._broken)
        work = self._elsewhere(material, measures, turn) if self._elsewhere else self._here(material, measures, turn)
        if inline.get():
            return await work
        why = f"deadline: not judged within {self._seconds:g} s. Allow more: --rag-deadline"
        return await Deadline(self._seconds, why).bound(work)

    def _here(
        self, material: Material, measures: Sequence[JudgedMeasure], turn: int
    ) -> Coroutine[Any, Any, Mapping[str, Score]]:
        judge = self._anew(turn) if turn and self._anew else self._judge.get()
        if inline.get() or not is_long(material.answer) or not _computes(judge):
            return judged(material, measures, judge)
        # Its rules would keep this loop, and with it the deadline, waiting.
        return in_a_thread(lambda: asyncio.run(judged(material, measures, judge)))


def _computes(judge: Judge) -> bool:
    """Return whether a judge says that it computes alone: it asks no model, and says the same of the same answer."""
    return getattr(judge, "asks_model", None) is False and getattr(judge, "deterministic", None) is True


def _made_by(measure: JudgedMeasure) -> list[str]:
    return [package_digest(), stated_fingerprint(measure)]


def _needs_pages(measure: JudgedMeasure) -> bool:
    return any(isinstance(ask, Support) and ask.source == "gold_pages" for ask in measure.asks)


def _score(line: ScoreLine) -> Score:
    return Score(line.value, line.reason, line.detail, line.undefined)


def _none(measures: Sequence[JudgedMeasure], why: str) -> dict[str, Score]:
    return {measure.name: Score(None, why) for measure in measures}
