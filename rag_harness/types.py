"""The nouns. Plain frozen dataclasses: small, hashable, cheap to import.

Rows and files that cross a border are pydantic models and live in ``results`` and ``dataset``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vector: TypeAlias = "npt.NDArray[np.float32]"
"""One embedding, shape (d,)."""
Matrix: TypeAlias = "npt.NDArray[np.float32]"
"""Embeddings as rows, shape (n, d)."""
TokenVectors: TypeAlias = "npt.NDArray[np.float16]"
"""One vector a token, unit length, shape (tokens, d)."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of a text with a vector each.

    Attributes:
        ids: the number of each piece in the model's vocabulary, shape (n,).
        spans: where each begins and ends in the text, shape (n, 2).
        vectors: the model's last hidden state of each, as it is, shape (n, d).
    """

    ids: npt.NDArray[np.int64]
    spans: npt.NDArray[np.int64]
    vectors: Matrix


Metadata = Mapping[str, Any]

GOLDEN = "golden"
"""The suite that tests retrieval alone: what stands in the experiment's place in ids, rows, files and gates."""
UNMARKED = "taken off"
"""What the metadata of a chunk say of ``markup`` where its text has lost the page's marks."""
SERVICE = "service"
"""The role of a call that asks somebody else's pipeline instead of a model."""
NEGATIVE = "negative"
"""The query type whose cases the documents do not answer, unless a case says otherwise."""
REVIEWED = "reviewed"
"""The label that says whether somebody has read a question: ``no`` for a draft. People wrote those without it."""
PLACEHOLDER = "placeholder"
"""The label of a question that stands where somebody is to write one: ``yes``. It is a draft, too."""
_DRAFTED = frozenset({"", "no", "false", "0"})


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the knowledge base. ``doc_id`` is its path below the knowledge base, with ``/``.

    ``pages`` are the offsets in ``text`` at which its pages begin, where it has pages.
    """

    doc_id: str
    text: str
    title: str
    metadata: Metadata = field(default_factory=dict)
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is embedded and retrieved.

    ``document.text[start:end]`` is ``text``, except where a table's header row was repeated in
    front of a later piece: then ``text`` is ``repeated_header + document.text[start:end]``.
    ``section`` is the path of headings, outermost first; ``index`` counts within the document.
    ``pages`` are the first and the last page that it has text of, from 1, where its document has pages.
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
    pages: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """All that a pipeline ever sees of a case, so gold cannot leak into an answer.

    ``inputs`` is what else the user sent, e.g. ``selected_text``: plain JSON, by name.
    """

    query_id: str
    text: str
    inputs: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim quote of a document that carries the answer."""

    filename: str
    quote: str


@dataclass(frozen=True, slots=True)
class Case:
    """A query with its gold, which only the harness sees.

    ``query_type`` is a label like any other; ``answerable`` says whether the documents answer the query. ``qrels`` maps
    documents to their relevance, a whole number: above 0 is relevant.
    """

    query: Query
    query_type: str = "direct"
    ground_truth: str = ""
    qrels: Mapping[str, int] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    answerable: bool = True
    metadata: Metadata = field(default_factory=dict)

    @property
    def context_reference(self) -> tuple[str, ...]:
        """The relevant documents."""
        return tuple(doc_id for doc_id, gain in self.qrels.items() if gain > 0)

    @property
    def labels(self) -> dict[str, str]:
        """What the case can be sliced by: values of its metadata, and its query type."""
        return {**slices_of(self.metadata), "query_type": self.query_type}


def slices_of(metadata: Metadata) -> dict[str, str]:
    """Return what a case can be sliced by: the short plain values of its metadata, as text."""
    return {key: str(value) for key, value in metadata.items() if isinstance(value, (str, bool, int)) and key}


def review_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Return what every case is by its review, whatever its labels say or leave out: ``yes`` or ``no`` each."""
    is_read = review_said(labels.get(REVIEWED, "yes")) == "yes"
    return {REVIEWED: "yes" if is_read else "no", PLACEHOLDER: labels.get(PLACEHOLDER, "no")}


def review_said(said: object) -> Literal["yes", "no", "rejected"]:
    """Return what a question's ``reviewed`` means, however it is written: ``true`` and a name are ``yes``."""
    word = str(said).strip().lower()
    return "no" if word in _DRAFTED else "rejected" if word == "rejected" else "yes"


