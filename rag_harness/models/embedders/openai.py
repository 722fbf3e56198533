"""Embeddings of an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_harness.errors import CriticalError, ModelCallError, PrerequisiteError, RagHarnessError
from rag_harness.models.chat.failures import key_refused
from rag_harness.protocols import KeyOwner, Parts, Tokenizer
from rag_harness.registry import model_name
from rag_harness.types import Matrix
from rag_harness.work.once import IMPORTING

_BATCH = 100
_MAX_TOKENS = 8191
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_RETRIES = 4
_KEY, _UNAUTHORISED = "OPENAI_API_KEY", 401
_HALTING = {401, 402, 403, 404}
_NO_KEY = "none"
"""Is sent where there is no key: the SDK makes no client without one, and a server without keys does not look at it."""


class TiktokenTokenizer:
    """Counts in cl100k_base, the encoding of OpenAI's embedding models."""

    @cached_property
    def _encoding(self) -> Any:
        import tiktoken

        try:
            return tiktoken.get_encoding("cl100k_base")
        except OSError as error:
            raise PrerequisiteError(
                f"tiktoken cannot download the encoding cl100k_base, OpenAI's count of tokens ({error}). "
                f"Run once with a network, or set TIKTOKEN_CACHE_DIR to a folder that holds it."
            ) from error

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self._encoding.encode_ordinary(text)) for text in texts]


class OpenAIEmbedder:
    """``text-embedding-3-small`` and similar models, 100 texts a request.

    The SDK retries temporary errors (timeouts, 429, 5xx) with exponential backoff and honours Retry-After.
    """

    # The server computes the vectors. Only the model's name and the text are sent, so only they decide a vector.
    revision = "1"
    max_tokens = _MAX_TOKENS

    def __init__(self, model: str, base_url: str, api_key: str, timeout: float = 60.0, client: Any = None) -> None:
        self.model = model
        self._connection: dict[str, Any] = {
            "base_url": base_url or None,
            "api_key": api_key or _NO_KEY,
            "timeout": timeout,
        }
        if client is not None:
            self._client = client

    @property
    def dimension(self) -> int:
        return _DIMENSIONS.get(self.model, 0)

    def tokenizer(self) -> Tokenizer:
        return TiktokenTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate([self._embed(batch) for batch in batches])

    embed_queries = embed_documents

    def _embed(self, batch: Sequence[str]) -> Matrix:
        from openai import APIError

        try:
            said = self._client.embeddings.create(model=self.model, input=list(batch), encoding_format="float")
            return self._unit(said.data or (), len(batch))
        except APIError as error:
            if isinstance(error.__cause__, RagHarnessError):
                raise error.__cause__ from None  # a reply over the limit: the SDK has wrapped it as a broken connection
            self._hide_key(error)
            if (status := getattr(error, "status_code", None)) == _UNAUTHORISED:
                owner = KeyOwner("embed", _KEY, self._client.api_key != _NO_KEY)
                raise CriticalError(key_refused(str(self._client.base_url), owner)) from error
            if status in _HALTING:
                raise CriticalError(f"The embedding endpoint refused {self.model!r}: {error}") from error
            failed = ModelCallError(f"Embedding {len(batch)} texts with {self.model!r} failed: {error}")
            failed.retries = _retries_of(error)
            raise failed from error
        except (ValueError, TypeError, AttributeError) as error:
            # The SDK accepts replies of a wrong form, such as an error with status 200.
            raise ModelCallError(f"{self.model!r} sent no embeddings for {len(batch)} texts: {error}") from error

    def _unit(self, data: Sequence[Any], wanted: int) -> Matrix:
        by_index = {each.index: each.embedding for each in data}
        if sorted(by_index) != list(range(wanted)) or len(data) != wanted:
            raise ModelCallError(f"{self.model!r} returned {len(data)} vectors for {wanted} texts.")
        rows = np.array([by_index[i] for i in range(wanted)], dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(rows).all() or not lengths.all():
            raise ModelCallError(f"{self.model!r} returned a vector of zeros, or one with numbers that are not finite.")
        unit: Matrix = rows / lengths
        return unit

    def _hide_key(self, error: Any) -> None:
        """Remove the key from a server's message. Messages and tracebacks go into rows and logs."""
        key = self._client.api_key
        if key and key != _NO_KEY:
            error.message = error.message.replace(key, "…")
            error.args = (str(error).replace(key, "…"),)

    @cached_property
    def _client(self) -> Any:
        with IMPORTING:
            from openai import DefaultHttpxClient, OpenAI

            from rag_harness.models.reply_bounds import bounds

        http = DefaultHttpxClient(**bounds(self.model, self._connection["timeout"]))
        return OpenAI(max_retries=_RETRIES, http_client=http, **self._connection)


def _retries_of(error: Any) -> int:
    """Return how often the SDK has tried again: the last request says it."""
    said = str(error.request.headers.get("x-stainless-retry-count", ""))
    return int(said) if said.isdecimal() else 0


def create(parts: Parts) -> OpenAIEmbedder:
    """Return the embedder of the settings."""
    settings = parts.settings
    model = model_name("embedders", settings.embed_model)
    return OpenAIEmbedder(model, settings.embed_base_url, settings.openai_api_key, settings.timeout)
