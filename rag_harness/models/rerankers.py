"""Rerankers: a cross-encoder of sentence-transformers, and late interaction of token vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.blas import one_thread
from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.core.files import file_sha256
from rag_harness.core.protocols import LexicalScorer, RetrievalParts, Store, TokenEmbedder
from rag_harness.core.registry import REVISIONS, missing_package, model_name
from rag_harness.core.settings import access_of
from rag_harness.core.types import Hit, TokenVectors
from rag_harness.models.array_store import key_of
from rag_harness.models.endpoints import there, token_batches

# Logits of pairs by a loaded cross-encoder.
#
# They are stored under the revision of this code (``core.registry``): raise it where the code gives other scores.

Pair = tuple[str, str]
"""A query and the text of a chunk."""


def pair_batches(model: Any, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs in batches of similar length, longest first."""
    for positions in token_batches(_counts(model, pairs)):
        yield [pairs[position] for position in positions]


def logits(model: Any, batch: list[Pair]) -> Iterator[tuple[Pair, float]]:
    """Yield each pair with its logit.

    No sigmoid is applied, as ``predict`` does for many models. A sigmoid keeps the order, but makes ties far from 0.
    """
    scores = model.predict(batch, batch_size=len(batch), show_progress_bar=False, activation_fn=_as_it_is)
    return zip(batch, map(float, scores), strict=True)


def _counts(model: Any, pairs: Sequence[Pair]) -> list[int]:
    # Not verbose, because the tokenizer would warn about pairs that the model cuts.
    queries, texts = zip(*pairs, strict=True)
    return [len(ids) for ids in model.tokenizer(queries, texts, verbose=False)["input_ids"]]


def _as_it_is(logits: Any) -> Any:
    return logits


