"""Encoding of texts as vectors, by a loaded sentence-transformers model.

The digest of this file and its imports is part of an embedder's revision, so vectors made by other code are never
reused. Therefore this file has only code that decides vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.models.embedders.model_windows import windows
from rag_harness.models.token_batches import token_batches
from rag_harness.types import Matrix, Pieces, TokenVectors

_WINDOW = 220
"""Most word pieces that ``pieces`` reads at once."""


def vectors(model: Any, texts: Sequence[str], counts: Sequence[int], dimension: int) -> Matrix:
    """Return unit-length vectors of shape (n, dimension); ``counts`` are the tokens of each text."""
    found = np.empty((len(texts), dimension), np.float32)
    for positions, batch in _batches(texts, counts):
        encoded = model.encode(batch, batch_size=len(batch), show_progress_bar=False)
        found[positions] = _unit(encoded.astype(np.float32))
    return found


def vectors_with_tokens(
    model: Any, texts: Sequence[str], counts: Sequence[int], dimension: int
) -> tuple[Matrix, list[TokenVectors]]:
    """Return the vectors, and the token vectors of each text (tokens, dimension), from one forward pass."""
    found, tokens = np.empty((len(texts), dimension), np.float32), dict[int, TokenVectors]()
    for positions, batch in _batches(texts, counts):
        rows = model.encode(batch, batch_size=len(batch), output_value=None, show_progress_bar=False)
        found[positions] = _unit(np.stack([row["sentence_embedding"].float().cpu().numpy() for row in rows]))
        tokens |= zip(positions, map(_token_vectors, rows), strict=True)
    return found, [tokens[position] for position in range(len(texts))]


def pieces(
    model: Any,
    found: tuple[Sequence[int], Sequence[tuple[int, int]]],
    borders: Sequence[int],
    longest: int,
    frame: tuple[int, int],
    dimension: int,
) -> Pieces:
    """Return the word pieces of a text of any length, each with its last hidden state.

    Each window is computed alone. In a batch, the other windows would change the last digits.

    Args:
        model: the model.
        found: the id of each piece, and its start and end in the text.
        borders: places in the text where a window may begin.
        longest: most pieces that the model reads at once.
        frame: ids of the special tokens before and after a window.
        dimension: length of a vector.
    """
    ids, spans = found
    cuts = windows([start for start, _ in spans], borders, min(_WINDOW, longest))
    read = [_hidden(model, [ids[place] for place in cut], frame) for cut in cuts]
    states = np.concatenate([np.empty((0, dimension), np.float32), *read])
    return Pieces(np.array(ids, np.int64), np.array(spans, np.int64).reshape(-1, 2), states)


def _batches(texts: Sequence[str], counts: Sequence[int]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield batches of texts with their positions."""
    for positions in token_batches(counts):
        yield positions, [texts[position] for position in positions]


def _hidden(model: Any, ids: list[int], frame: tuple[int, int]) -> Matrix:
    import torch

    framed = torch.tensor([[frame[0], *ids, frame[1]]], device=model.device)
    with torch.inference_mode():
        said = model[0].auto_model(input_ids=framed, attention_mask=torch.ones_like(framed))
    states: Matrix = said.last_hidden_state[0, 1:-1].float().cpu().numpy()
    return states


def _token_vectors(row: dict[str, Any]) -> TokenVectors:
    kept = row["attention_mask"].bool()
    return _unit(row["token_embeddings"][kept].float().cpu().numpy()).astype(np.float16)


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return unit
