"""The words of a trial that may leave this machine: none unless they are asked for, and those without private text.

OpenTelemetry's conventions ask for an opt-in before words of people, answers or documents are sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import RowStage

OPT_IN = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's own variable that says whether words are sent."""
_YES = {"true", "1", "span_only", "span_and_event"}
_LONGEST = 20_000
"""The most characters of a text."""


def words_are_asked_for() -> bool:
    """Whether the variable asks for words."""
    return os.environ.get(OPT_IN, "").strip().lower() in _YES


class WordsOfTrial:
    """Questions, answers, arguments and results of tools, documents that were found, what errors say.

    Args:
        clean: removes keys and private text from plain JSON; None sends no words.
    """

    def __init__(self, clean: Callable[[Any], Any] | None = None) -> None:
        self._clean = clean

    def text(self, said: str) -> str:
        """Return a text as it may be sent; empty where none may."""
        # Cut last: a key that is cut in two is not found any more.
        return str(self._clean(said))[:_LONGEST] if self._clean is not None else ""

    def of_trial(self, row: ExperimentResult) -> dict[str, str]:
        """Return question and answer as attributes."""
        if self._clean is None:
            return {}
        found = {"gen_ai.input.messages": self._message("user", row.query)}
        if row.ok:
            found["gen_ai.output.messages"] = self._message("assistant", row.llm_answer)
        return found

    def of_step(self, step: RowStage) -> dict[str, str]:
        """Return what went into a step and what came out, as attributes."""
        if self._clean is None:
            return {}
        found: dict[str, Any] = {}
        if step.does == "tool":
            found = {"gen_ai.tool.call.arguments": step.input, "gen_ai.tool.call.result": step.output}
        elif step.does == "retrieve":
            documents = [{"id": hit.filename, "score": hit.score} for hit in step.hits]
            found = {"gen_ai.retrieval.query.text": step.input, "gen_ai.retrieval.documents": documents}
        return {name: self._value(value) for name, value in found.items() if value is not None}

    def _message(self, role: str, text: str) -> str:
        part = {"type": "text", "content": self.text(text)}
        return json.dumps([{"role": role, "parts": [part]}], ensure_ascii=False)

    def _value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.text(value)
        assert self._clean is not None
        return json.dumps(self._clean(value), ensure_ascii=False)[:_LONGEST]
