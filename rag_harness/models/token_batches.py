"""Batches for a local model: texts of similar length together, limited by tokens and not by count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MAX_TOKENS = 2048
"""Tokens of a batch, padding included. From about 5,000 on, activations of MiniLM are over 32 MB, and glibc gets new
memory from the kernel each time. 32 texts of 300 tokens cost 200,000 page faults; in batches of 2,048 tokens, 2,000."""


def token_batches(counts: Sequence[int], max_tokens: int = MAX_TOKENS) -> Iterator[list[int]]:
    """Yield the positions of ``counts`` in batches, longest first.

    Args:
        counts: tokens of each text.
        max_tokens: most tokens of a batch when all texts are padded to the longest. A longer text is a batch of its
            own.
    """
    batch: list[int] = []
    for position in sorted(range(len(counts)), key=lambda each: -counts[each]):
        if batch and (len(batch) + 1) * counts[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch
