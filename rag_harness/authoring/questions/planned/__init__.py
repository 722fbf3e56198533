"""Questions about facts that a plan says its pages must state, made from a fact's statement, value and kind.

planned_facts(folder)      the pages of ``structure.json`` that have facts; empty without a plan
PlannedPages(pages)        those facts at their places in documents, and the facts of similar pages
"""

from __future__ import annotations

from rag_harness.authoring.questions.planned.pages import PlannedPages, planned_facts

__all__ = ["PlannedPages", "planned_facts"]
