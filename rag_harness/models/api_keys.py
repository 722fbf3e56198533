"""Checks of keys and prices before the first query, only where the profile and the mode need them."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from rag_harness.errors import PrerequisiteError, RegistryError, SettingsError, unknown
from rag_harness.models.endpoints import Endpoint, endpoint_of
from rag_harness.models.judge_panel import settings_of_judges
from rag_harness.models.local_weights import embedder_lacks
from rag_harness.models.model_names import chat_name, embedder_name, judge_name
from rag_harness.models.recording.network_guard import LOOPBACK
from rag_harness.registry import model_name, registered, rivals
from rag_harness.registry.installed import without_torch
from rag_harness.settings import Settings, access_of
from rag_harness.settings.prices import prices_of
from rag_harness.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL

ASKING = ("fused", "ragas")
"""Judges that call a chat model."""


def check_api_keys(settings: Settings) -> None:
    """Check that every endpoint of this run has a key, and every model a price if there is a budget.

    Raises:
        PrerequisiteError: a key or price is missing; says which, what needs it, and how to run without.
    """
    if not access_of(settings).calls_network:
        return
    for model in filter(None, [settings.chat_model, settings.writer_model, settings.rewrite_model]):
        _check_price(settings, model)
    helpers = [line for role in ("writer", "rewrite") for line in _helper_key(settings, role)]
    _refuse(settings, [*_chat_key(settings), *helpers, *_embedding_key(settings)])


def asks_a_model(settings: Settings) -> bool:
    """Return whether a judge of the run calls a chat model."""
    return any(judge_name(each) in ASKING for each in settings_of_judges(settings))


def check_judge(settings: Settings) -> None:
    """Check key and price of the judge, or of each judge of a panel, for a run that judges.

    Raises:
        SettingsError: the panel cannot be used.
        RegistryError: no judge has that name, or several have it.
        PrerequisiteError: the judge cannot be called; says why.
    """
    for each in settings_of_judges(settings):
        _check_judge(each)
    if settings.panel and settings.engine == "ray":
        raise SettingsError("A panel of judges is asked from the process of the tests: leave out --rag-engine=ray.")


def check_user(settings: Settings) -> None:
    """Check the model that plays the users of scenarios, if one is named: its server, its key, its price.

    Raises:
        PrerequisiteError: it cannot be called; says why.
    """
    if not settings.user_model:
        return
    if endpoint_of(settings, "user").base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"--rag-user-model={settings.user_model} plays a user, and no server is named for it: add "
            "--rag-user-base-url, or leave --rag-user-model out, and a script plays."
        )
    if access_of(settings).calls_network:
        _check_price(settings, settings.user_model)
        same = settings.user_base_url in ("", settings.chat_base_url)
        _refuse(settings, _chat_key(settings) if same else _helper_key(settings, "user"))


def check_one_judge(settings: Settings, what: str) -> None:
    """Check the judge of ``what``, which takes one judge.

    Raises:
        PrerequisiteError: the settings name a panel, or the judge cannot be called; says why.
    """
    if "," in settings.judge or settings.panel:
        raise SettingsError(f"{what} takes one judge at a time, and --rag-judge={settings.judge} is a panel.")
    check_judge(settings)


def _check_judge(settings: Settings) -> None:
    name = judge_name(settings)
    if name not in registered("judges"):
        raise RegistryError(unknown("judge", name, registered("judges")))
    if len(found := rivals("judges", name)) > 1:
        raise RegistryError(
            f"{len(found)} judges are called {name!r}: {' and '.join(found)}. Which of them would judge is left to "
            f"chance. Uninstall one, or register yours by another name."
        )
    if name not in ASKING:
        return
    asked = endpoint_of(settings, "judge")
    if asked.base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"The judge {name!r} asks a chat model, but {asked.model!r} is the reader in this process. Name one with "
            f"--rag-judge-model and --rag-judge-base-url, or leave --rag-judge out."
        )
    if access_of(settings).calls_network:
        _check_price(settings, asked.model)
        _refuse(settings, _judge_key(settings, asked))


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


def _judge_key(settings: Settings, asked: Endpoint) -> list[str]:
    if asked.api_key or _is_local(asked.base_url):
        return []
    same = asked.base_url == settings.chat_base_url
    name = settings.judge_api_key_env or (settings.chat_api_key_env if same else "") or "RAG_JUDGE_API_KEY"
    return [f"{name} is not set: mode {settings.mode} judges with {asked.model} at {asked.base_url}."]


def _helper_key(settings: Settings, role: str) -> list[str]:
    """Return the missing key of another model than the answering one; empty if none is missing."""
    asked = endpoint_of(settings, role)
    if not getattr(settings, f"{role}_model") or asked.api_key or asked.base_url == EMBEDDED_URL:
        return []
    if _is_local(asked.base_url) or asked.base_url == settings.chat_base_url:
        return []
    return [f"RAG_{role.upper()}_API_KEY is not set: mode {settings.mode} calls {asked.model} at {asked.base_url}."]


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
