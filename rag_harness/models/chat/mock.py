"""A placeholder instead of a model: it says that it is one. For trying the plumbing on any data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.protocols import Parts
from rag_harness.types import Completion, Message, Usage


class MockChat:
    """Answers every prompt with the same words, in the form that was asked for."""

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
