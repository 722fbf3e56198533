"""Which models are of one maker: a judge favours answers of its own kind (Panickssery et al. 2024)."""

from __future__ import annotations

import re

_MAKERS = {
    "gpt": "openai", "chatgpt": "openai", "o": "openai", "claude": "anthropic", "gemini": "google", "gemma": "google",
    "grok": "x-ai", "llama": "meta", "meta-llama": "meta", "mistral": "mistral", "mistralai": "mistral",
    "mixtral": "mistral", "ministral": "mistral", "qwen": "qwen", "deepseek": "deepseek", "command": "cohere",
    "phi": "microsoft",
}  # fmt: skip
_NAME = re.compile(r"[a-z]+")


def maker_of(model: str) -> str:
    """Return who makes a model, by its name: ``x-ai/grok-beta`` and ``grok-2`` are x-ai; empty where unknown."""
    first, slash, _ = model.lower().partition("/")
    if slash:
        return "" if first in ("embedded", "mock") else _MAKERS.get(first, first)
    known = _NAME.match(first)
    return _MAKERS.get(known[0], "") if known else ""
