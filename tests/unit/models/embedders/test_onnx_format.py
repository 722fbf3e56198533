"""What we write is what ``onnx`` reads, and the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rag_harness.models import onnx as onnx_module
from rag_harness.models.onnx import BertShape, bert_graph

onnx = pytest.importorskip("onnx", reason="needs onnx, the oracle, of the extra 'dev'")
WIDE, HIDDEN, WORDS = 4, 8, 5


def weights() -> dict[str, Any]:
    made = np.random.default_rng(0)
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, WIDE),
        "embeddings.position_embeddings.weight": (6, WIDE),
        "embeddings.token_type_embeddings.weight": (2, WIDE),
    }
    layer = "encoder.layer.0."
    products: dict[str, tuple[int, ...]] = {
        **dict.fromkeys((f"attention.self.{part}" for part in ("query", "key", "value")), (WIDE, WIDE)),
        "attention.output.dense": (WIDE, WIDE),
        "intermediate.dense": (HIDDEN, WIDE),
        "output.dense": (WIDE, HIDDEN),
    }
    for name, size in products.items():
        sizes |= {f"{layer}{name}.weight": size, f"{layer}{name}.bias": size[:1]}
    for name in ("embeddings.", f"{layer}attention.output.", f"{layer}output."):
        sizes |= {f"{name}LayerNorm.{part}": (WIDE,) for part in ("weight", "bias")}
    return {name: made.normal(size=size).astype(np.float32) for name, size in sizes.items()}


@pytest.mark.parametrize("int8", [False, True])
def test_a_graph_is_what_onnx_reads(int8: bool) -> None:
    model = onnx.load_model_from_string(bert_graph(weights(), BertShape(1, 2, 1e-12), int8))
    assert (model.ir_version, {each.domain: each.version for each in model.opset_import}) == (
        9,
        {"": 17, "com.microsoft": 1},
    )
    embedded = model.graph.node[0]
    assert (embedded.op_type, embedded.domain) == ("EmbedLayerNormalization", "com.microsoft")
    assert [(each.name, each.type, each.f) for each in embedded.attribute] == [("epsilon", 1, pytest.approx(1e-12))]
    attended = next(each for each in model.graph.node if each.op_type in ("Attention", "QAttention"))
    assert [(each.name, each.type, each.i) for each in attended.attribute] == [("num_heads", 2, 2)]
    last = model.graph.node[-1]
    assert (last.op_type, last.domain, list(last.output)) == ("Identity", "", ["last_hidden_state"])
    words = onnx.numpy_helper.to_array(next(each for each in model.graph.initializer if each.name == "words"))
    np.testing.assert_array_equal(words, weights()["embeddings.word_embeddings.weight"])
    described = [onnx.helper.printable_value_info(each) for each in (*model.graph.input, *model.graph.output)]
    assert described == [
        "%input_ids[INT32, textsxtokens]",
        "%attention_mask[INT32, textsxtokens]",
        "%last_hidden_state[FLOAT, textsxtokensxd]",
    ]


@given(
    arrays_of.arrays(
        st.sampled_from(["<f4", "<i1", "<i4", "<i8"]),
        # Lengths of one byte, of two and of three, and sides of one and of two.
        arrays_of.array_shapes(min_dims=0, max_dims=3, max_side=20) | arrays_of.array_shapes(max_dims=2, max_side=200),
    ),
    st.text(st.characters(codec="utf-8"), min_size=1),
)
def test_a_constant_is_what_onnx_reads_and_what_we_read(array: Any, name: str) -> None:
    graph = onnx.load_model_from_string(
        onnx_module.onnx_model([], [onnx_module.onnx_constant(name, array)], [], [], {"": 17})
    ).graph
    assert graph.initializer[0].name == name
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(graph.initializer[0]), array)
    made = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(array, name)]))
    found = onnx_module.read_graph(made.SerializeToString()).arrays[name]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_the_packages_file_is_read_as_onnx_reads_it() -> None:
    pytest.importorskip(onnx_module.INT8_PACKAGE, reason="needs the extra 'local-light'")
    file = onnx_module.int8_file()
    graph, found = onnx.load(str(file)).graph, onnx_module.read_graph(file.read_bytes())
    assert found.nodes == [(each.op_type, list(each.input)) for each in graph.node]
    assert list(found.arrays) == [each.name for each in graph.initializer]
    for each in graph.initializer:
        np.testing.assert_array_equal(found.arrays[each.name], onnx.numpy_helper.to_array(each))
