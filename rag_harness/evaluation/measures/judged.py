"""Judged measures: faithfulness, context precision and recall, relevancy, correctness, nuggets.

Diagnostics and categories.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from asyncio import gather
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.text.comparison import content_words
from rag_harness.core.types import Case
from rag_harness.evaluation.measures.measure import CompositeMeasure, NamedMeasure, Need, Score
from rag_harness.evaluation.measures.opinion import (
    ABSTAINED,
    CITATIONS,
    FOUND_NOTHING,
    RIGHT_ABSTENTION,
    CitedClaim,
    Claim,
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    OpinionOfCitations,
    Relevancy,
    SourceVerdict,
    Support,
    SupportSource,
    Usefulness,
    Verdict,
    Verdicts,
    no_truth,
    says_nothing,
)

__all__ = [
    "CATEGORIES",
    "CITATIONS",
    "CitedClaim",
    "Claim",
    "ClaimedText",
    "Judge",
    "JudgeQuestion",
    "JudgedMeasure",
    "Material",
    "Opinion",
    "OpinionOfCitations",
    "Relevancy",
    "SourceVerdict",
    "Support",
    "SupportSource",
    "Usefulness",
    "Verdict",
    "Verdicts",
    "supported_share",
]


# The base class of judged measures. A judge gives their scores, which have files of their own.


class JudgedMeasure(NamedMeasure, ABC):
    """A measure whose scores come from a judge. Derive from it, set what differs, and register the class.

    One object serves many answers at the same time: store nothing of an answer in it.

    Args:
        cutoff: number after the ``@`` of the name; judged measures take none.

    Raises:
        SettingsError: there is a cutoff.
    """

    asks: ClassVar[tuple[JudgeQuestion, ...]]
    """The questions to the judge."""
    needs: tuple[Need, ...] = ("answer",)

    @abstractmethod
    def undefined(self, material: Material) -> str:
        """Return why the measure is undefined for this answer, e.g. "an abstention"; empty where it is defined.

        A case must not leave a mean because its pipeline did badly. So a missing context does not count as a reason.
        Where the experiment retrieves, ``without_context`` has the score; elsewhere no case has a context.
        """

    def without_context(self, material: Material) -> Score | None:  # noqa: ARG002 - those that depend on it say so
        """Return the score of an answer whose experiment retrieves and has found nothing: the worst.

        It is asked only of measures that need a retrieval. None where the judge is asked all the same.
        """
        return None if self.worst is None else Score(self.worst, FOUND_NOTHING)

    @abstractmethod
    async def judge(self, material: Material, opinion: Opinion) -> Score:
        """Return the score of an answer that the measure is defined for.

        Raises:
            RagHarnessError: the judge gives no verdict; the score is then None with that reason.
        """


def supported_share(found: Verdicts, of: str) -> Score:
    """Return supported claims / claims. A claim without a verdict leaves no score: the denominator never shrinks.

    ``of`` names the text with the claims, as the reason of a missing score has it.
    """
    detail = {**found.detail, "claims": [verdict_detail(verdict) for verdict in found.each]}
    why = unusable(found, of)
    if why:
        return Score(None, why, detail)
    share = sum(values(found)) / len(found.each) if found.share is None else found.share
    return Score(share, detail=detail) if 0 <= share <= 1 else Score(None, f"share {share:g} is not in [0, 1]", detail)


def unusable(found: Verdicts, of: str) -> str:
    """Return why the verdicts on the claims of ``of`` give no score; empty where they do."""
    if not found.each:
        return f"no claim in the {of}"
    return missing([(verdict.value, verdict.reason) for verdict in found.each], "claims")


def missing(said: Sequence[tuple[float | None, str]], things: str) -> str:
    """Return how many ``things`` have no value in [0, 1], with the reason of the first; empty where all have one."""
    without = [(value, reason) for value, reason in said if value is None or not 0 <= value <= 1]
    if not without:
        return ""
    value, reason = without[0]
    why = reason or "no reason given" if value is None else f"{value:g} is not in [0, 1]"
    return f"{len(without)} of {len(said)} {things} without a verdict: {why}"


def values(found: Verdicts) -> list[float]:
    """Return the value of each verdict, where none is missing."""
    return [verdict.value for verdict in found.each if verdict.value is not None]


def verdict_detail(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as the dictionary in a score's detail."""
    claim = verdict.claim
    said: dict[str, object] = {"text": claim.text, "value": verdict.value}
    if claim.start >= 0:
        said |= {"start": claim.start, "end": claim.end}
    if claim.citations:
        said["citations"] = list(claim.citations)
    if verdict.passage is not None:
        said["passage"] = verdict.passage
    return said | ({"reason": verdict.reason} if verdict.reason else {})


