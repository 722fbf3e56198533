"""A transport below the openai SDK that replays and makes recordings."""

from __future__ import annotations

from typing import Any

import httpx2

from rag_harness.models.calls import CALL
from rag_harness.models.recording.patches import heard, replayed
from rag_harness.models.recording.playback import AnswerListener, Playback


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Answers from the recordings of ``playback``. Without one, it calls ``inner`` if the mode allows it.

    Args:
        playback: the recordings, and the rights of the mode.
        inner: the transport to the model; None where this mode calls no model.
    """

    def __init__(self, playback: Playback, inner: Any | None) -> None:
        self._playback, self._inner = playback, inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        playback, content = self._playback, await request.aread()
        asked = playback.cassettes.asked(request.method, str(request.url), content, request.headers)
        found = playback.find(asked)
        if found is not None:
            return replayed(httpx2, found)  # type: ignore[no-any-return]
        playback.allow(asked)
        assert self._inner is not None
        listener = AnswerListener(asked)
        response = await self._inner.handle_async_request(request)
        if CALL in response.extensions:
            listener.since(response.extensions[CALL].started)
        return heard(httpx2, response, listener, playback)  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()
