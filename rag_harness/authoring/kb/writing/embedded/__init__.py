"""Pages without a model: planned contents, in sentences and layouts that are drawn for each page."""

from __future__ import annotations

from rag_harness.authoring.kb.writing.embedded.composing import compose

__all__ = ["compose"]
