"""The model endpoints of a run: who is asked in which role, and the chat models that ask them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rag_harness.errors import SettingsError, unknown
from rag_harness.models.meter import Meter
from rag_harness.models.names import chat_name
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.protocols import ChatModel, Stores
from rag_harness.registry import resolve
from rag_harness.settings import Settings

ROLES = ("answer", "judge", "writer", "rewrite")
_OPTIONS_OF = {"answer": "chat"}
"""Begin of a role's options, where it is not the role's name."""


@dataclass(frozen=True)
class Endpoint:
    """Who is asked in one role: the model, its server, and the key that is made for that server."""

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)


def endpoint_of(settings: Settings, role: str) -> Endpoint:
    """Return the endpoint of ``role``: its own options where they are set, else those of ``answer``.

    The key of ``answer`` goes to the server of ``answer`` and to no other.

    Raises:
        SettingsError: there is no such role; names those that there are.
    """
    if role not in ROLES:
        raise SettingsError(unknown("role", role, ROLES))
    own = _own_options(settings, _OPTIONS_OF.get(role, role))
    url = own["base_url"] or settings.chat_base_url
    key = own["api_key"] or (settings.chat_key if url == settings.chat_base_url else "")
    return Endpoint(own["model"] or settings.chat_model, url, key)


def _own_options(settings: Settings, begin: str) -> dict[str, str]:
    return {name: getattr(settings, f"{begin}_{name}", "") for name in ("model", "base_url", "api_key")}


@dataclass(frozen=True)
class _Parts:
    """What a chat adapter is made of; see ``protocols.ChatParts``."""

    settings: Settings
    meter: Meter
    _cassettes: Callable[[], Cassettes]
    _stores: Callable[[], Stores]

    @property
    def cassettes(self) -> Cassettes:
        return self._cassettes()

    @property
    def stores(self) -> Stores:
        return self._stores()


class Endpoints:
    """The chat models of one run in one process: one budget, and one limiter a base URL.

    Args:
        settings: of the run.
        cassettes: makes or returns the recorded answers of the profile.
        stores: makes or returns the stores of the run, for adapters that keep something of their own.
        meter: budget and limiters; by the settings where none is given.
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
        """Budget and limiters of the run, for whoever else asks over the network."""
        return self._meter

    def close_too(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close what somebody else has opened when the models are closed, on the same loop."""
        self._others.append(close)

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        """Return the model that is asked in ``role``; the same object where endpoint and sampling are the same.

        Args:
            role: answer, judge, writer or rewrite.
            temperature: in place of the settings'.
            max_output_tokens: longest answer, in place of the settings'.

        Raises:
            SettingsError: there is no such role.
        """
        asked = self.settings_of(role, temperature=temperature, max_output_tokens=max_output_tokens)
        if asked not in self._made:
            parts = _Parts(asked, self._meter, self._cassettes, self._stores)
            self._made[asked] = cast("ChatModel", resolve("chat", chat_name(asked))(parts))
        return self._made[asked]

    def settings_of(
        self,
        role: str,
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Settings:
        """Return the settings as the chat adapter of ``role`` reads them: its own endpoint is ``chat_*``."""
        endpoint = endpoint_of(self._settings, role)
        sampling: dict[str, Any] = {"temperature": temperature, "max_output_tokens": max_output_tokens}
        return replace(
            self._settings,
            chat_model=endpoint.model,
            chat_base_url=endpoint.base_url,
            chat_api_key=endpoint.api_key,
            chat_api_key_env="",
            **{name: value for name, value in sampling.items() if value is not None},
        )

    async def aclose(self) -> None:
        """Close the connections of every model that was made."""
        for model in self._made.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
        for close_other in self._others:
            await close_other()