class AgainstGroundTruth(JudgedMeasure):
    """Defined where the case has a ground truth."""

    def applies(self, case: Case) -> str:
        """Return why the case has no ground truth."""
        return no_truth(case)

    def undefined(self, material: Material) -> str:
        """Return why the material has no ground truth."""
        return no_truth(material)


class Faithfulness(JudgedMeasure):
    """Claims of the answer that the retrieved context supports / claims (RAGAS, Es et al. 2023)."""

    called = "faithfulness"
    asks = (Support("answer", "contexts"),)
    needs = ("answer", "retrieval")

    def undefined(self, material: Material) -> str:
        """Return whether the answer claims nothing."""
        return ABSTAINED if material.abstained else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        return supported_share(await opinion.supported("answer", "contexts"), "answer")


class Factuality(JudgedMeasure):
    """Claims of the answer that the relevant pages support / claims: experiments without retrieval have it too."""

    called = "factuality"
    asks = (Support("answer", "gold_pages"),)

    def applies(self, case: Case) -> str:
        """Return why the case lacks a relevant page to compare the answer with."""
        return "" if case.context_reference else "no relevant document"

    def undefined(self, material: Material) -> str:
        """Return why no page or no claim can be compared."""
        if not any(page.strip() for page in material.gold_pages):
            return "no text of a relevant document"
        return ABSTAINED if material.abstained else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        return supported_share(await opinion.supported("answer", "gold_pages"), "answer")


# Measures of the retrieved context against the ground truth. They do not depend on the answer.


class ContextPrecision(AgainstGroundTruth):
    """Σ P@i · v_i / Σ v over the chunks, v_i = 1 where chunk i was useful, P@i = the mean of the first i.

    Average precision as RAGAS defines it (Es et al. 2023), without its 1e-10: it measures how high the useful
    chunks rank. 0 where no chunk is useful. Probabilities go into the same formula.
    """

    called = "context_precision"
    asks = ("usefulness",)
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        """Return the average precision; None where a chunk has no verdict.

        Raises:
            ModelOutputError: the judge did not judge each chunk exactly once.
        """
        said = await opinion.usefulness()
        if len(said) != len(material.contexts):
            raise ModelOutputError(f"{len(said)} verdicts for {len(material.contexts)} chunks")
        detail = {"chunks": [_plain(one) for one in said]}
        why = missing([(one.value, one.reason) for one in said], "chunks")
        useful = [one.value for one in said if one.value is not None]
        return Score(None, why, detail) if why else Score(average_precision(useful), detail=detail)


class ContextRecall(AgainstGroundTruth):
    """Claims of the ground truth that the context supports / claims (RAGAS; RAGChecker, Ru et al. 2024)."""

    called = "context_recall"
    asks = (Support("ground_truth", "contexts"),)
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        return supported_share(await opinion.supported("ground_truth", "contexts"), "ground truth")


def average_precision(useful: Sequence[float]) -> float:
    """Return Σ P@i · v_i / Σ v of values in [0, 1], best rank first; 0 where all are 0."""
    total = sum(useful)
    if not total:
        return 0.0
    precisions = (found / rank for rank, found in enumerate(accumulate(useful), 1))
    return min(1.0, sum(at * value for at, value in zip(precisions, useful, strict=True)) / total)


def _plain(said: Usefulness) -> dict[str, object]:
    return {"value": said.value} | ({"reason": said.reason} if said.reason else {})


# Relevancy of an answer to its question. A wrong answer may be relevant.

_ROUNDING = 1e-6


class AnswerRelevancy(JudgedMeasure):
    """Mean cosine of the question and those that the answer would answer (RAGAS, Es et al. 2023), raw: in [-1, 1].

    0 where the answer is noncommittal. An abstention is 0 where the documents have the answer. Where they have none,
    it is right, and the measure is undefined.
    """

    called = "answer_relevancy"
    asks = ("relevancy",)
    unit = "score"

    def undefined(self, material: Material) -> str:
        """Return why no answer was expected."""
        return RIGHT_ABSTENTION if material.abstained and not material.answerable else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0, detail={"noncommittal": True})
        return _score(await opinion.relevancy())


