"""Embeddings by an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_harness.errors import CriticalError, ModelCallError
from rag_harness.protocols import Parts, Tokenizer
from rag_harness.types import Matrix

_BATCH = 100
_MAX_TOKENS = 8191
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_RETRIES = 4


class TiktokenTokenizer:
    """Counts in cl100k_base, the encoding of OpenAI's embedding models."""

    @cached_property
    def _encoding(self) -> Any:
        import tiktoken

        return tiktoken.get_encoding("cl100k_base")

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self._encoding.encode_ordinary(text)) for text in texts]


class OpenAIEmbedder:
    """``text-embedding-3-small`` and its like, 100 texts a request.

    The SDK retries what can pass (timeouts, 429, 5xx) with exponential backoff and honours Retry-After.
    """

    revision = "1"
    max_tokens = _MAX_TOKENS

    def __init__(self, model: str, base_url: str, api_key: str, timeout: float = 60.0, client: Any = None) -> None:
        self.model = model
        self._connection: dict[str, Any] = {"base_url": base_url or None, "api_key": api_key, "timeout": timeout}
        if client is not None:
            self._client = client

    @property
    def dimension(self) -> int:
        return _DIMENSIONS.get(self.model, 0)

    def tokenizer(self) -> Tokenizer:
        return TiktokenTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate([self._embed(batch) for batch in batches])

    embed_queries = embed_documents

    def _embed(self, batch: Sequence[str]) -> Matrix:
        from openai import APIError, AuthenticationError, NotFoundError, PermissionDeniedError

        try:
            data = self._client.embeddings.create(model=self.model, input=list(batch), encoding_format="float").data
        except (AuthenticationError, PermissionDeniedError, NotFoundError) as error:
            raise CriticalError(f"The embedding endpoint refused {self.model!r}: {error}") from error
        except APIError as error:
            raise ModelCallError(f"Embedding {len(batch)} texts with {self.model!r} failed: {error}") from error
        rows = np.array([each.embedding for each in sorted(data, key=lambda each: each.index)], dtype=np.float32)
        if len(rows) != len(batch) or not np.isfinite(rows).all():
            raise ModelCallError(
                f"{self.model!r} returned {len(rows)} vectors for {len(batch)} texts, or not finite ones."
            )
        unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    @cached_property
    def _client(self) -> Any:
        from openai import OpenAI

        return OpenAI(max_retries=_RETRIES, **self._connection)


def create(parts: Parts) -> OpenAIEmbedder:
    """Return the embedder that the settings name."""
    settings = parts.settings
    return OpenAIEmbedder(settings.embed_model, settings.embed_base_url, settings.openai_api_key, settings.timeout)
