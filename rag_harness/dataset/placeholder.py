"""Placeholders for questions that a person has to write. The text marks a placeholder, so editing it is enough."""

from __future__ import annotations

from typing import Any

from rag_harness.types import PLACEHOLDER, REVIEWED, Metadata

_BEGINNING = "Replace this by a question"


def placeholder_for(page: str) -> str:
    """Return the placeholder for a question about a page."""
    return f"{_BEGINNING} that {page} answers"


def is_placeholder(query: str) -> bool:
    """Return whether a question is a placeholder."""
    return query.startswith(_BEGINNING)


def labelled(query: str, metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a question. Those of a placeholder get the labels of one."""
    return {**metadata, **({REVIEWED: "no", PLACEHOLDER: "yes"} if is_placeholder(query) else {})}
