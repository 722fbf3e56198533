"""The base class of judged measures against the ground truth."""

from __future__ import annotations

from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Material
from rag_harness.measures.judged.reasons import no_truth
from rag_harness.types import Case


class AgainstGroundTruth(JudgedMeasure):
    """Defined where the case has a ground truth."""

    def applies(self, case: Case) -> str:
        """Return why the case has no ground truth."""
        return no_truth(case)

    def undefined(self, material: Material) -> str:
        """Return why the material has no ground truth."""
        return no_truth(material)
