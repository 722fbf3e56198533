"""Encoding of texts as vectors, by a BERT in ONNX Runtime.

The digest of this file and its imports is part of the revision of such embedders, so vectors made by other code are
never reused. Each text is computed alone: eight-bit products round what flows into them by its largest value, so in a
batch a text's vector would depend on the others. Chunks of 280 tokens take half as long again in batches of 2,048.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rag_harness.models.embedders.model_windows import windows
from rag_harness.models.embedders.onnx_graph import BertShape, bert_graph
from rag_harness.types import Matrix, Pieces, TokenVectors, Vector
from rag_harness.work.processors import usable_processors

_WINDOW = 220
"""Most word pieces that ``pieces`` reads at once."""


class OnnxBert:
    """A BERT encoder in ONNX Runtime.

    Args:
        weights: arrays by BERT's names.
        shape: of the model.
        int8: whether products are computed with eight bits.

    Raises:
        KeyError: a weight is missing.
    """

    def __init__(self, weights: Any, shape: BertShape, int8: bool) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # Each core has a text of its own, so no product is shared among threads, and none of them waits for another.
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        graph = bert_graph(weights, shape, int8)
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def states(self, ids: Sequence[int]) -> Matrix:
        """Return the last hidden states of a text of tokens ``ids``, shape (tokens, d)."""
        read = {"input_ids": np.array([ids], np.int32), "attention_mask": np.ones((1, len(ids)), np.int32)}
        found: Matrix = self._session.run(["last_hidden_state"], read)[0][0]
        return found


def vectors(model: OnnxBert, texts: Sequence[Sequence[int]]) -> Matrix:
    """Return unit-length vectors of shape (n, d) of texts, each given by the ids of its tokens."""
    return np.stack(_on_all_cores(lambda ids: _mean(model.states(ids)), texts))


def vectors_with_tokens(model: OnnxBert, texts: Sequence[Sequence[int]]) -> tuple[Matrix, list[TokenVectors]]:
    """Return the vectors, and the token vectors of each text (tokens, d), from one forward pass."""

    def both(ids: Sequence[int]) -> tuple[Vector, TokenVectors]:
        states = model.states(ids)
        return _mean(states), _unit(states).astype(np.float16)

    found = _on_all_cores(both, texts)
    return np.stack([vector for vector, _ in found]), [tokens for _, tokens in found]


def pieces(
    model: OnnxBert,
    found: tuple[Sequence[int], Sequence[tuple[int, int]]],
    borders: Sequence[int],
    longest: int,
    frame: tuple[int, int],
    dimension: int,
) -> Pieces:
    """Return the word pieces of a text of any length, each with its last hidden state; see ``encoding.pieces``."""
    ids, spans = found
    cuts = windows([start for start, _ in spans], borders, min(_WINDOW, longest))
    read = [model.states([frame[0], *(ids[place] for place in cut), frame[1]])[1:-1] for cut in cuts]
    states = np.concatenate([np.empty((0, dimension), np.float32), *read])
    return Pieces(np.array(ids, np.int64), np.array(spans, np.int64).reshape(-1, 2), states)


def _on_all_cores(compute: Callable[[Sequence[int]], Any], texts: Sequence[Sequence[int]]) -> list[Any]:
    cores = min(usable_processors(), len(texts))
    if cores < 2:
        return [compute(ids) for ids in texts]
    with ThreadPoolExecutor(cores) as threads:
        # Longest first: else one core might end with a long text while the others have none left.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        found = dict(zip(order, threads.map(compute, [texts[place] for place in order]), strict=True))
    return [found[place] for place in range(len(texts))]


def _mean(states: Matrix) -> Vector:
    mean: Vector = _unit(states.mean(axis=0))
    return mean


def _unit(rows: Any) -> Any:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