class CrossEncoderReranker:
    """Orders candidates by the model's logit of each (query, chunk) pair. Logits are stored by pair.

    Args:
        model: name on the hub or a folder.
        pairs: store of scores of one model and revision.
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
                f"The weights of the cross-encoder {self.model!r} are neither a folder here nor available from the "
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


def create_cross_encoder(parts: RetrievalParts) -> CrossEncoderReranker:
    """Return the cross-encoder of the settings."""
    settings = parts.settings
    model = model_name("rerankers", settings.rerank_model)
    revision = revision_of(model, settings.precision, settings.device)
    refuse = access_of(settings).refusal(local=True)
    pairs = parts.stores.open("pairs", model, revision)
    return CrossEncoderReranker(model, pairs, refuse, revision, settings.precision, settings.device)


DECIMALS = 6
"""Decimal places of every score that is compared, stored or returned. Sums in single precision differ from the seventh
place on, depending on the number of threads and on the batch."""
MaxSims = npt.NDArray[np.float64]


def max_sims(query: TokenVectors, documents: Sequence[TokenVectors]) -> MaxSims:
    """Return the mean over the query's tokens of the best cosine with a token of each document, shape (n,).

    Computed in double precision and rounded to ``DECIMALS``, so that the number of threads does not matter.
    """
    wanted = query.astype(np.float64)
    sims = [(wanted @ tokens.astype(np.float64).T).max(axis=1).mean() for tokens in documents]
    return rounded(sims)


def rounded(values: npt.ArrayLike) -> MaxSims:
    """Return values rounded to ``DECIMALS`` places."""
    exact: MaxSims = np.asarray(values, np.float64)
    return exact.round(DECIMALS) + 0.0  # adding 0.0 turns -0.0 into 0.0


# ``embedded/late-interaction``: token-level matching with the embedding model's own last hidden states.
#
# MaxSim (Khattab & Zaharia, "ColBERT", 2020) is the best cosine of each query token with a token of the chunk, averaged
# over the query. MiniLM was not trained for it, so it is combined with BM25 and the dense score, each as a z-score over
# the candidates. docs/dev/results/validation.md has the measurements.

MODEL = "embedded/late-interaction"

_TOGETHER = 16
"""Queries whose token vectors are in memory at once: about 130 MB for 20 candidates of 512 tokens."""

TokenPair = tuple[str, str]
"""A query and the text of a chunk."""


class LateInteractionReranker:
    """Sum of three z-scores over the candidates: MaxSim, BM25, dense.

    Args:
        tokens: gives the token vectors, from the same forward pass that embedded the chunk.
        lexical: BM25 over all chunks.
        pairs: store of MaxSim scores by (query, chunk). A stored pair needs no token vectors.
        keep: whether to store new MaxSim scores in ``pairs``, for other workers and later runs.
    """

    model = MODEL

    def __init__(self, tokens: TokenEmbedder, lexical: LexicalScorer, pairs: Store, keep: bool = False) -> None:
        self._tokens, self._lexical, self._pairs, self._keep = tokens, lexical, pairs, keep

    @property
    def revision(self) -> str:
        """Revision of how hits are ranked."""
        return REVISIONS["rerankers/late_interaction"]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return self.rerank_many([(query, hits)])[0]

    def rerank_many(self, requests: Sequence[tuple[str, Sequence[Hit]]]) -> list[list[Hit]]:
        """Rerank the hits of several queries. A text in several of them is read or embedded once."""
        reranked: list[list[Hit]] = []
        for start in range(0, len(requests), _TOGETHER):
            some = requests[start : start + _TOGETHER]
            sims = self._max_sims(list({(query, hit.chunk.text): None for query, hits in some for hit in hits}))
            reranked += [self._ordered(query, hits, sims) for query, hits in some]
        return reranked

    def absolute(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Return the MaxSim of each hit, in order. Unlike the sum of z-scores, it can be compared between questions."""
        sims = self._max_sims(list({(query, hit.chunk.text): None for hit in hits}))
        return [sims[query, hit.chunk.text] for hit in hits]

    def _ordered(self, query: str, hits: Sequence[Hit], sims: Mapping[TokenPair, float]) -> list[Hit]:
        if not hits:
            return []
        words = self._lexical.scores(query)
        parts = (
            [sims[query, hit.chunk.text] for hit in hits],
            [words[hit.chunk.chunk_id] for hit in hits],
            [hit.score for hit in hits],
        )
        # Scores that are equal after rounding are ties. The order of the first stage decides them, not the last bit.
        summed = sum((_z_scores(rounded(part)) for part in parts), np.zeros(len(hits)))
        scores = rounded(summed)
        best = np.argsort(-scores, kind="stable")
        return [hits[i].reranked(float(scores[i]), rank) for rank, i in enumerate(best, 1)]

    def _max_sims(self, pairs: Sequence[TokenPair]) -> dict[TokenPair, float]:
        keys = [key_of(*pair) for pair in pairs]
        stored = dict(zip(pairs, self._pairs.get(keys), strict=True))
        computed = self._computed([pair for pair, score in stored.items() if score is None])
        if self._keep:
            of = dict(zip(pairs, keys, strict=True))
            self._pairs.put({of[pair]: np.array([[score]], np.float32) for pair, score in computed.items()})
        return computed | {pair: float(score[0, 0]) for pair, score in stored.items() if score is not None}

    def _computed(self, missing: Sequence[TokenPair]) -> dict[TokenPair, float]:
        texts = self._token_vectors([text for _, text in missing], "document")
        queries = self._token_vectors([query for query, _ in missing], "query")
        with one_thread():
            return {(query, text): float(max_sims(queries[query], [texts[text]])[0]) for query, text in missing}

    def _token_vectors(self, texts: Sequence[str], role: str) -> dict[str, TokenVectors]:
        unique = list(dict.fromkeys(texts))
        return dict(zip(unique, self._tokens.token_vectors(unique, role), strict=True)) if unique else {}


def _z_scores(values: MaxSims) -> MaxSims:
    # The spread alone is not enough: by rounding, the mean of equal values can differ from them, and z-scores become 1.
    if values.max() == values.min():
        return np.zeros_like(values)
    scores: MaxSims = (values - values.mean()) / values.std()
    return scores


def create_late_interaction(parts: RetrievalParts) -> LateInteractionReranker:
    """Return the reranker over the run's embedder and chunks."""
    embedder = parts.token_embedder
    pairs = parts.stores.open(
        "pairs", f"max-sim-{embedder.model}", f"{REVISIONS['rerankers/max_sim']}-{embedder.revision}"
    )
    return LateInteractionReranker(embedder, parts.lexical, pairs, keep=access_of(parts.settings).keeps != "nothing")
