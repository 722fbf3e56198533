"""A mock chat model, for a trial run on any data. Its answer says that it is a placeholder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.protocols import Parts
from rag_harness.types import Completion, Message, Usage


class MockChat:
    """Answers every prompt with the same words, in the requested form."""

    model = "mock/placeholder"

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        cites = " [Source 1]" if "[Source 1:" in messages[-1].content else ""
        said: dict[str, Any] = {"answer": f"Placeholder answer of the mock profile.{cites}"}
        if "reasoning_steps" in json.dumps(response_format or {}):
            said = {"reasoning_steps": ["Placeholder step of the mock profile."], **said}
        return Completion(json.dumps(said), self.model, Usage(calls=1), total_ms=0.0, ttft_ms=0.0)


def create(_parts: Parts) -> MockChat:
    """Return the mock chat model."""
    return MockChat()
