"""What a row is made of: hits, stages with their calls, decisions, an error."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from rag_harness.results.storable import AsItIs, Metadata, StorableText, has_finite_floats, storable

Finite = Annotated[float, Field(allow_inf_nan=False)]
Scores = Annotated[dict[str, Finite], AsItIs(has_finite_floats)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


STEP_KINDS = ("retrieve", "rerank", "generate", "tool", "decide")
"""Kinds of steps. A step of such a name is of that kind."""
PlainJson = Annotated[Any, BeforeValidator(storable)]
"""Plain JSON."""


def is_absent(value: Any) -> bool:
    """Whether a step does not have this: few steps do, and rows without it stay as they were."""
    return value is None or value in ((), "")


def is_zero(value: Any) -> bool:
    """Whether there are none of something that most calls have none of."""
    return bool(value == 0)


class FrozenModel(BaseModel):
    """What never changes once it is read; keys that it does not know are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitMetadata:
    """Where a chunk comes from."""

    filename: StorableText = Field(description="name of the document; empty where nobody knows it")
    section: StorableText = Field(description="headings above the chunk, outermost first, joined by ' > '")
    version: StorableText | None = Field(
        default=None, description="of the page, null where the knowledge base names none"
    )
    date: StorableText | None = Field(
        default=None, description="from which the page holds; null where the knowledge base names none"
    )
    markup: StorableText | None = Field(
        default=None, description="'taken off' where the text has lost the page's marks, null where it has them"
    )
    module: StorableText | None = Field(
        default=None, description="of a book that the page belongs to; null where none is named"
    )
    chapter: StorableText | None = Field(default=None, description="of that book; null where none is named")
    url: StorableText | None = Field(
        default=None, description="address of the chunk or of its page; null where none is named"
    )
    page: int | None = Field(
        default=None, description="of the file that the chunk begins on; null where it has no pages"
    )
    last_page: int | None = Field(
        default=None, description="of the file that the chunk ends on; null where it has no pages"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedChunk:
    """A chunk that went into the prompt."""

    chunk_id: StorableText = Field(description="the same text of the same document has the same id")
    text: StorableText = Field(description="as the model read it")
    score: Finite = Field(description="first stage's score; cosine for dense retrieval")
    rerank_score: Finite | None = Field(default=None, description="null where the experiment has no reranker")
    scores: Scores = Field(default_factory=dict, description="score of each signal by its name: dense, bm25, rerank, …")
    metadata: HitMetadata = Field(description="where the chunk comes from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that the first stage returned."""

    chunk_id: StorableText = Field(description="as in retrieved_chunks")
    score: Finite = Field(description="first stage's score")
    rerank_score: Finite | None = Field(default=None, description="null where the experiment has no reranker")
    scores: Scores = Field(default_factory=dict, description="score of each signal by its name")


class TokenUsage(FrozenModel):
    """Tokens as the model's server counted them."""

    prompt_tokens: int = Field(0, description="tokens that were sent")
    completion_tokens: int = Field(0, description="tokens that were generated")
    calls: int = Field(0, description="calls that these are of")
    cached_tokens: int = Field(
        0, description="of those sent, the ones that the server had read before; absent: none", exclude_if=is_zero
    )
    reasoning_tokens: int = Field(
        0, description="of those generated, the ones that the model thought; absent: none", exclude_if=is_zero
    )


class RowCall(FrozenModel):
    """A call of a model."""

    role: StorableText = Field(description="what the model was asked for: answer, judge, service, …")
    model: StorableText = Field(description="name of the model")
    usage: TokenUsage = Field(TokenUsage(), description="tokens of the call")
    ms: Milliseconds = Field(0.0, description="time of the last try, without waiting")
    ttft_ms: Milliseconds | None = Field(None, description="time to first token; null where nothing was streamed")
    waited_ms: Milliseconds = Field(0.0, description="time spent waiting between tries and for a turn")
    retries: int = Field(0, description="tries after the first")
    recorded: bool = Field(False, description="the times are those of the recorded call")
    recorded_at: StorableText = Field(
        "", description="when a replayed call was recorded: UTC, ISO 8601; empty: nobody knows"
    )
    finish_reason: StorableText = Field(
        "", description="why the model stopped, as its server says; empty where it does not"
    )
    asked_without: tuple[StorableText, ...] = Field(
        (),
        description="parameters that the model does not take, so it was asked without them; absent: none",
        exclude_if=is_absent,
    )
    prompt: StorableText = Field("", description="digest of the messages that were sent: prompts/<digest>.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHit:
    """A chunk that a step returned."""

    chunk_id: StorableText = Field(description="as in retrieved_chunks")
    filename: StorableText = Field(description="name of its document")
    score: Finite | None = Field(default=None, description="null where the step states none")


class RowStage(FrozenModel):
    """A timed step. An agent has several of one name: each search is a step, and each call of a tool."""

    name: StorableText = Field(description="as the pipeline calls it: retrieve, rerank, generate, …")
    ms: Milliseconds = Field(description="time of the step, without waiting for other trials")
    calls: tuple[RowCall, ...] = Field((), description="calls of models within it")
    detail: Metadata = Field({}, description="what the step has to say, by name")
    kind: StorableText = Field(
        "", description="retrieve, rerank, generate, tool or decide; absent: its name says it", exclude_if=is_absent
    )
    input: PlainJson = Field(
        None, description="the query of a search, the arguments of a tool; absent: not told", exclude_if=is_absent
    )
    output: PlainJson = Field(None, description="what came out; absent: not told", exclude_if=is_absent)
    hits: tuple[StepHit, ...] = Field(
        (),
        description="what a search or a reranker returned, best first; absent: nothing, or not told",
        exclude_if=is_absent,
    )

    @property
    def does(self) -> str:
        """What kind of step it is: as it says, or else as its name does; empty for any other."""
        return self.kind or (self.name if self.name in STEP_KINDS else "")


class RowDecision(FrozenModel):
    """What the pipeline decided and why."""

    name: StorableText = Field(description="what was decided on")
    outcome: StorableText = Field(description="what was decided")
    value: Finite | None = Field(None, description="null where it was no number that decided")
    threshold: Finite | None = Field(None, description="what the value was set against; null where there is none")
    reason: StorableText = Field("", description="why, in words; empty where the pipeline gives none")


class RowError(FrozenModel):
    """Why a trial has no answer."""

    stage: StorableText = Field(description="query, retrieve, rerank, prompt, generate, parse or pipeline")
    type: StorableText = Field(description="class of the exception")
    message: StorableText = Field(description="what it says")
