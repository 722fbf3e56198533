"""Questions that a person has rejected, so that they are not shown for review again."""

from __future__ import annotations

from pathlib import Path

from rag_harness.authoring.questions.draft import MADE_OF, Draft
from rag_harness.authoring.questions.review.file import rejected_file, rejected_rows
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.errors import DataError
from rag_harness.types import Evidence

QUERIES_FILE = "queries.jsonl"


def rejected_beside(file: Path) -> list[Draft]:
    """Return the rejected questions of ``file``, and of ``queries.jsonl`` beside it: ``file`` may only add to those.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    place = file.resolve()
    files = dict.fromkeys((place, place.with_name(QUERIES_FILE)))
    return [_draft(row, each) for each in files for row in rejected_rows(each)]


def rejected_ids(file: Path) -> set[str]:
    """Return the ids of the rejected questions of ``file``, and of their conversations: a review may bring them back.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    rows = rejected_rows(file.resolve())
    return {row["query_id"] for row in rows} | {row["conversation"] for row in rows if "conversation" in row}


def _draft(row: QueryRow, file: Path) -> Draft:
    try:
        evidence = tuple(Evidence(each["filename"], each["quote"]) for each in row.get("evidence") or ())
        made_of = tuple(str(row["metadata"].get("made_of", "")).split(MADE_OF))
        kind, truth = row.get("query_type", "direct"), str(row.get("ground_truth", ""))
        # "And the price?" says nothing: of a turn the question that stands alone is not asked again.
        text = str(row["query"] if row.get("turn", 1) == 1 else row.get("standalone", ""))
    except (TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{rejected_file(file)} holds a line that is no rejected question. Mend or remove it."
        ) from error
    return Draft(kind, text, text, truth, "", evidence, made_of)
