"""A row to judge."""

from __future__ import annotations

from rag_harness.evaluation.measures.opinion import JudgeQuestion, Material, Support

FAITHFULNESS = Support("answer", "contexts")
CP_F_AR: tuple[JudgeQuestion, ...] = (FAITHFULNESS, "usefulness", "relevancy")

RETURNS = "Returns are free for thirty days."
REFUNDS = "Refunds arrive within seven days."
OPENING = "The shop opens at nine."
ROW = Material(
    question="May I send it back?",
    answer=f"{RETURNS} Refunds arrive tomorrow morning.",
    contexts=(RETURNS, OPENING, REFUNDS),
    ground_truth=RETURNS,
    gold_pages=(f"{RETURNS} {REFUNDS}",),
    quotes=(RETURNS, REFUNDS),
)