def is_in(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    """Whether a case with these labels is in a slice; every case is in ``reviewed=yes`` or in ``reviewed=no``."""
    if REVIEWED not in where and PLACEHOLDER not in where:
        return where.items() <= labels.items()
    review = review_of(labels)
    return all(value in (labels.get(key), review.get(key)) for key, value in where.items())


@dataclass(frozen=True, slots=True)
class TrialId:
    """One experiment on one query: what makes a row unique in a run. ``str`` is the id of the test."""

    experiment: str
    query_id: str

    def __str__(self) -> str:
        return f"{self.experiment}-{self.query_id}"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """How documents become an index. Two experiments with the same spec and data share chunks, vectors and index.

    ``chunk_size`` and ``overlap`` count tokens of the embedder. ``chunker``, ``embedder`` and ``index`` are registered
    names or models, as the options of the same names take them. ``least`` is the fewest tokens of a chunk, for
    chunkers that join shorter ones. With ``windows`` a chunk may be longer than the embedder reads: the index then
    holds windows of it, and the chunk that has the best window is found.
    """

    chunker: str
    chunk_size: int
    overlap: int
    embedder: str
    index: str
    least: int = 0
    windows: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved chunk. ``score`` is the first stage's; ``rank`` is 1-based; ``source`` names the retriever.

    ``scores`` has the score of each signal by its name, that of ``source`` among them: dense, bm25, rerank, …
    """

    chunk: Chunk
    score: float
    rank: int
    source: str = "dense"
    scores: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.source not in self.scores:
            object.__setattr__(self, "scores", {self.source: self.score, **self.scores})

    @property
    def rerank_score(self) -> float | None:
        """The reranker's score, None where there was no reranker."""
        return self.scores.get("rerank")

    def reranked(self, score: float, rank: int) -> Hit:
        """Return this hit with a rerank score and its new rank; the first score is kept."""
        return replace(self, rank=rank, scores={**self.scores, "rerank": score})


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
    """What a chat model returned: its text, the tokens, and the times in milliseconds.

    ``recorded_at`` is UTC, ISO 8601, of an answer that is replayed, empty where its recording has no date; ``outdated``
    says that it was recorded by another version of the model than there is now. ``finish_reason`` is why the model
    stopped, in its server's word: ``stop``, ``length``; empty where it does not say.
    """

    text: str
    model: str
    usage: Usage
    total_ms: float
    ttft_ms: float | None = None
    retries: int = 0
    waited_ms: float = 0.0
    recorded: bool = False
    recorded_at: str = ""
    outdated: bool = False
    finish_reason: str = ""


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
class Call:
    """One call of a model that a stage made; milliseconds, without what was waited for a turn and between tries.

    ``messages`` are the prompt as it was sent: they are kept beside the rows, which name them. A call of role
    ``service`` asks somebody else's pipeline: ``usd`` is what it costs, None where nobody knows, and ``version`` is the
    service's, empty where it has none. ``recorded_at``, ``outdated`` and ``finish_reason`` are those of the completion.
    """

    role: str
    model: str
    usage: Usage = field(default_factory=Usage)
    ms: float = 0.0
    ttft_ms: float | None = None
    waited_ms: float = 0.0
    retries: int = 0
    recorded: bool = False
    messages: tuple[Message, ...] = ()
    usd: float | None = None
    recorded_at: str = ""
    outdated: bool = False
    version: str = ""
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A timed step of a trial: ``retrieve``, ``rerank``, ``generate``, …, the calls it made, and what it has to say."""

    name: str
    ms: float
    calls: tuple[Call, ...] = ()
    detail: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pipeline decided and why: ``value`` was set against ``threshold``."""

    name: str
    outcome: str
    value: float | None = None
    threshold: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """What a pipeline returns for a query.

    ``retrieved`` is what the first stage returned (with rerank scores where there was a reranker), ``context`` is what
    went into the prompt, in prompt order: ``[Source 1]`` is ``context[0]``. ``confidence`` lies in [0, 1]. Where there
    are ``stages``, times, tokens and model are read off them; else ``usage``, ``timings`` and ``model`` say them.
    ``ranking`` are the names that ranking measures look up, where they are not the documents of the chunks.
    """

    answer: Answer
    retrieved: tuple[Hit, ...] = ()
    context: tuple[Hit, ...] = ()
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    model: str = ""
    stages: tuple[Stage, ...] = ()
    decisions: tuple[Decision, ...] = ()
    confidence: float | None = None
    ranking: tuple[str, ...] | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls of models, in their order."""
        return tuple(call for stage in self.stages for call in stage.calls)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no answer: the stage it died in, the type of the error, its message."""

    stage: str
    error_type: str
    message: str
    raw_output: str = ""
    critical: bool = False
