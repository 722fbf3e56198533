"""Keys and prices are checked before the first query, and only where the profile and the mode need them."""

from __future__ import annotations

from urllib.parse import urlsplit

from rag_harness.errors import PrerequisiteError
from rag_harness.models.names import chat_name, embedder_name
from rag_harness.recording.network_guard import LOOPBACK
from rag_harness.registry import model_name
from rag_harness.settings import Settings, access_of
from rag_harness.settings.prices import prices_of
from rag_harness.settings.profiles import EMBEDDED_URL


def check_keys(settings: Settings) -> None:
    """Make sure that every endpoint that this run calls has a key, and its model a price where there is a budget.

    Raises:
        PrerequisiteError: says which key or price is missing, what needs it, and how to run without.
    """
    if not access_of(settings).calls_network:
        return
    _check_price(settings)
    missing = [*_chat_key(settings), *_embedding_key(settings)]
    if missing:
        raise PrerequisiteError(
            "\n".join(missing)
            + "\nSet it in the environment or in .env. Without a key: --rag-profile=embedded, or replay: DRY_RUN=true."
        )


def _check_price(settings: Settings) -> None:
    model = model_name("chat", settings.chat_model)
    if not settings.budget or prices_of(settings).price(model) is not None:
        return
    raise PrerequisiteError(
        f"The budget is {settings.budget:g} USD, but {model!r} has no price. Give it one in a file for --rag-prices, "
        f'USD per million tokens, 0 where it is free: [models."{model}"] input = …, output = …. '
        f"Or leave the budget out."
    )


def _chat_key(settings: Settings) -> list[str]:
    url = settings.chat_base_url
    if chat_name(settings) != "openai" or url == EMBEDDED_URL or _is_local(url) or settings.chat_key:
        return []
    name = settings.chat_api_key_env or "RAG_CHAT_API_KEY"
    return [
        f"{name} is not set: mode {settings.mode} of profile {settings.profile!r} calls {settings.chat_model} at {url}."
    ]


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


def _embedding_key(settings: Settings) -> list[str]:
    url = settings.embed_base_url or "https://api.openai.com/v1"
    if embedder_name(settings) != "openai" or _is_local(url) or settings.openai_api_key:
        return []
    return [
        f"OPENAI_API_KEY is not set: mode {settings.mode} of profile {settings.profile!r} embeds with "
        f"{settings.embed_model} at {url}."
    ]
