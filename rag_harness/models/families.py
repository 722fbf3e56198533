"""Makers of models. A judge favours answers of models of its own maker (Panickssery et al. 2024)."""

from __future__ import annotations

import re

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
