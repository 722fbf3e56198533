"""The adapter of a model, by the prefix of its name or guessed from the name."""

from __future__ import annotations

from rag_harness.errors import PrerequisiteError
from rag_harness.registry import registered
from rag_harness.settings import Settings
from rag_harness.settings.profiles import EMBEDDED_URL, MOCK, SIMULATED


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
    """Return whether the name of its model makes a part of this package the judge, which asks nobody."""
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
