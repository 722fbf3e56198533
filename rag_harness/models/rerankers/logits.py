"""Logits of pairs by a loaded cross-encoder.

They are stored under the digest of this file, so this file has only code that decides scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rag_harness.models.token_batches import token_batches

Pair = tuple[str, str]
"""A query and the text of a chunk."""


def pair_batches(model: Any, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs in batches of similar length, longest first."""
    for positions in token_batches(_counts(model, pairs)):
        yield [pairs[position] for position in positions]


def logits(model: Any, batch: list[Pair]) -> Iterator[tuple[Pair, float]]:
    """Yield each pair with its logit.

    There is no sigmoid, as ``predict`` has for many models. It keeps the order, but makes ties far from 0.
    """
    scores = model.predict(batch, batch_size=len(batch), show_progress_bar=False, activation_fn=_as_it_is)
    return zip(batch, map(float, scores), strict=True)


def _counts(model: Any, pairs: Sequence[Pair]) -> list[int]:
    # Not verbose, because the tokenizer would warn about pairs that the model cuts.
    queries, texts = zip(*pairs, strict=True)
    return [len(ids) for ids in model.tokenizer(queries, texts, verbose=False)["input_ids"]]


def _as_it_is(logits: Any) -> Any:
    return logits
