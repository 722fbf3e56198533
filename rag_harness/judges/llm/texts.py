"""The texts of a material, by the names that judges use for them."""

from __future__ import annotations

from rag_harness.measures.judged import Material, SupportSource

NOTHING_TO_JUDGE_BY = "no text to judge by"


def source_of(material: Material, source: SupportSource) -> tuple[str, ...]:
    """Return the texts that may support a claim."""
    of = {"answer": (material.answer,), "ground_truth": (material.ground_truth,)}
    return {**of, "contexts": material.contexts, "gold_pages": material.gold_pages}[source]


def passages_of(material: Material, source: SupportSource) -> dict[int, str]:
    """Return the passages that are not empty, by their position."""
    return {place: text for place, text in enumerate(source_of(material, source)) if text.strip()}
