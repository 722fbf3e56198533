"""Plans of knowledge bases, made from a shipped domain without a model, or written by a model.

planned(wanted)   a plan; the same seed gives the same plan
plan_text(plan)   ``structure.json``
check_plan(plan)  raises the contradictions in a plan, before anything is written
"""

from __future__ import annotations

from rag_harness.authoring.kb.planning.embedded import planned
from rag_harness.authoring.kb.planning.plan_checks import check_plan
from rag_harness.authoring.kb.planning.plan_text import plan_text
from rag_harness.authoring.kb.planning.wanted import PlanRequest

__all__ = ["PlanRequest", "check_plan", "plan_text", "planned"]
