"""Support of an answer's claims: by the retrieved context, and by the relevant pages."""

from __future__ import annotations

from rag_harness.measures.judged.measure import JudgedMeasure, supported_share
from rag_harness.measures.judged.opinion import Material, Opinion, Support
from rag_harness.measures.judged.reasons import ABSTAINED
from rag_harness.measures.measure import Score
from rag_harness.types import Case


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
        """Return why there is no relevant page to compare the answer with."""
        return "" if case.context_reference else "no relevant document"

    def undefined(self, material: Material) -> str:
        """Return why no page or no claim can be compared."""
        if not any(page.strip() for page in material.gold_pages):
            return "no text of a relevant document"
        return ABSTAINED if material.abstained else ""

    async def judge(self, material: Material, opinion: Opinion) -> Score:  # noqa: ARG002
        return supported_share(await opinion.supported("answer", "gold_pages"), "answer")
