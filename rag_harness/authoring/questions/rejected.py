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
    """Return the ids of the rejected questions of ``file``: a review may bring these questions back into it.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    return {row["query_id"] for row in rejected_rows(file.resolve())}


def _draft(row: QueryRow, file: Path) -> Draft:
    try:
        evidence = tuple(Evidence(each["filename"], each["quote"]) for each in row.get("evidence") or ())
        made_of = tuple(str(row["metadata"].get("made_of", "")).split(MADE_OF))
        kind, text, truth = row.get("query_type", "direct"), str(row["query"]), str(row.get("ground_truth", ""))
    except (TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{rejected_file(file)} holds a line that is no rejected question. Mend or remove it."
        ) from error
    return Draft(kind, text, text, truth, "", evidence, made_of)
