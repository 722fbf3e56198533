"""Prediction of a recording run's requests to a chat model: requests are built but not sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from rag_harness.errors import RagHarnessError
from rag_harness.models.call import upper_bound
from rag_harness.models.chat.connection import completions_url
from rag_harness.models.chat.openai import OpenAIChat, chat_of
from rag_harness.models.chat.replayed import request_content
from rag_harness.models.model_names import is_simulated
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.settings import Settings
from rag_harness.types import Usage


class NotSentError(RagHarnessError):
    """The request was counted and not sent, so there is no answer."""


@dataclass
class Expected:
    """Requests by the file of their recording. ``usage`` is the most that the requests to be sent can use."""

    recorded: set[Path] = field(default_factory=set)
    to_send: set[Path] = field(default_factory=set)
    usage: Usage = Usage()


def _never() -> NoReturn:
    raise AssertionError("nothing is sent while requests are counted")


def counting_chat(settings: Settings, cassettes: Cassettes, expected: Expected) -> OpenAIChat:
    """Return a chat model that adds its requests to ``expected`` and raises NotSentError."""

    def count(request: Mapping[str, Any]) -> None:
        if is_simulated(settings):
            raise NotSentError("The simulated model computes its answers, which are not recorded.")
        content = request_content(request)
        asked = cassettes.asked("POST", completions_url(settings), content)
        file = cassettes.file(asked)
        if cassettes.has(asked) and not settings.rerecord:
            expected.recorded.add(file)
        elif file not in expected.to_send:
            expected.to_send.add(file)
            expected.usage += upper_bound(content, request)
        raise NotSentError(asked.digest)

    return chat_of(settings, _never, count)
