"""Questions that an embedding model does not read to their end are refused: the rest would be ignored in silence."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.errors import QueryTooLongError
from rag_harness.protocols import Embedder, Tokenizer


def check_queries(texts: Sequence[str], tokenizer: Tokenizer, embedder: Embedder) -> None:
    """Check that ``embedder`` reads each text whole.

    Raises:
        QueryTooLongError: one has too many tokens.
    """
    for text, tokens in zip(texts, tokenizer.count(texts), strict=True):
        if tokens > embedder.max_tokens:
            raise QueryTooLongError(
                f"The query {text[:60]!r}… has {tokens} tokens and {embedder.model} reads {embedder.max_tokens}: the "
                f"rest would be ignored. Shorten the query.",
                tokens,
                embedder.max_tokens,
            )
