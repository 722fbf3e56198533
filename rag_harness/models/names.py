"""Which adapter serves a model: by its prefix, or guessed from its name."""

from __future__ import annotations

from rag_harness.registry import registered
from rag_harness.settings import Settings


def embedder_name(settings: Settings) -> str:
    """Return the registered name of the embedder: ``name:model``, or guessed from the model's name."""
    local = settings.embed_model.startswith("sentence-transformers/") or not settings.embed_base_url
    guess = "sentence-transformers" if local else "openai"
    return _adapter("embedders", settings.embed_model, guess)


def reranker_name(settings: Settings) -> str:
    """Return the registered name of the reranker."""
    guess = "late-interaction" if settings.rerank_model == "embedded/late-interaction" else "cross-encoder"
    return _adapter("rerankers", settings.rerank_model, guess)


def chat_name(settings: Settings) -> str:
    """Return the registered name of the chat adapter."""
    return _adapter("chat", settings.chat_model, "openai")


def _adapter(group: str, model: str, guess: str) -> str:
    scheme, colon, _ = model.partition(":")
    if colon and scheme in registered(group):
        return scheme
    return "mock" if model.startswith("mock/") and "mock" in registered(group) else guess
