"""Anchors of a page's headings, as GitHub numbers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rag_harness.dataset.validation.page import slug

__all__ = ["numbered", "slug"]


def numbered(headings: Iterable[str]) -> list[str]:
    """Return the anchor of each heading of one page, in order: the second ``Notes`` is ``notes-1``."""
    anchors: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for heading in headings:
        plain = unique = slug(heading)
        # A heading may be called "Notes 1", so the number alone makes no anchor unique.
        while unique in anchors:
            seen[plain] += 1
            unique = f"{plain}-{seen[plain]}"
        anchors[unique] = None
    return list(anchors)
