"""The evidence of a case as the chunks of a row would say it."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.results.row import ExperimentResult
from rag_harness.types import UNMARKED, Case


def as_shown(case: Case, row: ExperimentResult) -> Case:
    """Return ``case`` with the marks taken off its quotes where they were taken off the chunks of ``row``.

    A quote is of the page as it is written: "**30 days**" stands in no chunk that has lost its marks. Of all other
    rows the case is the same.
    """
    if not any(chunk.metadata.markup == UNMARKED for chunk in row.retrieved_chunks):
        return case
    from rag_harness.retrieval.chunking.unmarked import unmarked  # the parser is for these rows alone

    return replace(case, evidence=tuple(replace(one, quote=unmarked(one.quote)) for one in case.evidence))
