"""Generation of answers: prompt, model call and parser; the last step of every experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from rag_harness.core.errors import EmptyAnswerError, ModelOutputError
from rag_harness.core.protocols import ChatModel
from rag_harness.core.text.citations import cited_sources
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Answer, Hit, Message, PipelineOutput, Query
from rag_harness.models.prompts import Prompts, json_of
from rag_harness.pipelines.trace import Trace
from rag_harness.records.json_safe import whole_characters


class PlainAnswer(BaseModel):
    """Structured output of E1 to E3."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
    answer: str


class ReasonedAnswer(PlainAnswer):
    """Structured output of E4. The steps come first, so that the answer can follow from them."""

    reasoning_steps: list[str]


@dataclass(frozen=True)
class Generator:
    """Asks the chat model and parses its answer.

    Args:
        chat: the model.
        prompts: the experiment's templates.
        reasoning: whether to ask for reasoning steps before the answer.
    """

    chat: ChatModel
    prompts: Prompts
    reasoning: bool = False

    async def answer(self, query: Query, trace: Trace, said_before: Sequence[Message] = ()) -> PipelineOutput:
        """Answer from ``trace.context``. Earlier messages of a conversation come before the prompt's question."""
        with trace.stage("prompt"):
            system, user = self.prompts.messages(query.text, trace.context)
            messages = [system, *said_before, user]
        completion = await trace.complete(self.chat, messages, response_format(self.reasoning))
        with trace.stage("parse"):
            answer = read_answer(completion.text, len(trace.context), self.reasoning, completion.finish_reason)
        return trace.output(answer)

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        """Answer from ``hits`` alone, in their order."""
        return await self.answer(query, Trace(retrieved=list(hits), context=list(hits)))


def response_format(reasoning: bool) -> Mapping[str, Any]:
    """Return the ``response_format`` of OpenAI's structured outputs."""
    keys = {"reasoning_steps": {"type": "array", "items": {"type": "string"}}} if reasoning else {}
    properties = {**keys, "answer": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def read_answer(raw: str, sources: int, reasoning: bool, finish_reason: str = "") -> Answer:
    """Parse a model's JSON into an answer.

    Args:
        raw: the model's reply.
        sources: number of sources; citations beyond it are listed as invalid.
        reasoning: whether reasoning steps were requested.
        finish_reason: why the model stopped, in the server's word. It explains a reply that cannot be read.

    Raises:
        ModelOutputError: the text is not JSON of the requested form, or the answer is empty.
    """
    raw = whole_characters(raw)
    shape = ReasonedAnswer if reasoning else PlainAnswer
    try:
        read = shape.model_validate(json_of(raw))
    except ValueError as error:
        raise ModelOutputError(_unread(raw, finish_reason), raw) from error
    text = whole_characters(read.answer)
    if not text.strip():
        raise EmptyAnswerError("The model's answer is empty.", raw)
    steps = tuple(map(whole_characters, read.reasoning_steps)) if isinstance(read, ReasonedAnswer) else None
    if steps is not None and not any(step.strip() for step in steps):
        raise ModelOutputError("The model gave no reasoning steps.", raw)
    cited = cited_sources(text)
    return Answer(
        text=text,
        reasoning_steps=steps,
        citations=tuple(n for n in cited if 1 <= n <= sources),
        invalid_citations=tuple(n for n in cited if not 1 <= n <= sources),
        # Where the known phrases do not, those of the suite may decline: the row asks them.
        abstained=declines(text) or None,
        raw=raw,
    )


def _unread(raw: str, finish_reason: str) -> str:
    """Say why an answer cannot be read. All that a limit has cut off are told alike: then one line tells of them."""
    if finish_reason == "length":
        return (
            "The model reached its limit in the middle of its answer (finish_reason 'length'); allow more with "
            "max_tokens of role answer, or have it say less."
        )
    return f"The model's answer is not the JSON that was asked for: {raw[:120]!r}"
