"""Measures of an answer's sources: whether any chunk reached the prompt, and whether the answer cites one."""

from __future__ import annotations

from rag_harness.measures.judged.reasons import ABSTAINED, NOT_ANSWERABLE
from rag_harness.measures.measure import RowMeasure, Score
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case


class ZeroResultRate(RowMeasure):
    """1 if no chunk reached the prompt though the documents have the answer: nothing found, or all below a floor."""

    called, better, worst, needs = "zero_result_rate", "lower", 1.0, ("retrieval", "answer")

    def applies(self, case: Case) -> str:
        """Return why there was nothing to find."""
        return "" if case.answerable else NOT_ANSWERABLE

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        return Score(float(not row.retrieved_chunks))


class CitationRate(RowMeasure):
    """1 if the answer cites at least one chunk of its prompt. An abstention has nothing to cite."""

    called, needs = "citation_rate", ("retrieval", "answer")

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        if row.abstained:
            return Score(None, ABSTAINED, undefined=True)
        return Score(float(any(1 <= n <= len(row.retrieved_chunks) for n in row.citations)))
