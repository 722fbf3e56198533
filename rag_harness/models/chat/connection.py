"""The connection to a chat model: the openai SDK's client over the transports that record and meter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.models.model_names import is_simulated
from rag_harness.models.recording.playback import Playback
from rag_harness.protocols import ChatParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.settings import Settings, access_of
from rag_harness.settings.profiles import EMBEDDED_URL
from rag_harness.work.garbage import uncollected
from rag_harness.work.once import IMPORTING

if TYPE_CHECKING:
    from openai import AsyncOpenAI

NO_KEY = "none"
_IN_PROCESS = "http://embedded/v1"


def _base_url(settings: Settings) -> str:
    return _IN_PROCESS if settings.chat_base_url == EMBEDDED_URL else settings.chat_base_url


def completions_url(settings: Settings) -> str:
    """Return the address of requests. Its path is part of the names of recordings."""
    return f"{_base_url(settings).rstrip('/')}/chat/completions"


def runs_here(settings: Settings) -> bool:
    """Return whether the baseline reader in this process answers. It needs no weights, so every mode may ask it."""
    return settings.chat_base_url == EMBEDDED_URL and not is_simulated(settings)


def playback_of(parts: ChatParts) -> Playback | None:
    """Return the playback of a run's recordings, or None where no recordings are used.

    The simulated model has none: it needs no weights and gives the same answers on every machine, so every mode may
    call it.

    Raises:
        DataError: the folder for new recordings cannot be written.
    """
    settings = parts.settings
    access, local = access_of(settings), runs_here(settings)
    if not access.reads_recordings or is_simulated(settings):
        return None
    return Playback(
        parts.cassettes,
        local or access.calls_network,
        access.records,
        ask_again=settings.rerecord and access.records,
        refuse="" if local else access.refusal(local=False, profile=settings.profile),
        version=REVISIONS["reader"] if local else "",
    )


def connect(parts: ChatParts, playback: Playback | None) -> AsyncOpenAI:
    """Return the SDK's client over the transports for the mode."""
    with IMPORTING, uncollected():  # the SDK makes 100,000 objects that stay; collecting them is a fifth of its import
        import httpx2
        from openai import AsyncOpenAI

    settings = parts.settings
    return AsyncOpenAI(
        base_url=_base_url(settings),
        api_key=settings.chat_key or NO_KEY,
        timeout=None,  # OpenAIChat limits the whole call, without the waiting
        max_retries=0,  # the SDK's own retries would hide the waiting
        http_client=httpx2.AsyncClient(transport=_transport(parts, playback)),
    )


def _transport(parts: ChatParts, playback: Playback | None) -> Any:
    if playback is None:
        return _to_the_model(parts)
    from rag_harness.models.chat.recorded import RecordingTransport

    return RecordingTransport(playback, _to_the_model(parts) if playback.may_call else None)


def _to_the_model(parts: ChatParts) -> Any:
    url = parts.settings.chat_base_url
    if url == EMBEDDED_URL:
        import httpx2

        return httpx2.ASGITransport(app=_app(parts.settings))
    from rag_harness.models.metered import MeteredTransport
    from rag_harness.models.wire import AiohttpTransport

    return MeteredTransport(AiohttpTransport(), parts.meter.limiter(url), parts.meter.money)


def _app(settings: Settings) -> Any:
    if not is_simulated(settings):
        from rag_harness.models.reader import app

        return app
    from rag_harness.dataset.records.field_names import read_map
    from rag_harness.models.simulated import SimulatedModel
    from rag_harness.models.simulated.simulated_app import SimulatedApp

    return SimulatedApp(SimulatedModel.reading(settings.queries_path, read_map(settings.map, "rag_map")))
