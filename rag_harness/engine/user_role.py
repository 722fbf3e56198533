"""Whether what a model says as a user follows from its scenario, as a judge finds: a score of the row of a move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from rag_harness.engine.row_judging import JudgedRow
from rag_harness.measures.judged.judged_expectations import JudgedExpectations
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score import ScoreLine, row_digest
from rag_harness.types import Case, Expectation

IN_ROLE = "in_role"
"""The name of the score: 1 where the user kept to its role, 0 where not, none where the judge could not tell."""
CRITERIA = (
    "Every number, name, date and other claim in the answer stands in the question, or follows from what stands there.",
    "The answer is what the person of the question says next: it does not speak as the assistant, and it answers no "
    "question that the person has asked.",
)
"""What a judge is asked. Its question is the scenario with the conversation so far, its answer what the user says."""
_WANTED = tuple(Expectation("rubric", each, must=True) for each in CRITERIA)
AskJudge = Callable[[ExperimentResult, Case, Sequence[JudgedExpectations]], Awaitable[JudgedRow]]


@dataclass(frozen=True, slots=True)
class RoleJudge:
    """Asks the judge of a run about moves of users."""

    ask: AskJudge

    async def line(self, row: ExperimentResult, case: Case) -> ScoreLine:
        """Return the score of a move."""
        measure = JudgedExpectations()
        judged = await self.ask(row, replace(case, expect=_WANTED), [measure])
        score = judged.scores[measure.name]
        value = None if score.value is None else float(score.value >= 1)
        return ScoreLine(
            measure=IN_ROLE,
            version=1,
            experiment=row.experiment,
            query_id=row.query_id,
            row=row_digest(row),
            gold="",
            author=judged.author,
            value=value,
            reason=score.reason,
        )


def verdict_in(scores: Sequence[ScoreLine], row: ExperimentResult) -> ScoreLine | None:
    """Return the verdict on a move, whoever has judged it: it was said to the pipeline, or was not, because of it."""
    digest = row_digest(row)
    return next((each for each in scores if each.measure == IN_ROLE and each.row == digest and each.is_final), None)
