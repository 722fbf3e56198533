"""Embeddings of a local model in ONNX Runtime, without torch: ``--rag-embed-backend=onnx`` and ``onnx-int8``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from rag_harness.errors import PrerequisiteError, SettingsError
from rag_harness.models.embedders import onnx_encoding
from rag_harness.models.embedders.onnx_weights import (
    INT8_SHA256,
    INT8_SHAPE,
    TOKENIZER_FOLDER,
    folder_weights,
    int8_file,
    int8_weights,
    shape_of,
)
from rag_harness.models.embedders.sentence_transformers import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_MODEL,
    SentenceTransformersEmbedder,
)
from rag_harness.protocols import Parts
from rag_harness.registry import missing_package, model_name
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Matrix, Pieces, TokenVectors
from rag_harness.work.once import IMPORTING

OnnxBackend = Literal["onnx", "onnx-int8"]


class OnnxEmbedder(SentenceTransformersEmbedder):
    """A BERT of sentence-transformers, computed by ONNX Runtime. It is loaded for the first text.

    The default model's eight-bit weights are those of a package of their own, wherever it runs, so that what one
    machine recorded is found on another. Of other models, and of ``onnx``, they are made of ``model.safetensors``.

    Args:
        model: name on the hub or a folder.
        max_tokens: longest input.
        backend: ``onnx`` computes as torch does; ``onnx-int8`` computes products with eight bits.
    """

    def __init__(
        self, model: str = DEFAULT_MODEL, max_tokens: int = DEFAULT_MAX_TOKENS, backend: OnnxBackend = "onnx-int8"
    ) -> None:
        super().__init__(model, max_tokens)
        self._backend = backend

    @property
    def revision(self) -> str:
        plain = super().revision.partition("-")[0]
        weights = INT8_SHA256[: len(plain)] if self._is_packaged else plain
        return f"{weights}-{REVISIONS['embedders/onnx']}-{self.max_tokens}-{self._backend}"

    @property
    def dimension(self) -> int:
        return 384 if self.model == DEFAULT_MODEL else self._bert.states(self._tokenizer.framed()).shape[1]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return onnx_encoding.vectors(self._bert, self._ids(texts)) if texts else self._no_vectors

    def embed_with_tokens(
        self,
        texts: Sequence[str],
        role: str,  # noqa: ARG002 - queries and documents are read alike
    ) -> tuple[Matrix, list[TokenVectors]]:
        return onnx_encoding.vectors_with_tokens(self._bert, self._ids(texts)) if texts else (self._no_vectors, [])

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        found, longest = self._tokenizer.pieces(text), self.max_tokens - 2
        return onnx_encoding.pieces(self._bert, found, borders, longest, self._tokenizer.framed(), self.dimension)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text. Of a longer one the first are read, and the last closes it."""
        first, last = self._tokenizer.framed()
        return [[first, *self._tokenizer.pieces(text)[0][: self.max_tokens - 2], last] for text in texts]

    @property
    def _is_packaged(self) -> bool:
        return self.model == DEFAULT_MODEL and self._backend == "onnx-int8"

    @cached_property
    def _folder(self) -> Path:
        # Its package brings torch. The tokenizer is here, too.
        return TOKENIZER_FOLDER if self._is_packaged else super()._folder

    @cached_property
    def _bert(self) -> onnx_encoding.OnnxBert:
        with IMPORTING:
            try:
                return self._loaded_bert()
            except ImportError as error:
                raise PrerequisiteError(missing_package(f"embed backend {self._backend!r}", error)) from error
            except KeyError as error:
                raise PrerequisiteError(
                    f"The model {self.model!r} has no weight {error}, which a BERT has. Use --rag-embed-backend=torch."
                ) from error

    def _loaded_bert(self) -> onnx_encoding.OnnxBert:
        if self._is_packaged:
            return onnx_encoding.OnnxBert(int8_weights(int8_file()), INT8_SHAPE, int8=True)
        folder = self._folder
        weights = folder_weights(folder / "model.safetensors")
        return onnx_encoding.OnnxBert(weights, shape_of(folder), self._backend == "onnx-int8")


def create(parts: Parts) -> OnnxEmbedder:
    """Return the embedder of the settings.

    Raises:
        SettingsError: an option asks for what only torch has.
    """
    settings = parts.settings
    for option, value, usual in (
        ("device", settings.device, "cpu"),
        ("precision", settings.precision, "float32"),
    ):
        if value != usual:
            raise SettingsError(
                f"{option}={value} is for torch, and --rag-embed-backend={settings.embed_backend} computes on "
                f"the CPU in its own precision. Leave one of the two out."
            )
    backend: OnnxBackend = "onnx-int8" if settings.embed_backend == "onnx-int8" else "onnx"
    name = model_name("embedders", settings.embed_model)
    return OnnxEmbedder(name, settings.embed_max_tokens or DEFAULT_MAX_TOKENS, backend)
