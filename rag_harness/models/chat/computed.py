"""Answers of the baseline reader in this process, without the SDK and without an HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rag_harness.models.answer_length import LONGEST_ANSWER
from rag_harness.models.chat.replayed import request_content
from rag_harness.models.chat.streamed import StreamedCompletion
from rag_harness.types import Completion, Usage


@dataclass(frozen=True)
class Computed:
    """Answers a request as the SDK would send it. Answers have at most ``longest`` characters."""

    longest: int = LONGEST_ANSWER

    def answer(self, request: Mapping[str, Any]) -> Completion | None:
        """Return the reader's answer. None where it refuses the request: the SDK then says why.

        Raises:
            ModelOutputError: the answer has no text, or is too long.
        """
        from rag_harness.models.reader.wire import RequestError, answer, events

        started = perf_counter()
        try:
            reply = answer(request_content(request))
        except RequestError:
            return None
        said = StreamedCompletion(str(request["model"]), self.longest)
        for event in events(reply):
            said.add(event.encode())
        text, total = said.text(), (perf_counter() - started) * 1000
        usage = said.usage or Usage(calls=1)
        return Completion(text, said.model, usage, total, total, finish_reason=said.finish_reason)
