"""A BERT encoder as an ONNX graph, made of its weights: no torch, no exporter.

Nodes are those fused ones of ONNX Runtime (domain ``com.microsoft``) that its own optimizer makes of an exported BERT.
An export differs from one release of torch to the next; this graph follows from the weights alone. Of ``int8`` graphs,
weights are rounded per column, symmetrically, and what flows into a product is rounded while it runs, per text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_harness.models.embedders import onnx_format
from rag_harness.types import Matrix

_FUSED = "com.microsoft"
_MOST_INT8 = 127
"""Symmetric: -128 is not used."""
PRODUCTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""The products of a layer, by their names in BERT's weights, in the order in which they are computed."""


@dataclass(frozen=True)
class BertShape:
    """What a BERT's weights do not say: how many layers and heads, and the epsilon of its layer norms."""

    layers: int
    heads: int
    epsilon: float


def bert_graph(weights: Mapping[str, Any], shape: BertShape, int8: bool) -> bytes:
    """Return the model as serialized ONNX.

    It reads ``input_ids`` and ``attention_mask``, int32 of shape (texts, tokens), and gives ``last_hidden_state``,
    float32 of shape (texts, tokens, d).

    Args:
        weights: arrays by BERT's names, ``encoder.layer.0.attention.self.query.weight`` for one.
        shape: of the model.
        int8: whether products are computed with eight bits.

    Raises:
        KeyError: a weight is missing.
    """
    return _Graph(weights, shape, int8).serialized()


@dataclass
class _Graph:
    weights: Mapping[str, Any]
    shape: BertShape
    int8: bool
    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)

    def serialized(self) -> bytes:
        last = self._embeddings()
        for layer in range(self.shape.layers):
            last = self._layer(f"encoder.layer.{layer}.", last)
        self._add("Identity", [last], ["last_hidden_state"], domain="")
        read = [onnx_format.input_of(name, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")]
        said = [onnx_format.output_of("last_hidden_state", ["texts", "tokens", "d"])]
        return onnx_format.model(self.nodes, self.constants, read, said, {"": 17, _FUSED: 1})

    def _embeddings(self) -> str:
        # All tokens are of the first segment, so its vector is part of each position's.
        places = self._of("embeddings.position_embeddings.weight")
        places = places + self._of("embeddings.token_type_embeddings.weight")[0]
        words = self._constant("words", self._of("embeddings.word_embeddings.weight"))
        tables = [words, self._constant("places", places), ""]
        norm = self._norm("embeddings.LayerNorm")
        inputs = ["input_ids", "", *tables, *norm, "attention_mask"]
        return self._add("EmbedLayerNormalization", inputs, ["embedded", "mask"], epsilon=self.shape.epsilon)

    def _layer(self, begin: str, read: str) -> str:
        attended = self._attention(f"{begin}attention.self.", read)
        attended = self._product(begin, "attention.output.dense", attended)
        middle = self._normed(f"{begin}attention.output.", read, attended)
        wide = self._product(begin, "intermediate.dense", middle)
        bias = self._constant(f"{wide}.bias", self._of(f"{begin}intermediate.dense.bias"))
        wide = self._add("BiasGelu", [wide, bias], [f"{wide}.gelu"])
        return self._normed(f"{begin}output.", middle, self._product(begin, "output.dense", wide))

    def _attention(self, begin: str, read: str) -> str:
        parts = ("query", "key", "value")
        matrix = np.concatenate([self._of(f"{begin}{part}.weight").T for part in parts], axis=1)
        bias = self._constant(f"{begin}bias", np.concatenate([self._of(f"{begin}{part}.bias") for part in parts]))
        heads, found = self.shape.heads, [f"{begin}attended"]
        if not self.int8:
            return self._add(
                "Attention", [read, self._constant(f"{begin}qkv", matrix), bias, "mask"], found, num_heads=heads
            )
        rounded, scale, zero = (f"{begin}{name}" for name in ("rounded", "scale", "zero"))
        self._add("DynamicQuantizeLinear", [read], [rounded, scale, zero], domain="")
        weights, scales = self._rounded(f"{begin}qkv", matrix)
        return self._add("QAttention", [rounded, weights, bias, scale, scales, "mask", zero], found, num_heads=heads)

    def _product(self, begin: str, product: str, read: str) -> str:
        name = f"{begin}{product}"
        matrix = self._of(f"{name}.weight").T
        if not self.int8:
            return self._add("MatMul", [read, self._constant(f"{name}.weight", matrix)], [name], domain="")
        return self._add("DynamicQuantizeMatMul", [read, *self._rounded(f"{name}.weight", matrix), ""], [name])

    def _normed(self, begin: str, before: str, added: str) -> str:
        bias = self._constant(f"{begin}dense.bias", self._of(f"{begin}dense.bias"))
        inputs = [before, added, *self._norm(f"{begin}LayerNorm"), bias]
        return self._add("SkipLayerNormalization", inputs, [f"{begin}normed"], epsilon=self.shape.epsilon)

    def _norm(self, name: str) -> list[str]:
        return [self._constant(f"{name}.{part}", self._of(f"{name}.{part}")) for part in ("weight", "bias")]

    def _rounded(self, name: str, matrix: Matrix) -> list[str]:
        scales = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / _MOST_INT8
        rounded = np.clip(np.rint(matrix / scales), -_MOST_INT8, _MOST_INT8).astype(np.int8)
        return [self._constant(name, rounded), self._constant(f"{name}.scale", scales.astype(np.float32))]

    def _of(self, name: str) -> Matrix:
        array: Matrix = np.asarray(self.weights[name], dtype=np.float32)
        return array

    def _constant(self, name: str, array: Any) -> str:
        self.constants.append(onnx_format.constant(name, array))
        return name

    def _add(self, kind: str, read: Sequence[str], made: list[str], domain: str = _FUSED, **about: Any) -> str:
        self.nodes.append(onnx_format.node(kind, read, made, domain, about))
        return made[0]
