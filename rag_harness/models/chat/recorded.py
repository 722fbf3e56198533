"""A transport below the openai SDK that answers from recordings, and makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2

from rag_harness.models.call import CALL
from rag_harness.models.chat.streamed import condensed
from rag_harness.recording.cassettes import Cassettes
from rag_harness.recording.playback import Listener, Playback
from rag_harness.recording.transports import heard, replayed


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Answers from ``cassettes``; asks ``inner`` for what is not there, if it may.

    Args:
        cassettes: the recordings of the profile.
        inner: the way to the model; None where this mode calls no model.
        keep: write what ``inner`` answered.
        ask_again: call even where there is a recording.
        refuse: why a miss is an error, with the command that records it.
    """

    def __init__(
        self, cassettes: Cassettes, inner: Any | None, keep: bool, ask_again: bool = False, refuse: str = ""
    ) -> None:
        self._inner = inner
        self._playback = Playback(cassettes, inner is not None, keep and inner is not None, ask_again, refuse)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        playback, content = self._playback, await request.aread()
        asked = playback.cassettes.asked(request.method, str(request.url), content, request.headers)
        found = playback.find(asked)
        if found is not None:
            whole = replace(found, body=condensed(found.body))
            return replayed(httpx2, whole)  # type: ignore[no-any-return]
        playback.allow(asked)
        assert self._inner is not None
        listener = Listener(asked)
        response = await self._inner.handle_async_request(request)
        if CALL in response.extensions:
            listener.since(response.extensions[CALL].started)
        return heard(httpx2, response, listener, playback)  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()
