"""Questions for any documents, with ground truth and evidence, made without a model from facts in the text.

Collection(documents, planned)   documents, searchable by words, with the facts that a plan states about them
planned_facts(folder)            the facts of ``structure.json``
ask(collection, wanted, seed)    drafts that pass the filters, and counts of the dropped ones
rejected_beside(file)            questions that a person rejected, for ``ask`` to leave out
rejected_ids(file)               ids that new rows must not use again
rows(drafts, collection)         rows of ``queries.jsonl``; ``lines`` writes them
"""

from __future__ import annotations

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.planned import planned_facts
from rag_harness.authoring.questions.query_rows import EMBEDDED, json_lines, rows
from rag_harness.authoring.questions.question_making import QUESTION_KINDS, GeneratedQuestions, make_questions
from rag_harness.authoring.questions.rejected import rejected_beside, rejected_ids

__all__ = [
    "EMBEDDED",
    "QUESTION_KINDS",
    "DocumentCollection",
    "Draft",
    "GeneratedQuestions",
    "json_lines",
    "make_questions",
    "planned_facts",
    "rejected_beside",
    "rejected_ids",
    "rows",
]
