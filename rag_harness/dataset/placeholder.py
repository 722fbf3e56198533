"""A question that stands where somebody is to write one: told by its text, so that whoever writes over it is done."""

from __future__ import annotations

from typing import Any

from rag_harness.types import PLACEHOLDER, REVIEWED, Metadata

_BEGINNING = "Replace this by a question"


def placeholder_for(page: str) -> str:
    """Return what stands in the place of a question about a page."""
    return f"{_BEGINNING} that {page} answers"


def is_placeholder(query: str) -> bool:
    """Whether a question is one that somebody is to write over."""
    return query.startswith(_BEGINNING)


def labelled(query: str, metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a question, of a placeholder with the labels of one."""
    return {**metadata, **({REVIEWED: "no", PLACEHOLDER: "yes"} if is_placeholder(query) else {})}
