"""What a recording run is about to ask a chat model for: every request is made, and none is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from rag_harness.errors import RagHarnessError
from rag_harness.models.call import upper_bound
from rag_harness.models.chat.openai import OpenAIChat, chat_over
from rag_harness.recording.cassettes import Cassettes
from rag_harness.types import Usage

if TYPE_CHECKING:
    from rag_harness.protocols import Parts


class NotSentError(RagHarnessError):
    """The request was counted; there is no answer."""


@dataclass
class Expected:
    """Requests by the file that their recording has or will have; ``usage`` is at most what those to be sent use."""

    recorded: set[Path] = field(default_factory=set)
    to_send: set[Path] = field(default_factory=set)
    usage: Usage = Usage()


class _Counter(httpx2.AsyncBaseTransport):
    def __init__(self, cassettes: Cassettes, again: bool, expected: Expected) -> None:
        self._cassettes, self._again, self._expected = cassettes, again, expected

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content, expected = await request.aread(), self._expected
        asked = self._cassettes.asked(request.method, str(request.url), content, request.headers)
        file = self._cassettes.file(asked)
        if file.is_file() and not self._again:
            expected.recorded.add(file)
        elif file not in expected.to_send:
            expected.to_send.add(file)
            expected.usage += upper_bound(content, asked.body)
        raise NotSentError(asked.digest)


def counting_chat(parts: Parts, expected: Expected) -> OpenAIChat:
    """Return a chat model that adds to ``expected`` what it is asked, and raises NotSentError."""
    return chat_over(_Counter(parts.cassettes, parts.settings.rerecord, expected), parts.settings)
