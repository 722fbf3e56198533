"""Embeddings of an OpenAI-compatible endpoint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_harness.errors import CriticalError, ModelCallError, PrerequisiteError, RagHarnessError
from rag_harness.files.log import log
from rag_harness.models.chat.failures import key_refused
from rag_harness.protocols import KeyOwner, Parts, Tokenizer
from rag_harness.registry import model_name
from rag_harness.types import Matrix
from rag_harness.work.once import IMPORTING

_BATCH = 100
_MAX_TOKENS = 8191
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_RETRIES = 4
_KEY, _UNAUTHORISED, _TOO_LARGE = "OPENAI_API_KEY", 401, 413
_SIZE = re.compile(r"batch|too (?:many|large|long|big)|maximum|max |at most|exceed|limit|length|size|number of", re.I)
_BYTES_A_TOKEN = 3
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


class ByteTokenizer:
    """Counts a token for each three bytes, for models whose tokenizer nobody here has; no text has many more."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [-(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for text in texts]


class OpenAIEmbedder:
    """``text-embedding-3-small`` and similar models, 100 texts a request, and fewer where a server refuses so many.

    The SDK retries temporary errors (timeouts, 429, 5xx) with exponential backoff and honours Retry-After.
    """

    # The server computes the vectors. Only the model's name and the text are sent, so only they decide a vector.
    revision = "1"
    max_tokens = _MAX_TOKENS

    def __init__(self, model: str, base_url: str, api_key: str, timeout: float = 60.0, client: Any = None) -> None:
        self.model = model
        self._most = _BATCH
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
        # A server of somebody's own model has another tokenizer, and tiktoken would have to be downloaded for it.
        return TiktokenTokenizer() if self.model in _DIMENSIONS else ByteTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        found: list[Matrix] = []
        done = 0
        while done < len(texts):
            batch = texts[done : done + self._most]
            try:
                found.append(self._embed(batch))
            except _TooManyError:
                self._most = max(1, len(batch) // 2)
                log.info("%s takes fewer than %d texts at once: asked for %d", self.model, len(batch), self._most)
                continue
            done += len(batch)
        return np.concatenate(found)

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
            if len(batch) > 1 and _is_too_many(error):
                raise _TooManyError from error
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


class _TooManyError(Exception):
    """The server does not take so many texts, or so much text, in one request."""


def _is_too_many(error: Any) -> bool:
    """Return whether a refusal may be about the size of a request: fewer texts are then asked for."""
    status = getattr(error, "status_code", None)
    return status == _TOO_LARGE or (status in (400, 422) and _SIZE.search(f"{error.message} {error.body}") is not None)


def _retries_of(error: Any) -> int:
    """Return how often the SDK has tried again: the last request says it."""
    said = str(error.request.headers.get("x-stainless-retry-count", ""))
    return int(said) if said.isdecimal() else 0


def create(parts: Parts) -> OpenAIEmbedder:
    """Return the embedder of the settings."""
    settings = parts.settings
    model = model_name("embedders", settings.embed_model)
    return OpenAIEmbedder(model, settings.embed_base_url, settings.openai_api_key, settings.timeout)
