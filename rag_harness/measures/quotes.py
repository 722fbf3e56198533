"""The evidence quotes of a case, in the form of a row's chunks."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.results.row import ExperimentResult
from rag_harness.types import UNMARKED, Case


def as_shown(case: Case, row: ExperimentResult) -> Case:
    """Return ``case`` with quotes without Markdown marks, where the chunks of ``row`` have none.

    A quote is taken from the page as it is written: "**30 days**" is in no chunk that has lost its marks. For all other
    rows the case is returned unchanged.
    """
    if not any(chunk.metadata.markup == UNMARKED for chunk in row.retrieved_chunks):
        return case
    from rag_harness.retrieval.chunking.unmarked import unmarked  # imported here: only these rows need the parser

    return replace(case, evidence=tuple(replace(one, quote=unmarked(one.quote)) for one in case.evidence))
