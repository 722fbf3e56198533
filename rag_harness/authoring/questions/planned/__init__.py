"""Questions about facts that a plan says its pages must state: asked by their statement, their value and their kind.

planned_facts(folder)      the pages of ``structure.json`` that have facts, none where there is no plan
PlannedPages(pages)        those facts where they stand in documents, and what like pages are told
"""

from __future__ import annotations

from rag_harness.authoring.questions.planned.pages import PlannedPages, planned_facts

__all__ = ["PlannedPages", "planned_facts"]
