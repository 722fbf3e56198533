"""Judge a row by each judge of a panel. Each judge's scores are lines of its own; together they give the panel's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from rag_harness.engine.kept_scores import KeptScores
from rag_harness.engine.row_judging import Find, JudgedRow, Judging, PagesOf
from rag_harness.engine.workplace import AskJudge
from rag_harness.judges.in_conversation import in_conversations
from rag_harness.judges.made import asked_anew, bare_judge, judge_of, scores_fingerprint
from rag_harness.judges.panel import parts_of_judges
from rag_harness.judges.panel_scores import panel_score
from rag_harness.judges.spent import Spent
from rag_harness.measures import Score
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import JudgeParts
from rag_harness.results.panel_names import judge_label
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score import Author, ScoreLine
from rag_harness.types import Case
from rag_harness.work.local_work import inline
from rag_harness.work.once import Once


class PanelJudging:
    """The panel of one process, used as ``Judging`` is.

    Args:
        rule: how the judges decide together.
        judges: the judging of each judge, in the order of the panel.
    """

    def __init__(self, rule: str, judges: Sequence[Judging]) -> None:
        self._rule, self._judges = rule, judges
        self._same = ""

    @property
    def judges(self) -> Sequence[Judging]:
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
        spent = Spent()
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
) -> Judging | PanelJudging:
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
) -> Judging:
    anew = (lambda turn: in_conversations(asked_anew(parts, turn), parts)) if repeats else None
    bare = Once(lambda: bare_judge(parts))
    make = lambda: in_conversations(judge_of(parts, bare.get()), parts)  # noqa: E731
    stated = lambda: scores_fingerprint(bare.get(), parts.settings)  # noqa: E731
    return Judging(make, pages_of, parts.settings.deadline, anew, elsewhere, kept, stated=stated)


def _together(rule: str, authors: Sequence[Author], said: Sequence[Mapping[str, Score]]) -> dict[str, Score]:
    """Return the panel's score of each measure that all judges have been asked about."""
    labels = [judge_label(author.judge, author.model) for author in authors]
    names = [name for name in said[0] if all(name in each for each in said)]
    return {
        name: panel_score(rule, {label: each[name] for label, each in zip(labels, said, strict=True)}) for name in names
    }
