"""Logits of pairs by a cross-encoder that is loaded; they are kept under the digest of this file.

So nothing stands here that decides no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rag_harness.models.token_batches import token_batches

Pair = tuple[str, str]
"""Query and text of a chunk."""


def batches(model: Any, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs in batches of like length, longest first."""
    for positions in token_batches(_counts(model, pairs)):
        yield [pairs[position] for position in positions]


def logits(model: Any, batch: list[Pair]) -> Iterator[tuple[Pair, float]]:
    """Yield each pair with its logit.

    No sigmoid, which ``predict`` has for many models: it orders alike, and makes ties of what is far from 0.
    """
    scores = model.predict(batch, batch_size=len(batch), show_progress_bar=False, activation_fn=_as_it_is)
    return zip(batch, map(float, scores), strict=True)


def _counts(model: Any, pairs: Sequence[Pair]) -> list[int]:
    # Not verbose: the tokenizer would warn of pairs that the model cuts.
    queries, texts = zip(*pairs, strict=True)
    return [len(ids) for ids in model.tokenizer(queries, texts, verbose=False)["input_ids"]]


def _as_it_is(logits: Any) -> Any:
    return logits