def _score(said: Relevancy) -> Score:
    detail = {**said.detail, "noncommittal": said.noncommittal}
    if said.noncommittal:
        return Score(0.0, detail=detail)
    if said.value is None:
        return Score(None, said.reason or "the judge gave no cosine", detail)
    if not abs(said.value) <= 1 + _ROUNDING:
        return Score(None, f"cosine {said.value} is not in [-1, 1]", detail)
    return Score(max(-1.0, min(1.0, said.value)), detail=detail)


class AnswerCorrectness(AgainstGroundTruth):
    """2PR / (P + R): P = claims of the answer that the ground truth supports / claims, R the other way round.

    RAGChecker's overall F1 (Ru et al. 2024); the detail has P and R. 0 where a right answer exists and none was given.
    """

    called = "answer_correctness"
    asks = (Support("answer", "ground_truth"), Support("ground_truth", "answer"))

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0, detail={"precision": None, "recall": 0.0})
        said, wanted = await gather(
            opinion.supported("answer", "ground_truth"), opinion.supported("ground_truth", "answer")
        )
        return _f1(supported_share(said, "answer"), supported_share(wanted, "ground truth"))


def _f1(precision: Score, recall: Score) -> Score:
    detail = {
        "precision": precision.value,
        "recall": recall.value,
        "claims": precision.detail["claims"],
        "ground_truth": recall.detail["claims"],
    }
    if precision.value is None or recall.value is None:
        return Score(None, precision.reason or recall.reason, detail)
    both = precision.value + recall.value
    return Score(2 * precision.value * recall.value / both if both else 0.0, detail=detail)


# Nugget recall, as TREC counts it: the facts that an answer needs. Nuggets are the quotes of the evidence.

_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_LIST_NUMBER = re.compile(r"\s*\d+[.)]\s")
_NO_QUOTES = "no evidence quotes"
_HAS_FROM = 0.5


class NuggetRecall(AgainstGroundTruth):
    """TREC's weighted score: (Σ vital + ½ Σ okay) / (vital + ½ okay nuggets), each Σ over those that the answer has.

    Pradeep et al. 2024 (arXiv 2411.09607). Gold does not mark which are vital; the rule ``vital`` does. Where the judge
    gives probabilities, they are summed as they are.
    """

    called = "nugget_recall"
    asks = (Support("nuggets", "answer"),)
    okay: ClassVar[float] = 0.5
    """What an okay nugget weighs; a vital one weighs 1."""

    def applies(self, case: Case) -> str:
        """Return why the case lacks nuggets, or a ground truth that decides which are vital."""
        return no_truth(case) or ("" if any(one.quote.strip() for one in case.evidence) else _NO_QUOTES)

    def undefined(self, material: Material) -> str:
        """Return the same for an answer."""
        return no_truth(material) or ("" if any(quote.strip() for quote in material.quotes) else _NO_QUOTES)

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if says_nothing(material):
            return Score(0.0)
        found = await opinion.supported("nuggets", "answer")
        needed = [vital(verdict.claim.text, material.ground_truth) for verdict in found.each]
        claims = [
            {**verdict_detail(verdict), "vital": is_vital} for verdict, is_vital in zip(found.each, needed, strict=True)
        ]
        detail = {**found.detail, "claims": claims}
        why = unusable(found, "evidence quotes")
        if why:
            return Score(None, why, detail)
        weights = [1.0 if is_vital else self.okay for is_vital in needed]
        if not sum(weights):
            return Score(None, "no vital nugget", detail, undefined=True)
        there = sum(weight * self.counts(value) for weight, value in zip(weights, values(found), strict=True))
        return Score(min(1.0, there / sum(weights)), detail=detail)

    def counts(self, value: float) -> float:
        """Return the weight of a nugget whose support by the answer is ``value``, in [0, 1]."""
        return value


class StrictNuggetRecall(NuggetRecall):
    """TREC's strict score: nuggets that the answer fully has / nuggets, vital or okay; p ≥ ½ where judges estimate."""

    called = "nugget_recall_strict"
    okay = 1.0

    def counts(self, value: float) -> float:
        return float(value >= _HAS_FROM)


class VitalNuggetRecall(NuggetRecall):
    """TREC's vital score: Σ vital / vital nuggets, the Σ over those that the answer has. Okay nuggets do not count."""

    called = "nugget_recall_vital"
    okay = 0.0


class StrictVitalNuggetRecall(StrictNuggetRecall):
    """TREC's strict vital score: vital nuggets that the answer fully has / vital nuggets; p ≥ ½ where judges estimate.

    The headline of TREC RAG 2024.
    """

    called = "nugget_recall_vital_strict"
    okay = 0.0


