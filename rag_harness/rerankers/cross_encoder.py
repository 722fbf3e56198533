"""A cross-encoder by sentence-transformers: query and chunk are read together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_harness.errors import PrerequisiteError, RecordingMissError
from rag_harness.protocols import Parts, Store
from rag_harness.recording.store import key_of
from rag_harness.registry import missing_package, model_name
from rag_harness.types import Hit


class CrossEncoderReranker:
    """Orders candidates by the model's score of each (query, chunk) pair; scores are kept by pair.

    Args:
        model: name on the hub or a folder.
        pairs: store of scores; it belongs to one model and revision.
        refuse: empty, or the reason why the model may not be asked in this mode.
        revision: of the model; see ``revision_of``.
    """

    def __init__(self, model: str, pairs: Store, refuse: str = "", revision: str = "1") -> None:
        self.model, self.revision = model, revision
        self._pairs, self._refuse = pairs, refuse

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        scores = self._scores(query, [hit.chunk.text for hit in hits])
        best = np.argsort(-np.array(scores), kind="stable")
        return [hits[i].reranked(scores[i], rank) for rank, i in enumerate(best, 1)]

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        keys = [key_of(query, text) for text in texts]
        stored = self._pairs.get(keys)
        missing = [i for i, score in enumerate(stored) if score is None]
        if missing:
            if self._refuse:
                raise RecordingMissError(
                    f"No score of {self.model} for {len(missing)} pairs of {query[:60]!r}. {self._refuse}"
                )
            computed = self._loaded.predict([(query, texts[i]) for i in missing], show_progress_bar=False)
            self._pairs.put(
                {keys[i]: np.array([[score]], np.float32) for i, score in zip(missing, computed, strict=True)}
            )
            stored = self._pairs.get(keys)
        return [float(score[0, 0]) for score in stored]

    @cached_property
    def _loaded(self) -> Any:
        # Set before the import: no telemetry, and no tokenizer threads that a fork would break.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise PrerequisiteError(missing_package(f"reranker {self.model!r}", error)) from error
        try:
            return CrossEncoder(self.model, device="cpu", local_files_only=Path(self.model).is_dir())
        except Exception as error:
            # A damaged folder makes transformers, safetensors and torch each raise errors of their own.
            why = next(iter(str(error).splitlines()), type(error).__name__)
            raise PrerequisiteError(
                f"The weights of the cross-encoder {self.model!r} are neither a folder here nor to be had from the "
                f"model hub ({why}). Give the folder of a downloaded model with --rag-rerank-model, or use "
                f"embedded/late-interaction."
            ) from error


def revision_of(model: str) -> str:
    """Return the digest of a folder's weights, which may be trained on under the same name; of a hub model, 1."""
    weights = Path(model) / "model.safetensors"
    if not weights.is_file():
        return "1"
    with weights.open("rb") as stream:
        state = hashlib.sha256()
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()[:12]


def create(parts: Parts) -> CrossEncoderReranker:
    """Return the cross-encoder that the settings name."""
    model = model_name("rerankers", parts.settings.rerank_model)
    revision = revision_of(model)
    refuse = "Record it: --rag-mode=record" if parts.settings.mode == "replay" else ""
    return CrossEncoderReranker(model, parts.stores.open("pairs", model, revision), refuse, revision)
