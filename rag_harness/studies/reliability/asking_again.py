"""Asks the same question a second time, to see whether the answer stays the same."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.errors import ModelCallError, ModelOutputError
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.generation import read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.studies.reliability.verification import claims_agreement, varied
from rag_harness.types import Answer, Query

TEMPERATURE = 0.7
"""The temperature of the second answer, if the reader has one."""


@dataclass(frozen=True)
class SecondAsking:
    """Asks a second time.

    Args:
        chat: the model, at a temperature of its own.
        prompts: the experiment's templates.
        varies_sources: whether to change the order of the sources and leave one out, for a reader whose answers never
            vary.
    """

    chat: ChatModel
    prompts: Prompts
    varies_sources: bool

    async def agreement(self, query: Query, answer: Answer, trace: Trace) -> tuple[float | None, str]:
        """Return the share of claims that both answers make, in [0, 1], or why there is none."""
        context = varied(trace.context, answer) if self.varies_sources else list(trace.context)
        if self.varies_sources and len(trace.context) < 2:
            return None, "one source only, and the reader says the same of it each time"
        messages = self.prompts.messages(query.text, context)
        try:
            said = await trace.complete(self.chat, messages, response_format(False), stage="again")
        except ModelCallError as error:
            # A failure here does not fail the trial, so later failures must not be blamed on this stage.
            trace.failed_stage = ""
            return None, f"there is no second answer: {error}"
        try:
            other = read_answer(said.text, len(context), False, said.finish_reason)
        except ModelOutputError as error:
            return None, f"the second answer cannot be read: {error}"
        return (0.0 if other.abstained else claims_agreement(answer.text, other.text)), ""
