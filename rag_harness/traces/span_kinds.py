"""What a span says that it is, by OpenInference's convention or by OpenTelemetry's for generative AI.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from rag_harness.traces.span_record import SpanRecord

SpanKind: TypeAlias = Literal["", "retriever", "reranker", "llm", "embedding", "tool", "guardrail", "prompt", "other"]
"""Empty: the span follows neither convention. ``other``: it does, and is no step of its own (a chain, an agent)."""

_OPENINFERENCE: Mapping[str, SpanKind] = {
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "LLM": "llm",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
    "GUARDRAIL": "guardrail",
    "PROMPT": "prompt",
}
_GENAI: Mapping[str, SpanKind] = {
    "retrieval": "retriever",
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "embeddings": "embedding",
    "execute_tool": "tool",
}
_RERANKS = ("rerank", "reranking")
"""The convention has no such operation; some instrumentations name theirs so."""
TELLS_WORK: frozenset[SpanKind] = frozenset({"retriever", "reranker", "llm", "tool"})
"""Kinds of spans without which a row would be another."""


def kind_of(span: SpanRecord) -> SpanKind:
    """Return what a span says that it is."""
    return kind_in(span.attributes)


def kind_in(attributes: Mapping[str, Any]) -> SpanKind:
    """Return what a span with these attributes says that it is."""
    said = attributes.get("openinference.span.kind")
    if isinstance(said, str) and said:
        return _OPENINFERENCE.get(said.upper(), "other")
    operation = str(attributes.get("gen_ai.operation.name", "")).lower()
    if operation:
        return "reranker" if operation in _RERANKS else _GENAI.get(operation, "other")
    if "gen_ai.retrieval.documents" in attributes:
        return "retriever"
    # Before 1.28 a span of a model had no operation.
    has_model = "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes
    return "llm" if has_model and ("gen_ai.system" in attributes or "gen_ai.provider.name" in attributes) else ""
