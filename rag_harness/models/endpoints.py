"""Model endpoints of a run by role, judges of a panel, and checks of keys and prices before the first query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

from rag_harness.core.errors import PrerequisiteError, SettingsError, unknown
from rag_harness.core.package import without_torch
from rag_harness.core.protocols import ChatModel, KeyOwner, Stores
from rag_harness.core.registry import model_name, resolve
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, EMBEDDED_URL, prices_of
from rag_harness.core.settings.roles import ROLES, JudgeTable, RequestFields, prefix_of, settings_by_table
from rag_harness.models.model_names import chat_name, embedder_lacks, embedder_name
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.network_guard import LOOPBACK
from rag_harness.models.throttling import Meter


@dataclass(frozen=True)
class Endpoint:
    """The endpoint of one role: the model, its server, the key for that server, and the fields of its requests.

    ``request`` is a text, as ``RequestFields`` reads it.
    """

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)
    request: str = ""


def endpoint_of(settings: Settings, role: str) -> Endpoint:
    """Return the endpoint of ``role``: its own options where they are set, else those of ``answer``.

    The key of ``answer`` is sent only to the server of ``answer``.

    Raises:
        SettingsError: the role does not exist. The message names all roles.
    """
    if role not in ROLES:
        raise SettingsError(unknown("role", role, ROLES))
    own = _own_options(settings, prefix_of(role))
    url = own["base_url"] or settings.chat_base_url
    key = own["api_key"] or (settings.chat_key if url == settings.chat_base_url else "")
    return Endpoint(own["model"] or settings.chat_model, url, key, own["request"])


def key_variable(settings: Settings, role: str) -> str:
    """Return the name of the variable that holds the key of ``role``."""
    begin = prefix_of(role)
    own, named = _own_options(settings, begin), getattr(settings, f"{begin}_api_key_env", "")
    if role != "answer" and not (own["api_key"] or named) and own["base_url"] in ("", settings.chat_base_url):
        return key_variable(settings, "answer")
    return named or f"RAG_{begin.upper()}_API_KEY"


def _own_options(settings: Settings, begin: str) -> dict[str, str]:
    return {name: getattr(settings, f"{begin}_{name}", "") for name in ("model", "base_url", "api_key", "request")}


@dataclass(frozen=True)
class _Parts:
    """The parts for a chat adapter; see ``protocols.ChatParts``."""

    settings: Settings
    meter: Meter
    key_owner: KeyOwner
    _cassettes: Callable[[], Cassettes]
    _stores: Callable[[], Stores]

    @property
    def cassettes(self) -> Cassettes:
        return self._cassettes()

    @property
    def stores(self) -> Stores:
        return self._stores()


class Endpoints:
    """The chat models of one run in one process. They share a budget, and a limiter for each base URL.

    Args:
        settings: the settings of the run.
        cassettes: makes or returns the recorded answers of the profile.
        stores: makes or returns the stores of the run, for adapters that store something.
        meter: budget and limiters; by default those of the settings.
    """

    def __init__(
        self,
        settings: Settings,
        cassettes: Callable[[], Cassettes],
        stores: Callable[[], Stores],
        meter: Meter | None = None,
    ) -> None:
        self._settings, self._cassettes, self._stores = settings, cassettes, stores
        self._meter = meter or Meter(settings)
        self._made: dict[Settings, ChatModel] = {}
        self._others: list[Callable[[], Awaitable[None]]] = []

    @property
    def meter(self) -> Meter:
        """Budget and limiters of the run, for other network calls."""
        return self._meter

    def close_too(self, close: Callable[[], Awaitable[None]]) -> None:
        """Also call ``close`` when the models are closed, on the same loop."""
        self._others.append(close)

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> ChatModel:
        """Return the model of ``role``. The same endpoint and sampling give the same object.

        Args:
            role: answer, judge, writer, rewrite or user.
            temperature: replaces the temperature of the settings.
            max_output_tokens: longest answer; replaces the limit of the settings.
            model: another model of the same server.

        Raises:
            SettingsError: the role does not exist.
        """
        asked = self.settings_of(role, temperature=temperature, max_output_tokens=max_output_tokens, model=model)
        if asked not in self._made:
            key = KeyOwner(role, key_variable(self._settings, role), bool(asked.chat_key))
            parts = _Parts(asked, self._meter, key, self._cassettes, self._stores)
            self._made[asked] = cast("ChatModel", resolve("chat", chat_name(asked))(parts))
        return self._made[asked]

    def settings_of(
        self,
        role: str,
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> Settings:
        """Return the settings for the chat adapter of ``role``. Its own endpoint is in ``chat_*``.

        Its table in the profile overrides the arguments of the caller.
        """
        endpoint = endpoint_of(self._settings, role)
        sampling: dict[str, Any] = {"temperature": temperature, "max_output_tokens": max_output_tokens}
        sampling |= RequestFields.read(endpoint.request).sampling
        return replace(
            self._settings,
            chat_model=model or endpoint.model,
            chat_base_url=endpoint.base_url,
            chat_api_key=endpoint.api_key,
            chat_api_key_env="",
            chat_request=endpoint.request,
            **{name: value for name, value in sampling.items() if value is not None},
        )

    async def aclose(self) -> None:
        """Close the connections of all models."""
        for model in self._made.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
        for close_other in self._others:
            await close_other()


# The judges of a panel, as ``--rag-judge`` names them: ``fused@gpt-x,fused@meta/llama-3:8b,embedded``.
#
# What is behind the first ``@`` is the name of a judge's table in the profile, or of a model.

_RULES = "--rag-panel=majority, mean or median"


@dataclass(frozen=True, slots=True)
class PanelMember:
    """A judge of a panel: its registered name, its model, and its table, if it has one.

    An empty model means the one of ``--rag-judge-model``.
    """

    judge: str
    model: str = ""
    table: JudgeTable | None = None

    def __str__(self) -> str:
        return f"{self.judge}@{self.model}" if self.model else self.judge


def panel_of(settings: Settings) -> tuple[PanelMember, ...]:
    """Return the judges of the panel, in the order in which they are named; () where one judge judges.

    Raises:
        SettingsError: a panel without a rule, a rule without a panel, a judge without a name or named twice.
    """
    named, rule = settings.judge, settings.panel
    if "," not in named:
        if rule:
            whom = f"one judge, {named}" if named else "no judge"
            raise SettingsError(
                f"--rag-panel={rule} is for several judges, and --rag-judge names {whom}. Name two or more, with "
                f"commas between, or leave --rag-panel out."
            )
        if "@" in named:
            judge, _, model = named.partition("@")
            raise SettingsError(
                f"--rag-judge={named} names one judge: write --rag-judge={judge} --rag-judge-model={model}. "
                f"judge@model is for the judges of a panel."
            )
        return ()
    tables = {each.name: each for each in settings.judge_tables}
    members = tuple(_member(each, named, tables) for each in named.split(","))
    if not rule:
        raise SettingsError(f"--rag-judge={named} names {len(members)} judges: say how they decide, {_RULES}.")
    resolved = [(each.judge, each.model or settings.judge_model) for each in members]
    twice = [str(each) for n, each in enumerate(members) if resolved[n] in resolved[:n]]
    if twice:
        raise SettingsError(
            f"--rag-judge={named} names the same judge and model twice: {', '.join(twice)}. Scores are kept under both "
            f"names, whatever the address."
        )
    return members


def _member(said: str, named: str, tables: Mapping[str, JudgeTable]) -> PanelMember:
    judge, at, model = (part.strip() for part in said.partition("@"))
    if not judge or (at and not model):
        raise SettingsError(
            f"--rag-judge={named}: {said!r} names no judge{' model' if judge else ''}. A panel is judges with commas "
            f"between, each with its model where it asks one: fused@gpt-x,embedded."
        )
    table = tables.get(model)
    return PanelMember(judge, table.model if table else model, table)


def settings_of_judges(settings: Settings) -> tuple[Settings, ...]:
    """Return the settings as each judge of the run has them; those of the run where one judge judges.

    Raises:
        SettingsError: the panel cannot be used.
    """
    members = panel_of(settings)
    return tuple(settings_of_member(settings, member) for member in members) if members else (settings,)


def settings_of_member(settings: Settings, member: PanelMember) -> Settings:
    """Return the settings in which one judge of the panel is the only judge."""
    alone = replace(settings, judge=member.judge, judge_model=member.model or settings.judge_model, panel="")
    return settings_by_table(alone, member.table) if member.table else alone


# Checks of keys and prices before the first query, only where the profile and the mode need them.


def check_api_keys(settings: Settings) -> None:
    """Check that every endpoint of this run has a key, and every model a price if there is a budget.

    Raises:
        PrerequisiteError: a key or price is missing. The message names it, the part that needs it, and a way to run
            without.
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
        PrerequisiteError: the model cannot be called. The message has the reason.
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
    """Check key and price of the model of another role than ``answer`` before a run calls it.

    Raises:
        PrerequisiteError: one of them is missing. The message tells which.
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
