"""A question that stands where somebody is to write one: told by its text, so that whoever writes over it is done."""

from __future__ import annotations

from typing import Any

from rag_harness.types import PLACEHOLDER, REVIEWED, Metadata

_BEGINNING = "Replace this by a question"


def placeholder_for(page: str) -> str:
    """Return what stands in the place of a question about a page."""
    return f"{_BEGINNING} that {page} answers"


def labelled(query: str, metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a question, of a placeholder with the labels of one."""
    is_placeholder = query.startswith(_BEGINNING)
    return {**metadata, **({REVIEWED: "no", PLACEHOLDER: "yes"} if is_placeholder else {})}
