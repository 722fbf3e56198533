"""Why a question may not be accepted, in words that say what to do."""

from __future__ import annotations

from pydantic import ValidationError

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.dataset.placeholder import is_placeholder
from rag_harness.dataset.queries import QueryLine
from rag_harness.types import NEGATIVE

UNLABELLED = "unlabelled"
"""The kind of a user's question that nobody has labelled yet."""

_ANSWERED = "It is negative, and names evidence or pages that answer it. Remove them, or mend the kind."


def malformed(row: QueryRow) -> list[str]:
    """Return what prevents a row from being read as a question. No file may contain such a row."""
    try:
        QueryLine.model_validate(row)
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc'])) or 'row'}: {each['msg']}" for each in error.errors()]
    return []


def against_its_kind(line: QueryLine) -> list[str]:
    """Return the parts of a question that do not fit its kind."""
    if is_placeholder(line.query):
        return ["It is a placeholder. Write a question in its place."]
    if line.query_type == UNLABELLED:
        return ["Its kind is not said: direct, multi_hop or negative."]
    pages = dict.fromkeys(line.context_reference)
    if line.query_type == NEGATIVE:
        return [_ANSWERED] if line.evidence or pages else []
    beside = dict.fromkeys(each.filename for each in line.evidence if pages and each.filename not in pages)
    lacks_pages = line.query_type == "multi_hop" and len(pages) < 2
    return [
        *(["It has no answer. Write one, or reject it."] if not line.ground_truth.strip() else []),
        *(f"It quotes {name!r}, which its pages do not name. Add it there." for name in beside),
        *(["It is multi_hop, and names one page. Name all it needs."] if lacks_pages else []),
    ]


def not_there(filename: str, quote: str, text: str) -> str:
    """Return how a quote that is not in a text differs from it."""
    if squeeze(quote) in squeeze(text):
        return f"A quote stands in {filename} with other white space. Edit it: copy the words as they stand there."
    return f"A quote is not in {filename} word for word. Edit it: copy the words of the page; or reject the question."
