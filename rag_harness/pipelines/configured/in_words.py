"""A configuration in words: ``hybrid, 256 tokens, rerank 20 -> 4``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

_Say = Callable[[Mapping[str, Any]], str]
_SAID: Mapping[str, _Say] = {
    "retriever": lambda values: str(values["retriever"]),
    "dense_weight": lambda values: f"vectors weigh {values['dense_weight']:g}",
    "chunker": lambda values: str(values["chunker"]),
    "chunk_size": lambda values: f"{values['chunk_size']} tokens",
    "chunk_overlap": lambda values: f"overlap {values['chunk_overlap']}",
}
_CUT = ("rerank", "candidates", "top_k")


def in_words(values: Mapping[str, Any], varied: Collection[str]) -> str:
    """Return the values of the parameters that are varied, in the order in which a pipeline uses them."""
    said = [say(values) for name, say in _SAID.items() if name in varied and name in values]
    if any(name in varied for name in _CUT):
        said.append(_cut(values))
    known = (*_SAID, *_CUT)
    return ", ".join([*said, *(f"{name} {values[name]}" for name in varied if name not in known and name in values)])


def _cut(values: Mapping[str, Any]) -> str:
    if values.get("rerank", False) and "candidates" in values:
        return f"rerank {values['candidates']} -> {values['top_k']}"
    return f"top {values['top_k']}"
