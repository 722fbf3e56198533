"""Judge rows by one judge or by a panel, with the scores of earlier replays from the cache."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from rag_harness.core.cache import KeptValues
from rag_harness.core.concurrency import Deadline, Lazy, in_a_thread, inline
from rag_harness.core.errors import CriticalError, PrerequisiteError, RagHarnessError
from rag_harness.core.files import json_digest
from rag_harness.core.log import log
from rag_harness.core.package import library_versions, package_digest
from rag_harness.core.processes import is_long
from rag_harness.core.protocols import JudgeParts
from rag_harness.core.registry import may_be_kept, module_of, stated_fingerprint
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.table import affecting
from rag_harness.core.types import Case
from rag_harness.evaluation.judges.factory import (
    create_judge,
    judged,
    panel_score,
    scores_fingerprint,
)
from rag_harness.evaluation.judges.traits import JudgingCost, parts_of_judges, says_the_same, spending
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.answers import as_shown
from rag_harness.evaluation.measures.conversations import EarlierContexts, LateMeasure
from rag_harness.evaluation.measures.expectations import JudgedExpectations, also_asking, criteria_of, found_in
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CRITERIA,
    Judge,
    Material,
    MaterialOfCase,
    MaterialOfTurn,
    Support,
    also_asking_of_turns,
    kinds_of,
    turn_material,
)
from rag_harness.models.endpoints import judge_name
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.manifest import judge_label
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest, text_digest
from rag_harness.runs.engine import AskJudge


def material_of(row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure], pages: Sequence[str]) -> Material:
    """Return the material of a row. ``pages`` are the texts of the relevant documents, where a measure reads them.

    The contexts are those of the row: in a conversation, of this turn alone.
    """
    material = Material(
        question=row.query,
        answer=row.llm_answer,
        contexts=tuple(chunk.text for chunk in row.retrieved_chunks),
        ground_truth=case.ground_truth,
        gold_pages=tuple(pages),
        quotes=tuple(evidence.quote for evidence in as_shown(case, row).evidence),
        abstained=row.abstained,
        answerable=case.answerable,
        retrieves=row.retrieves is not False,
    )
    if any(CRITERIA in measure.asks for measure in measures):
        expected = found_in(case, row)
        plain = {each.name: getattr(material, each.name) for each in fields(material)}
        material = MaterialOfCase(**plain, expected=tuple(expected), criteria=tuple(criteria_of(expected)))
    material = turn_material(material, row.asked.history, kinds_of(case))
    return also_asking_of_turns(also_asking(material, measures), measures)


# Judged scores from one replay to the next, in the cache: a judge that computes its scores says the same again.
#
# A score is found by the content of all that decides it: the judge and its options, the measure, the digest of this
# package, the versions of Python and of libraries, and every text that was judged. Kept are scores of the measures of
# this package alone: of others it is not known what else they read.

KEPT_SCORES = "scores"
"""The folder in the cache."""
_PACKAGE = "rag_harness."


class KeptScores:
    """Scores of one judge by the content that they depend on.

    Args:
        folder: belongs to one judge, its options and one state of the package.
    """

    def __init__(self, folder: Path) -> None:
        self._values = KeptValues(folder)
        self.flush = self._values.flush

    def of(self, author: Author, material: Material, measures: Sequence[JudgedMeasure]) -> dict[str, Score]:
        """Return the known scores by the measure's name."""
        kept = {each.name: _score(self._values.get(key)) for each, key in _keys(author, material, measures).items()}
        return {name: score for name, score in kept.items() if score is not None}

    def keep(
        self, author: Author, material: Material, measures: Sequence[JudgedMeasure], said: Mapping[str, Score]
    ) -> None:
        """Keep new scores. What a judge could not say is not kept, nor what JSON would change."""
        for measure, key in _keys(author, material, measures).items():
            score = said[measure.name]
            content = [score.value, score.reason, dict(score.detail), score.undefined]
            if (score.value is not None or score.undefined) and _is_plain(content):
                self._values.put(key, content)


def kept_scores(settings: Settings) -> KeptScores | None:
    """Return the kept scores of a run's judge; None where it judges each time.

    It does where a run asks models behind a network; and so do a model, a panel, a judge of another package, and the
    nodes of a cluster.
    """
    if access_of(settings).calls_network or settings.panel or settings.engine != "local":
        return None
    try:
        module = module_of("judges", judge_name(settings))
    except RagHarnessError:
        return None
    if not says_the_same(settings) or not module.startswith(_PACKAGE):
        return None
    decides = [package_digest(), sys.version, library_versions(), affecting(settings, "judging", "retrieval")]
    return KeptScores(settings.path(settings.cache_dir) / KEPT_SCORES / json_digest(decides))


