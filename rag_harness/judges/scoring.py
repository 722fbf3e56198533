"""Computes the judged scores of one answer. A failure of the judge is a value: a score of None with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_harness.errors import BudgetError, CriticalError, NotJudgedError, RagHarnessError
from rag_harness.files.log import log
from rag_harness.measures import Score
from rag_harness.measures.judged import CITATIONS, Judge, JudgedMeasure, JudgeQuestion, Material, Opinion, Support
from rag_harness.measures.judged.carried import LateMeasure
from rag_harness.measures.judged.reasons import NO_CONTEXT

Scores = Mapping[str, Score]
"""Scores by the measure's name."""
_ANY = "any text"


async def judged(material: Material, measures: Sequence[JudgedMeasure], judge: Judge) -> dict[str, Score]:
    """Return the score of each measure. All measures share one opinion, and run at the same time.

    Raises:
        CriticalError: no later judgement can succeed either.
    """
    scores = {measure.name: _known(measure, material) for measure in measures}
    wanted = [measure for measure in measures if scores[measure.name] is None]
    asks = {ask for measure in wanted for ask in measure.asks}
    opinion = judge.opinion(
        material, asks if material.has_context else {ask for ask in asks if not _reads_context(ask)}
    )
    said = await asyncio.gather(*(_score(measure, material, opinion) for measure in wanted))
    found = dict(zip((measure.name for measure in wanted), said, strict=True))
    return {name: score or found[name] for name, score in scores.items()}


def _known(measure: JudgedMeasure, material: Material) -> Score | None:
    """Return the score of a measure for which no judge has to be asked; None for any other."""
    if "retrieval" not in measure.needs or material.has_context or isinstance(measure, LateMeasure):
        why = measure.undefined(material)
        return Score(None, why, undefined=True) if why else None
    # A measure of a user's own may take a missing context for a reason. Whatever else it says stays one.
    if why := measure.undefined(replace(material, contexts=(_ANY,))):
        return Score(None, why, undefined=True)
    return measure.without_context(material) if material.retrieves else Score(None, NO_CONTEXT, undefined=True)


def _reads_context(ask: JudgeQuestion) -> bool:
    return ask in ("usefulness", CITATIONS) or (isinstance(ask, Support) and ask.source == "contexts")


async def _score(measure: JudgedMeasure, material: Material, opinion: Opinion) -> Score:
    try:
        return await measure.judge(material, opinion)
    except CriticalError:
        raise
    except NotJudgedError as error:
        return Score(None, str(error))
    except BudgetError as error:
        return Score(None, f"not judged: budget: {error}")
    except Exception as error:
        log.error("%s could not be judged", measure.name, exc_info=error)
        return Score(None, _why(error))


def _why(error: Exception) -> str:
    said = str(error) or repr(error)
    return said if isinstance(error, RagHarnessError) else f"{type(error).__name__}: {said}"
