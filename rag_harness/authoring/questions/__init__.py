"""Questions for anybody's documents, with ground truth and evidence: from facts found in the text, without a model.

Collection(documents, planned)   what is asked of, and what is near a question in it; facts that a plan tells of it
planned_facts(folder)            those of ``structure.json``
ask(collection, wanted, seed)    drafts that pass the filters, and what was dropped
rejected_beside(file)            what a person rejected of them, for ``ask`` to leave out
rejected_ids(file)               ids that its rows are not to have again
rows(drafts, collection)         rows of ``queries.jsonl``; ``lines`` writes them
"""

from __future__ import annotations

from rag_harness.authoring.questions.asking import KINDS, Found, ask
from rag_harness.authoring.questions.collection import Collection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.planned import planned_facts
from rag_harness.authoring.questions.rejected import rejected_beside, rejected_ids
from rag_harness.authoring.questions.written import EMBEDDED, lines, rows

__all__ = [
    "EMBEDDED",
    "KINDS",
    "Collection",
    "Draft",
    "Found",
    "ask",
    "lines",
    "planned_facts",
    "rejected_beside",
    "rejected_ids",
    "rows",
]
