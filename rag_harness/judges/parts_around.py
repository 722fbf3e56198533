"""The parts of a run with something put around them, as a judge is given them."""

from __future__ import annotations

from typing import Any

from rag_harness.protocols import ChatModel, JudgeParts, TextEmbedder
from rag_harness.settings import Settings


class PartsAround:
    """The parts of a run as they are; a class derived from this changes its chat models, or what it keeps."""

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts

    @property
    def repeat(self) -> int:
        """How often the judge was asked before."""
        return getattr(self._parts, "repeat", 0)

    @property
    def settings(self) -> Settings:
        return self._parts.settings

    @property
    def stores(self) -> Any:
        return self._parts.stores

    @property
    def cassettes(self) -> Any:
        return self._parts.cassettes

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        return self.around(self._parts.chat(role, temperature=temperature, max_output_tokens=max_output_tokens))

    def around(self, model: ChatModel) -> ChatModel:
        """Return what the judge asks in place of ``model``."""
        return model

    def embedder(self, model: str = "") -> TextEmbedder:
        return self._parts.embedder(model)
