"""The model endpoints of a run: the model of each role, and the chat models that call them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rag_harness.errors import SettingsError, unknown
from rag_harness.models.meter import Meter
from rag_harness.models.model_names import chat_name
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.protocols import ChatModel, KeyOwner, Stores
from rag_harness.registry import resolve
from rag_harness.settings import Settings
from rag_harness.settings.request_fields import RequestFields
from rag_harness.settings.role_tables import ROLES, prefix_of


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
        SettingsError: there is no such role; names all roles.
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
            temperature: replaces that of the settings.
            max_output_tokens: longest answer; replaces that of the settings.
            model: another model of the same server.

        Raises:
            SettingsError: there is no such role.
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

        What its table in the profile says goes before what the caller asks for.
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
