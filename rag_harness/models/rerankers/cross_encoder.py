"""A cross-encoder of sentence-transformers, which reads query and chunk together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_harness.errors import PrerequisiteError, RecordingMissError
from rag_harness.files.sources import file_sha256
from rag_harness.models.device import there
from rag_harness.models.recording.store import key_of
from rag_harness.models.rerankers.logits import Pair, logits, pair_batches
from rag_harness.protocols import RetrievalParts, Store
from rag_harness.registry import missing_package, model_name
from rag_harness.registry.revisions import REVISIONS
from rag_harness.settings import access_of
from rag_harness.types import Hit
from rag_harness.work.once import IMPORTING


class CrossEncoderReranker:
    """Orders candidates by the model's logit of each (query, chunk) pair. Logits are stored by pair.

    Args:
        model: name on the hub or a folder.
        pairs: store of scores, for one model and revision.
        refuse: the reason why the model may not be called in this mode, or empty.
        revision: revision of the model; see ``revision_of``.
        precision: of weights and computation: ``float32`` or ``bfloat16``.
        device: torch's name of the device.
    """

    def __init__(
        self,
        model: str,
        pairs: Store,
        refuse: str = "",
        revision: str = "1",
        precision: str = "float32",
        device: str = "cpu",
    ) -> None:
        self.model, self.revision = model, revision
        self._pairs, self._refuse, self._precision, self._device = pairs, refuse, precision, device

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return self.rerank_many([(query, hits)])[0]

    def rerank_many(self, requests: Sequence[tuple[str, Sequence[Hit]]]) -> list[list[Hit]]:
        """Rerank the hits of several queries. All pairs are scored together, each once."""
        scores = self._scores(list({(query, hit.chunk.text): None for query, hits in requests for hit in hits}))
        return [_ordered(hits, [scores[query, hit.chunk.text] for hit in hits]) for query, hits in requests]

    def absolute(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Return the model's logit of each hit, in order. Logits can be compared between questions."""
        scores = self._scores(list({(query, hit.chunk.text): None for hit in hits}))
        return [scores[query, hit.chunk.text] for hit in hits]

    def _scores(self, pairs: list[Pair]) -> dict[Pair, float]:
        keys = {pair: key_of(*pair) for pair in pairs}
        missing = [pair for pair, score in zip(pairs, self._pairs.get([*keys.values()]), strict=True) if score is None]
        if missing:
            self._compute(missing, keys)
        stored = self._pairs.get([*keys.values()])
        return {pair: float(score[0, 0]) for pair, score in zip(pairs, stored, strict=True)}

    def _compute(self, missing: list[Pair], keys: dict[Pair, bytes]) -> None:
        if self._refuse:
            raise RecordingMissError(
                f"No score of {self.model} for {len(missing)} pairs of {missing[0][0][:60]!r}. {self._refuse}"
            )
        # Each batch is stored at once, so that a killed run has little to score again.
        for batch in pair_batches(self._loaded, missing):
            scored = logits(self._loaded, batch)
            self._pairs.put({keys[pair]: np.array([[score]], np.float32) for pair, score in scored})

    @cached_property
    def _loaded(self) -> Any:
        with IMPORTING:
            return self._load()

    def _load(self) -> Any:
        # Set before the import: no telemetry, and no tokenizer threads, which a fork would break.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise PrerequisiteError(missing_package(f"reranker {self.model!r}", error)) from error
        device = there(self._device)
        try:
            loaded = CrossEncoder(self.model, device=device, local_files_only=Path(self.model).is_dir())
        except Exception as error:
            # A damaged folder makes transformers, safetensors and torch raise many kinds of errors.
            why = next(iter(str(error).splitlines()), type(error).__name__)
            raise PrerequisiteError(
                f"The weights of the cross-encoder {self.model!r} are neither a folder here nor to be had from the "
                f"model hub ({why}). Give the folder of a downloaded model as rerank_model of the profile, or, "
                f"with an embedder in this process, use embedded/late-interaction."
            ) from error
        return loaded if self._precision == "float32" else loaded.bfloat16()


def _ordered(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    best = np.argsort(-np.array(scores), kind="stable")
    return [hits[i].reranked(scores[i], rank) for rank, i in enumerate(best, 1)]


def revision_of(model: str, precision: str = "float32", device: str = "cpu") -> str:
    """Return what decides a logit besides the model's name: this part, and a folder's weights or 1 for a hub model."""
    weights = Path(model) / "model.safetensors"
    digest = file_sha256(weights)[:12] if weights.is_file() else "1"
    unusual = [each for each in (precision, device) if each not in ("float32", "cpu")]
    return "-".join([digest, REVISIONS["rerankers/cross_encoder"], *unusual])


def create(parts: RetrievalParts) -> CrossEncoderReranker:
    """Return the cross-encoder of the settings."""
    settings = parts.settings
    model = model_name("rerankers", settings.rerank_model)
    revision = revision_of(model, settings.precision, settings.device)
    refuse = access_of(settings).refusal(local=True)
    pairs = parts.stores.open("pairs", model, revision)
    return CrossEncoderReranker(model, pairs, refuse, revision, settings.precision, settings.device)