def vital(nugget: str, ground_truth: str) -> bool:
    """Return whether the ground truth has a figure of ``nugget``, or at least half of its content words.

    A nugget that is not vital is okay: a premise of the ground truth that it does not repeat. A content word has at
    least four letters. The number of a list item does not count as a figure.
    """
    numbered = _LIST_NUMBER.match(nugget)
    nugget = nugget[numbered.end() :] if numbered else nugget
    if _figures(nugget) & _figures(ground_truth):
        return True
    words = content_words(nugget)
    return bool(words) and 2 * len(words & content_words(ground_truth)) >= len(words)


def _figures(text: str) -> set[str]:
    return set(_FIGURE.findall(text))


# Diagnostics of right and wrong answers: RAGChecker's measures of the generator (Ru et al. 2024, arXiv 2408.08067).
#
# They combine verdicts on the same claims by two sources. Where verdicts are probabilities, their products are used:
# expected values.


class AnswerDiagnostic(AgainstGroundTruth):
    """A share of the answer's claims, by whether each is right and whether the context has it."""

    asks = (Support("answer", "ground_truth"), Support("answer", "contexts"))
    better, worst, needs = "lower", 1.0, ("answer", "retrieval")

    def undefined(self, material: Material) -> str:
        """Return why a ground truth to compare with, or a claim, is missing."""
        return super().undefined(material) or (ABSTAINED if material.abstained else "")

    def without_context(self, material: Material) -> None:
        """Return None: the ground truth tells which claims are right, and no context has any of them."""

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        if material.has_context:
            right, found = await gather(
                opinion.supported("answer", "ground_truth"), opinion.supported("answer", "contexts")
            )
        else:
            right = await opinion.supported("answer", "ground_truth")
            found = Verdicts(tuple(Verdict(said.claim, 0.0, reason=FOUND_NOTHING) for said in right.each))
        detail = {"claims": _both(right, "ground_truth", found, "contexts")}
        why = unusable(right, "answer") or unusable(found, "answer")
        if why:
            return Score(None, why, detail)
        shares = [self.counts(*pair) for pair in zip(values(right), values(found), strict=True)]
        return Score(sum(shares) / len(shares), detail=detail)

    @abstractmethod
    def counts(self, right: float, found: float) -> float:
        """Return the weight of a claim that is ``right`` (ground truth) and ``found`` (context), each in [0, 1]."""


class NoiseSensitivity(AnswerDiagnostic):
    """Claims of the answer that are wrong and that the context supports / claims: what the context misled it to say."""

    called = "noise_sensitivity"

    def counts(self, right: float, found: float) -> float:
        return (1 - right) * found


class SelfKnowledge(AnswerDiagnostic):
    """Claims of the answer that are right and that the context does not support / claims: what the model knew."""

    called = "self_knowledge"

    def counts(self, right: float, found: float) -> float:
        return right * (1 - found)


class ContextUtilisation(AgainstGroundTruth):
    """Claims of the ground truth in the context and in the answer / those in the context: what it made of them.

    0 where none is in the context.
    """

    called = "context_utilisation"
    asks = (Support("ground_truth", "contexts"), Support("ground_truth", "answer"))
    needs = ("answer", "retrieval")

    async def judge(self, material: Material, opinion: Opinion) -> Score:
        found, said = await gather(
            opinion.supported("ground_truth", "contexts"), opinion.supported("ground_truth", "answer")
        )
        detail = {"claims": _both(found, "contexts", said, "answer")}
        why = unusable(found, "ground truth") or unusable(said, "ground truth")
        if why:
            return Score(None, why, detail)
        there = sum(values(found))
        if not there:
            return Score(0.0, "no claim of the ground truth in the context", detail)
        used = 0.0 if says_nothing(material) else sum(a * b for a, b in zip(values(found), values(said), strict=True))
        return Score(min(1.0, used / there), detail=detail)


def _both(first: Verdicts, name: SupportSource, second: Verdicts, other: SupportSource) -> list[dict[str, object]]:
    """Return each claim with both verdicts, by the name of their source.

    Raises:
        ModelOutputError: the verdicts are not on the same claims.
    """
    texts, others = ([verdict.claim.text for verdict in found.each] for found in (first, second))
    if texts != others:
        raise ModelOutputError(f"{name} and {other} were judged on other claims: {len(texts)} and {len(others)}")
    pairs = zip(first.each, second.each, strict=True)
    return [{"text": one.claim.text, name: verdict_detail(one), other: verdict_detail(two)} for one, two in pairs]


