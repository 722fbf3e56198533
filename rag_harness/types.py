"""The nouns. Plain frozen dataclasses: small, hashable, cheap to import.

Rows and files that cross a border are pydantic models and live in ``results`` and ``dataset``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vector: TypeAlias = "npt.NDArray[np.float32]"
"""One embedding, shape (d,)."""
Matrix: TypeAlias = "npt.NDArray[np.float32]"
"""Embeddings as rows, shape (n, d)."""
TokenVectors: TypeAlias = "npt.NDArray[np.float16]"
"""One vector a token, unit length, shape (tokens, d)."""

Metadata = Mapping[str, Any]


class QueryType(str, Enum):
    """What kind of answer a case has."""

    DIRECT = "direct"
    MULTI_HOP = "multi_hop"
    NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the knowledge base. ``doc_id`` is its path below the knowledge base, with ``/``."""

    doc_id: str
    text: str
    title: str
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is embedded and retrieved.

    ``document.text[start:end]`` is ``text``, except where a table's header row was repeated in
    front of a later piece: then ``text`` is ``repeated_header + document.text[start:end]``.
    ``section`` is the path of headings, outermost first; ``index`` counts within the document.
    """

    chunk_id: str
    doc_id: str
    text: str
    start: int = 0
    end: int = 0
    section: tuple[str, ...] = ()
    index: int = 0
    repeated_header: str = ""
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """All that a pipeline ever sees of a case, so gold cannot leak into an answer."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim quote of a document that carries the answer."""

    filename: str
    quote: str


@dataclass(frozen=True, slots=True)
class Case:
    """A query with its gold, which only the harness sees."""

    query: Query
    query_type: QueryType
    ground_truth: str
    context_reference: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved chunk. ``score`` is the first stage's; ``rank`` is 1-based; ``source`` names the retriever."""

    chunk: Chunk
    score: float
    rank: int
    source: str = "dense"
    rerank_score: float | None = None

    def reranked(self, score: float, rank: int) -> Hit:
        """Return this hit with a rerank score and its new rank; the first score is kept."""
        return replace(self, rerank_score=score, rank=rank)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the model's server counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """What a chat model returned: its text, the tokens, and the times in milliseconds."""

    text: str
    model: str
    usage: Usage
    total_ms: float
    ttft_ms: float | None = None
    retries: int = 0
    waited_ms: float = 0.0
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, read into parts.

    ``citations`` are the 1-based source numbers that exist in the context, ``invalid_citations`` those that do not.
    """

    text: str
    reasoning_steps: tuple[str, ...] | None = None
    citations: tuple[int, ...] = ()
    invalid_citations: tuple[int, ...] = ()
    abstained: bool = False
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds per stage; None where the stage does not exist for the experiment."""

    retrieval_ms: float | None = None
    rerank_ms: float | None = None
    llm_ms: float | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """What a pipeline returns for a query.

    ``retrieved`` is what the first stage returned (with rerank scores where there was a reranker), ``context`` is what
    went into the prompt, in prompt order: ``[Source 1]`` is ``context[0]``.
    """

    answer: Answer
    retrieved: tuple[Hit, ...] = ()
    context: tuple[Hit, ...] = ()
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    model: str = ""
    retries: int = 0
    waited_ms: float = 0.0
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no answer: the stage it died in, the type of the error, its message."""

    stage: str
    error_type: str
    message: str
    raw_output: str = ""
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one trial. ``value`` None means it could not be measured, and ``reason`` says why; never NaN."""

    measure: str
    value: float | None
    reason: str = ""
    version: int = 1