def _keys(author: Author, material: Material, measures: Sequence[JudgedMeasure]) -> dict[JudgedMeasure, str]:
    """Return the key of each measure whose score may be kept.

    Material of a case with expectations, or of a turn, holds objects whose text does not tell all that they are.
    """
    if type(material) is not Material:
        return {}
    own = [measure for measure in measures if type(measure).__module__.startswith(_PACKAGE)]
    who = [author.judge, author.model, author.revision, repr(material)]
    return {each: text_digest([*who, each.name, str(each.version), type(each).__qualname__]) for each in own}


def _is_plain(content: Sequence[Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(content, allow_nan=False)) == content)
    except (TypeError, ValueError):
        return False


def _score(kept: Any) -> Score | None:
    try:
        value, reason, detail, undefined = kept
        return Score(None if value is None else float(value), str(reason), dict(detail), bool(undefined))
    except (TypeError, ValueError, OverflowError):
        return None


# Judge a row by the wanted measures, and return lines of scores. A failure of the judge is a score without a value.

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
    spent: JudgingCost = field(default_factory=JudgingCost)
    panel: tuple[Author, ...] = ()

    @property
    def authors(self) -> tuple[tuple[str, str, str], ...]:
        """Judge, model and revision of those who have judged."""
        return tuple((who.judge, who.model, who.revision) for who in self.panel or (self.author,))

    @property
    def counts(self) -> dict[str, int]:
        """How many tokens and calls judging took, by the names that ``run.json`` has for them."""
        used = self.spent.usage
        asked = {"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens, "calls": used.calls}
        return {**asked, "recorded": self.spent.recorded}

    def plain(self) -> dict[str, Any]:
        """Return what the writer of the files needs, in types that xdist can send."""
        return {"authors": self.authors, "lines": [line.decode() for line in self.new], "counts": self.counts}


@dataclass(frozen=True, slots=True)
class _MeasureRequest:
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


class RowJudge:
    """The judge of one process.

    Args:
        make_judge: makes the judge on first use.
        pages_of: returns gold pages; called only for measures that read them.
        seconds: seconds that judging a row may take.
        judge_of_repeat: makes a judge without earlier replies; takes the number of the repeat.
        elsewhere: asks the judge of another process; None where this process asks.
        kept: scores of earlier replays; None where the judge is asked for each score.
        stated: returns what scores of the judge depend on besides its revision; None where none is reused.
    """

    def __init__(
        self,
        make_judge: Callable[[], Judge],
        pages_of: PagesOf,
        seconds: float,
        judge_of_repeat: Callable[[int], Judge] | None = None,
        elsewhere: AskJudge | None = None,
        kept: KeptScores | None = None,
        *,
        stated: Callable[[Any], str | None] = lambda _: "",
    ) -> None:
        self._stated = Lazy(lambda: stated(self._judge.get()))
        self._judge, self._pages_of, self._seconds = Lazy(make_judge), pages_of, seconds
        self._judge_of_repeat = judge_of_repeat
        self._elsewhere, self._kept = elsewhere, kept
        self._broken = ""
        self._long = asyncio.Lock()

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
        wanted = [_MeasureRequest(measure, digest, self._gold_digest(measure, material)) for measure in applying]
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
        wanted = _MeasureRequest(measure, row_digest(row), gold)
        known = find(row.experiment, wanted.line(row, author, Score(None)).key) if self._reuses(measure) else None
        if known is not None and known.gold == gold:
            return JudgedRow(author, {measure.name: _score_of_line(known)})
        with spending() as spent:
            score = asked if isinstance(asked, Score) else (await self._ask(asked, [measure], 0))[measure.name]
        return JudgedRow(author, {measure.name: score}, (wanted.line(row, author, score).line(),), spent)

    async def _turn(
        self,
        row: ExperimentResult,
        author: Author,
        material: Material,
        wanted: Sequence[_MeasureRequest],
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
        return {name: _score_of_line(line) for name, line in known.items()} | dict(said), lines

    def _reuses(self, measure: JudgedMeasure) -> bool:
        """Return whether an earlier score of a measure may be reused. It may not after the judge has failed."""
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
        if self._elsewhere:
            return await self._bound(self._elsewhere(material, measures, turn))
        judge = self._judge_of_repeat(turn) if turn and self._judge_of_repeat else self._judge.get()
        if inline.get() or not material.is_long or not _computes(judge):
            return await self._bound(judged(material, measures, judge))
        # Its rules would keep this loop, and with it the deadline, waiting. Long texts are judged one after another, in
        # one process, so that the time of one is not that of the next.
        async with self._long:
            return await self._bound(in_a_thread(lambda: asyncio.run(judged(material, measures, judge))))

    async def _bound(self, work: Coroutine[Any, Any, Mapping[str, Score]]) -> Mapping[str, Score]:
        if inline.get():
            return await work
        why = f"deadline: not judged within {self._seconds:g} s. Allow more: --rag-deadline"
        return await Deadline(self._seconds, why).bound(work)


def _computes(judge: Judge) -> bool:
    """Return whether a judge says that it computes alone: it asks no model, and says the same of the same answer."""
    return getattr(judge, "asks_model", None) is False and getattr(judge, "deterministic", None) is True


def _made_by(measure: JudgedMeasure) -> list[str]:
    return [package_digest(), stated_fingerprint(measure)]


def _needs_pages(measure: JudgedMeasure) -> bool:
    return any(isinstance(ask, Support) and ask.source == "gold_pages" for ask in measure.asks)


def _score_of_line(line: ScoreLine) -> Score:
    return Score(line.value, line.reason, line.detail, line.undefined)


def _none(measures: Sequence[JudgedMeasure], why: str) -> dict[str, Score]:
    return {measure.name: Score(None, why) for measure in measures}


# Judge a row by each judge of a panel. Each judge's scores are lines of its own; together they give the panel's.


class PanelJudging:
    """The panel of one process, used as ``Judging`` is.

    Args:
        rule: how the judges decide together.
        judges: the judging of each judge, in the order of the panel.
    """

    def __init__(self, rule: str, judges: Sequence[RowJudge]) -> None:
        self._rule, self._judges = rule, judges
        self._same = ""

    @property
    def judges(self) -> Sequence[RowJudge]:
        """The judging of each judge, in the order of the panel."""
        return self._judges

    @property
    def broken(self) -> str:
        """Why no judgement of one of the judges can succeed; empty while no reason is known."""
        return self._same or next((each.broken for each in self._judges if each.broken), "")

    def made(self) -> str:
        """Make the judges on the first call. Return why one cannot be made; empty where all can."""
        reasons = [why for each in self._judges if (why := each.made())]
        if not reasons:
            authors = [each.author for each in self._judges]
            twice = [author for n, author in enumerate(authors) if author in authors[:n]]
            if twice:
                named = judge_label(twice[0].judge, twice[0].model)
                self._same = f"two judges of the panel are the same one, {named}: its model takes no other name"
        return reasons[0] if reasons else self._same

    async def row(
        self, row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure], find: Find, repeats: int = 0
    ) -> JudgedRow:
        """Return the panel's scores of a row, and the new lines of each judge. Each judge's known scores are reused."""
        asked = [each.row(row, case, measures, find, repeats) for each in self._judges]
        said = [await each for each in asked] if inline.get() else await asyncio.gather(*asked)
        spent = JudgingCost()
        for each in said:
            spent.usage += each.spent.usage
            spent.recorded += each.spent.recorded
        authors = tuple(each.author for each in said)
        scores = _together(self._rule, authors, [each.scores for each in said])
        return JudgedRow(authors[0], scores, tuple(line for each in said for line in each.new), spent, authors)

    def scores_of(self, lines: Iterable[ScoreLine]) -> dict[str, Score]:
        """Return the panel's scores from lines of its judges."""
        authors = [each.author for each in self._judges]
        said: list[dict[str, Score]] = [{} for _ in authors]
        for line in lines:
            if line.author in authors:
                score = Score(line.value, line.reason, line.detail, line.undefined)
                said[authors.index(line.author)][line.measure] = score
        return _together(self._rule, authors, said)


def judging_of(
    parts: RunParts,
    pages_of: PagesOf,
    elsewhere: AskJudge | None,
    repeats: bool = False,
    kept: KeptScores | None = None,
) -> RowJudge | PanelJudging:
    """Return the judging of a run: by its judge, or by each judge of its panel.

    Args:
        parts: what judges are made of.
        pages_of: returns gold pages.
        elsewhere: asks the judge of another process; None where this process asks.
        repeats: whether a judge may be asked again about the same answer.
        kept: scores of earlier replays by the run's judge.
    """
    judges = [_by(each, pages_of, elsewhere, repeats, kept) for each in parts_of_judges(parts)]
    rule = parts.settings.panel
    return PanelJudging(rule, judges) if rule else judges[0]


def _by(
    parts: JudgeParts, pages_of: PagesOf, elsewhere: AskJudge | None, repeats: bool, kept: KeptScores | None
) -> RowJudge:
    make, settings = partial(create_judge, parts), parts.settings
    stated = partial(scores_fingerprint, settings=settings)
    return RowJudge(make, pages_of, settings.deadline, make if repeats else None, elsewhere, kept, stated=stated)


def _together(rule: str, authors: Sequence[Author], said: Sequence[Mapping[str, Score]]) -> dict[str, Score]:
    """Return the panel's score of each measure that all judges have been asked about."""
    labels = [judge_label(author.judge, author.model) for author in authors]
    names = [name for name in said[0] if all(name in each for each in said)]
    return {
        name: panel_score(rule, {label: each[name] for label, each in zip(labels, said, strict=True)}) for name in names
    }