RELEVANCY = "answer_relevancy"
STUDY = ("g_mean", "hri", "hri_gold")
"""The study's own composites. A suite that has their parts has them too."""


class GMean(CompositeMeasure):
    """(CP · F · AR)^(1/3) of context precision, faithfulness and answer relevancy; AR clamped to [0, 1]."""

    called = "g_mean"
    parts = ("context_precision", "faithfulness", RELEVANCY)
    needs = ("answer", "retrieval")

    def combine(self, values: Mapping[str, float]) -> float:
        product = values["context_precision"] * values["faithfulness"] * _clamped(values)
        return min(1.0, float(product ** (1 / 3)))


class HRI(CompositeMeasure):
    """(1 − F) · AR: hallucination risk, high where an answer is to the point and unfaithful; AR clamped to [0, 1]."""

    called = "hri"
    parts = ("faithfulness", RELEVANCY)
    better, worst, needs = "lower", 1.0, ("answer", "retrieval")

    def combine(self, values: Mapping[str, float]) -> float:
        return (1 - values["faithfulness"]) * _clamped(values)


class HRIGold(CompositeMeasure):
    """(1 − factuality) · AR: the same against the relevant pages, so that experiments without context have it."""

    called = "hri_gold"
    parts = ("factuality", RELEVANCY)
    better, worst = "lower", 1.0

    def combine(self, values: Mapping[str, float]) -> float:
        return (1 - values["factuality"]) * _clamped(values)


def _clamped(values: Mapping[str, float]) -> float:
    return max(0.0, min(1.0, values[RELEVANCY]))


CATEGORY_MEASURES = ("context_precision", "faithfulness", "answer_relevancy")
CORRECT_ABSTENTION, WRONG_ABSTENTION = "Correct Abstention", "Wrong Abstention"
ANSWERED_UNANSWERABLE = "Answered Unanswerable"
UNCLASSIFIED, UNMEASURED = "Unclassified", "Unmeasured"

RULES: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "Clean Pass": lambda cp, f, ar: (cp > 0.7) & (f > 0.7) & (ar > 0.7),
    "Hallucination": lambda cp, f, _: (cp > 0.6) & (f < 0.4),
    "Retrieval Failure": lambda cp, f, _: (cp < 0.4) & (f > 0.7),
    "Irrelevant": lambda _, f, ar: (ar < 0.4) & (f > 0.7),
    "Total Failure": lambda cp, f, ar: (cp < 0.4) & (f < 0.4) & (ar < 0.4),
}
"""Conditions of each category on one answer's values, or on arrays of many."""
CATEGORIES: tuple[str, ...] = (
    *RULES,
    UNCLASSIFIED,
    CORRECT_ABSTENTION,
    WRONG_ABSTENTION,
    ANSWERED_UNANSWERABLE,
    UNMEASURED,
)
"""All categories, in the order of display; the study's five come first."""
FAILED_CATEGORIES = (
    "Hallucination",
    "Retrieval Failure",
    "Irrelevant",
    "Total Failure",
    WRONG_ABSTENTION,
    ANSWERED_UNANSWERABLE,
)
"""Categories of failed answers."""
MEANINGS: Mapping[str, str] = {
    "Clean Pass": "context_precision > 0.7, faithfulness > 0.7, answer_relevancy > 0.7",
    "Hallucination": "context_precision > 0.6, faithfulness < 0.4",
    "Retrieval Failure": "context_precision < 0.4, faithfulness > 0.7",
    "Irrelevant": "answer_relevancy < 0.4, faithfulness > 0.7",
    "Total Failure": "context_precision < 0.4, faithfulness < 0.4, answer_relevancy < 0.4",
    UNCLASSIFIED: "anything else",
    CORRECT_ABSTENTION: "it says that it does not know, and the documents have no answer",
    WRONG_ABSTENTION: "it says that it does not know, and the documents have an answer",
    ANSWERED_UNANSWERABLE: "it answers, and the documents have no answer",
    UNMEASURED: "one of the three has no value",
}
"""Descriptions of the categories, for people."""


def kinds_shown(found: Iterable[str]) -> list[str]:
    """Return the categories to print, in their order. The study's five are always printed, even with no answer."""
    there = {*RULES, *found}
    return [kind for kind in CATEGORIES if kind in there]
