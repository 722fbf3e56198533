"""The base class of judged measures against the ground truth."""

from __future__ import annotations

from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Material
from rag_harness.measures.judged.reasons import no_context, no_truth
from rag_harness.types import Case


class AgainstGroundTruth(JudgedMeasure):
    """Defined where the case has a ground truth and, if the measure needs retrieval, there is a context."""

    def applies(self, case: Case) -> str:
        """Return why the case has no ground truth."""
        return no_truth(case)

    def undefined(self, material: Material) -> str:
        """Return whether the ground truth or the context is missing."""
        return no_truth(material) or (no_context(material) if "retrieval" in self.needs else "")
