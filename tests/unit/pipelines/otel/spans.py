"""Spans as tests write them: ids are short names, times are milliseconds."""

from __future__ import annotations

import json
from typing import Any

from rag_harness.pipelines.otel.spans import SpanRecord

_MS = 1_000_000


def span(key: str, parent: str = "", at: tuple[int, int] = (0, 1), name: str = "", **attributes: Any) -> SpanRecord:
    """Return a span. Attributes' names have ``__`` in the place of dots."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return SpanRecord(name or key, "t", key, parent, at[0] * _MS, at[1] * _MS, named)


def search(
    key: str, found: dict[str, str], parent: str = "", at: tuple[int, int] = (0, 1), query: str = "", **more: Any
) -> SpanRecord:
    """Return the span of a search that found texts by their ids, best first, as OpenInference has it."""
    documents: dict[str, Any] = {"output__value": "[]"} if not found else {}
    for n, (doc_id, text) in enumerate(found.items()):
        documents[f"retrieval__documents__{n}__document__id"] = doc_id
        documents[f"retrieval__documents__{n}__document__content"] = text
        documents[f"retrieval__documents__{n}__document__score"] = 1 / (n + 1)
    kind = {"openinference__span__kind": "RETRIEVER", "input__value": query}
    return span(key, parent, at, **kind, **documents, **more)


def reranker(key: str, kept: dict[str, str], parent: str = "", at: tuple[int, int] = (0, 1)) -> SpanRecord:
    """Return the span of a reranker that kept texts by their ids, best first."""
    documents: dict[str, Any] = {}
    for n, (doc_id, text) in enumerate(kept.items()):
        documents[f"reranker__output_documents__{n}__document__id"] = doc_id
        documents[f"reranker__output_documents__{n}__document__content"] = text
        documents[f"reranker__output_documents__{n}__document__score"] = 10.0 - n
    return span(key, parent, at, openinference__span__kind="RERANKER", **documents)


def model(
    key: str, prompt: str = "", reply: str = "", parent: str = "", at: tuple[int, int] = (0, 1), **more: Any
) -> SpanRecord:
    """Return the span of a model's call with a prompt of one message."""
    sides = {
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": prompt,
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": reply,
    }
    return span(key, parent, at, openinference__span__kind="LLM", llm__model_name="m", **sides, **more)


def genai(key: str, operation: str, parent: str = "", at: tuple[int, int] = (0, 1), **more: Any) -> SpanRecord:
    """Return a span by OpenTelemetry's convention. Lists and objects are written as JSON texts."""
    told = {name: json.dumps(value) if isinstance(value, (list, dict)) else value for name, value in more.items()}
    return span(key, parent, at, gen_ai__operation__name=operation, **told)
