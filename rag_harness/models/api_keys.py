"""Checks of keys and prices before the first query, only where the profile and the mode need them."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from rag_harness.errors import PrerequisiteError, SettingsError
from rag_harness.models.endpoints import endpoint_of, key_variable
from rag_harness.models.local_weights import embedder_lacks
from rag_harness.models.model_names import chat_name, embedder_name
from rag_harness.models.recording.network_guard import LOOPBACK
from rag_harness.registry import model_name
from rag_harness.registry.installed import without_torch
from rag_harness.settings import Settings, access_of
from rag_harness.settings.prices import prices_of
from rag_harness.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL


def check_api_keys(settings: Settings) -> None:
    """Check that every endpoint of this run has a key, and every model a price if there is a budget.

    Raises:
        PrerequisiteError: a key or price is missing; says which, what needs it, and how to run without.
    """
    if not access_of(settings).calls_network:
        return
    for model in filter(None, [settings.chat_model, settings.writer_model, settings.rewrite_model]):
        _check_price(settings, model)
    called = [role for role in ("writer", "rewrite") if getattr(settings, f"{role}_model")]
    others = [role for role in called if endpoint_of(settings, role).base_url != settings.chat_base_url]
    helpers = [line for role in others for line in _role_key(settings, role)]
    _refuse(settings, [*_chat_key(settings), *helpers, *_embedding_key(settings)])


def check_user(settings: Settings) -> None:
    """Check the model that plays the users of scenarios, if one is named: its server, its key, its price.

    Raises:
        PrerequisiteError: it cannot be called; says why.
    """
    if not settings.user_model:
        return
    if endpoint_of(settings, "user").base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"{settings.user_model} plays a user, and no server is named for it: add base_url to the profile's role "
            "user, or leave its model out, and a script plays."
        )
    if access_of(settings).calls_network:
        check_called(settings, "user")


def check_called(settings: Settings, role: str) -> None:
    """Check key and price of the model of another role than ``answer``, for a run that calls it.

    Raises:
        PrerequisiteError: one of them is missing; says which.
    """
    _check_price(settings, endpoint_of(settings, role).model)
    _refuse(settings, _role_key(settings, role))


def _refuse(settings: Settings, missing: list[str]) -> None:
    if missing:
        raise PrerequisiteError(
            "\n".join(missing) + f"\nSet it in the environment or in .env. Without a key: {_without_key(settings)}."
        )


def _without_key(settings: Settings) -> str:
    """Return what works here without a key."""
    embedded = replace(settings, embed_model=BUILT_IN_PROFILES["embedded"].embed_model, embed_base_url="")
    needs = f" with {without_torch()}" if embedder_lacks(embedded) else ""
    return f"--rag-profile=embedded{needs}; or DRY_RUN=true, which calls nobody and tries the suite with what is here"


def _check_price(settings: Settings, asked: str) -> None:
    model = model_name("chat", asked)
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


def _role_key(settings: Settings, role: str) -> list[str]:
    """Return the missing key of another role than ``answer``; empty if none is missing."""
    asked = endpoint_of(settings, role)
    if asked.api_key or asked.base_url == EMBEDDED_URL or _is_local(asked.base_url):
        return []
    does = "judges with" if role == "judge" else "calls"
    name = key_variable(settings, role)
    return [f"{name} is not set: mode {settings.mode} {does} {asked.model} at {asked.base_url}."]


def _is_local(url: str) -> bool:
    """Whether a server is on this machine or in a private network. Most need no key; one that does answers 401."""
    host = urlsplit(url).hostname or ""
    try:
        return host in LOOPBACK or ip_address(host).is_private
    except ValueError:
        return "." not in host  # a name that only this network knows, as in compose.yaml


def _embedding_key(settings: Settings) -> list[str]:
    url = settings.embed_base_url or "https://api.openai.com/v1"
    if embedder_name(settings) != "openai" or _is_local(url) or settings.openai_api_key:
        return []
    return [
        f"OPENAI_API_KEY is not set: mode {settings.mode} of profile {settings.profile!r} embeds with "
        f"{settings.embed_model} at {url}."
    ]
