"""Create the judge that the settings name, compute the scores of one answer, and the score of a panel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_harness.core.errors import BudgetError, CriticalError, NotJudgedError, RagHarnessError
from rag_harness.core.log import log
from rag_harness.core.protocols import JudgeParts
from rag_harness.core.registry import is_own, may_be_kept, module_of, note, resolve, stated_fingerprint
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.run_judge import RunJudge
from rag_harness.evaluation.judges.traits import CountedParts
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    NO_CONTEXT,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    Support,
)
from rag_harness.models.endpoints import chat_name, judge_name
from rag_harness.records.manifest import silent_reason
from rag_harness.stats.agreement import panel_values


def create_judge(parts: JudgeParts, again: int | None = None) -> RunJudge:
    """Return the judge of a run, made from its parts.

    ``again`` is how often it was asked before: it then has no earlier replies, and each time a seed of its own.

    Raises:
        RegistryError: no judge has the name in the settings.
        PrerequisiteError: it needs a package that is not installed.
    """
    name = judge_name(parts.settings)
    note("judge", module_of("judges", name), RunJudge.__module__, CountedParts.__module__)
    return RunJudge(resolve("judges", name)(CountedParts(parts, again)), parts)


def scores_fingerprint(judge: RunJudge, settings: Settings) -> str | None:
    """Return the part of the keys of a judge's scores beside its revision; None where no score may be reused.

    Scores of a judge of a user's own, or of one that asks a model by a user's own adapter, depend on code that is not
    visible, unless the judge states a ``fingerprint``.
    """
    name = judge_name(settings)
    model, url = settings.judge_model or settings.chat_model, settings.judge_base_url or settings.chat_base_url
    asked = chat_name(replace(settings, chat_model=model, chat_base_url=url)) if judge.asks_model else ""
    if asked and is_own(module_of("chat", asked)):
        return None
    return stated_fingerprint(judge.inner) if may_be_kept(judge.inner, module_of("judges", name)) else None


# Computes the judged scores of one answer. A failure of the judge is a value: a score of None with the reason.

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


def panel_score(rule: str, said: Mapping[str, Score]) -> Score:
    """Return the score of a panel from those of its judges, by the judge's label.

    Where a judge has no value the panel has none either; it is undefined only where all say that there is nothing to
    measure.
    """
    values = {name: score.value for name, score in said.items()}
    found = [[value] for value in values.values() if value is not None]
    if all(score.undefined for score in said.values()):
        return next(iter(said.values()))
    if silent := {name: said[name].reason for name, value in values.items() if value is None}:
        return Score(None, silent_reason(silent, len(said)), {"judges": values})
    return Score(float(panel_values(rule, found)[0]), "", {"judges": values})
