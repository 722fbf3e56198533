"""Composites of judged measures: the study's figures, without further calls of a judge."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.measures.composite import CompositeMeasure

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
