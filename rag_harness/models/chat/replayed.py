"""Replay of recorded completions from their files, without the SDK and without an HTTP library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_harness.models.answer_length import LONGEST_ANSWER
from rag_harness.models.chat.streamed import StreamedCompletion, StreamError
from rag_harness.models.recording.cassettes import Recorded
from rag_harness.models.recording.playback import Playback
from rag_harness.types import Completion, Usage


@dataclass(frozen=True)
class Replayed:
    """Looks up a request by the body that the SDK would send to ``url``. Answers have at most ``longest`` characters.

    A request that is not found here may still be found through the SDK, which knows all headers.
    """

    playback: Playback
    url: str
    longest: int = LONGEST_ANSWER

    def find(self, request: Mapping[str, Any]) -> Completion | None:
        """Return the recorded answer. None without one, or where this module cannot read it.

        Raises:
            DataError: the recording is damaged; names the file.
            ModelOutputError: the recorded answer has no text, or is too long.
        """
        found = self.playback.find(self.playback.cassettes.asked("POST", self.url, request_content(request)))
        return None if found is None else completion_of(found, str(request["model"]), self.longest)


def completion_of(found: Recorded, model: str, longest: int = LONGEST_ANSWER) -> Completion | None:
    """Return a recorded stream of the chat completions API, as through the SDK. None for any other recording."""
    if found.status != 200 or "json" in found.content_type:
        return None
    said = StreamedCompletion(model, longest)
    try:
        said.add(found.body)
        text = said.text()
    except (ValueError, TypeError, AttributeError, ConnectionError, StreamError):
        return None
    usage = said.usage or Usage(calls=1)
    return Completion(
        text,
        said.model,
        usage,
        found.total_ms,
        found.ttft_ms,
        recorded=True,
        recorded_at=found.recorded_at,
        finish_reason=said.finish_reason,
        first_token=said.first_token,
        tool_calls=said.calls.calls(),
        reasoning=said.reasoning,
    )


def request_content(request: Mapping[str, Any]) -> bytes:
    """Return a request's body as the SDK writes it. A lone surrogate is written as a JSON escape."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
