"""``embedded/late-interaction``: token-level matching with the embedding model's own last hidden states.

MaxSim (Khattab & Zaharia, "ColBERT", 2020) is the best cosine of each query token with a token of the chunk, averaged
over the query. MiniLM was not trained for it, so it is combined with BM25 and the dense score, each as a z-score over
the candidates. docs/dev/results/validation.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_harness.models.recording.store import key_of
from rag_harness.models.rerankers.max_sim import MaxSims, max_sims, rounded
from rag_harness.protocols import LexicalScorer, RetrievalParts, Store, TokenEmbedder
from rag_harness.registry.revisions import REVISIONS
from rag_harness.settings import access_of
from rag_harness.types import Hit, TokenVectors

MODEL = "embedded/late-interaction"

_TOGETHER = 16
"""Queries whose token vectors are in memory at once: about 130 MB for 20 candidates of 512 tokens."""

Pair = tuple[str, str]
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

    def _ordered(self, query: str, hits: Sequence[Hit], sims: Mapping[Pair, float]) -> list[Hit]:
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

    def _max_sims(self, pairs: Sequence[Pair]) -> dict[Pair, float]:
        keys = [key_of(*pair) for pair in pairs]
        stored = dict(zip(pairs, self._pairs.get(keys), strict=True))
        computed = self._computed([pair for pair, score in stored.items() if score is None])
        if self._keep:
            of = dict(zip(pairs, keys, strict=True))
            self._pairs.put({of[pair]: np.array([[score]], np.float32) for pair, score in computed.items()})
        return computed | {pair: float(score[0, 0]) for pair, score in stored.items() if score is not None}

    def _computed(self, missing: Sequence[Pair]) -> dict[Pair, float]:
        texts = self._token_vectors([text for _, text in missing], "document")
        queries = self._token_vectors([query for query, _ in missing], "query")
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


def create(parts: RetrievalParts) -> LateInteractionReranker:
    """Return the reranker over the run's embedder and chunks."""
    embedder = parts.token_embedder
    pairs = parts.stores.open(
        "pairs", f"max-sim-{embedder.model}", f"{REVISIONS['rerankers/max_sim']}-{embedder.revision}"
    )
    return LateInteractionReranker(embedder, parts.lexical, pairs, keep=access_of(parts.settings).keeps != "nothing")
