"""Types that all packages share, such as documents, chunks, cases.

Hits and answers; plain frozen dataclasses that are cheap to import.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# Rows and files are pydantic models; they are in ``records`` and ``data``.

Vector: TypeAlias = "npt.NDArray[np.float32]"
"""One embedding, shape (d,)."""
Matrix: TypeAlias = "npt.NDArray[np.float32]"
"""Embeddings as rows, shape (n, d)."""
TokenVectors: TypeAlias = "npt.NDArray[np.float16]"
"""One vector of unit length for each token, shape (tokens, d)."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of a text, each with its vector.

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
"""The suite that tests retrieval alone. Ids, rows, files and gates have this name instead of an experiment's."""
LANGUAGE = "language"
"""The key in the metadata of a document and its chunks of its language, two letters; English where it is missing."""
UNMARKED = "taken off"
"""The value of a chunk's metadata ``markup`` where its text has lost the markup of its page."""
SERVICE = "service"
"""The role of a call to a service, which is a whole pipeline and not a model."""
SESSION = "service_session"
"""The session of a turn in a service that keeps conversations itself: in a stage's detail, and the next turn's inputs.
"""
NEGATIVE = "negative"
"""The query type of questions that the documents do not answer. A single case may say otherwise."""
REVIEWED = "reviewed"
"""The label that says whether a person has read a question: ``no`` for a draft. Questions without it are by people."""
PLACEHOLDER = "placeholder"
"""The label of a placeholder: ``yes`` where a person still has to write the question. A placeholder is a draft, too."""
_DRAFTED = frozenset({"", "no", "false", "0"})
_LIMIT = re.compile(r"([<>]=?)([+-]?\d+(?:\.\d+)?)", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
_COMPARED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the knowledge base. ``doc_id`` is its path below the knowledge base, with ``/``.

    ``pages`` are the offsets in ``text`` at which its pages begin; empty where it has no pages.
    """

    doc_id: str
    text: str
    title: str
    metadata: Metadata = field(default_factory=dict)
    pages: tuple[int, ...] = ()

    @property
    def language(self) -> str:
        """The code of its language."""
        return str(self.metadata.get(LANGUAGE) or "en")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is embedded and retrieved.

    ``document.text[start:end]`` is ``text``, except where a table's header row was repeated in
    front of a later piece: then ``text`` is ``repeated_header + document.text[start:end]``.
    ``section`` is the path of headings, outermost first; ``index`` counts within the document.
    ``pages`` are its first and its last page, from 1, where its document has pages.
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

    @property
    def language(self) -> str:
        """The code of its document's language."""
        return str(self.metadata.get(LANGUAGE) or "en")


@dataclass(frozen=True, slots=True)
class Query:
    """The part of a case that a pipeline sees. Gold is not in it, so gold cannot leak into an answer.

    ``inputs`` is what else the user sent, e.g. ``selected_text``: plain JSON, by name.
    """

    query_id: str
    text: str
    inputs: Metadata = field(default_factory=dict)

    @property
    def history(self) -> tuple[Message, ...]:
        """Earlier messages, the oldest first; empty without any, or where ``history`` is not a list of messages."""
        said = self.inputs.get("history", ())
        each_is_message = isinstance(said, (list, tuple)) and all(_is_message(each) for each in said)
        return tuple(Message(each["role"], each["content"]) for each in said) if each_is_message else ()

    @property
    def place(self) -> dict[str, str]:
        """The id of its conversation and its number there, from 1, as labels; empty where it is not a turn."""
        conversation, turn = self.inputs.get("conversation"), self.inputs.get("turn")
        is_turn = isinstance(conversation, str) and isinstance(turn, int)
        return {"conversation": str(conversation), "turn": str(turn)} if is_turn else {}


def _is_message(said: Any) -> bool:
    return isinstance(said, Mapping) and all(isinstance(said.get(key), str) for key in ("role", "content"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim quote of a document that carries the answer."""

    filename: str
    quote: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """A demand of a case on its answer, beside gold: that it contains a text, cites a page, declines.

    Attributes:
        kind: registered name of the demand: ``contains``, ``cites``, ``max_words``.
        wanted: the demand, plain JSON.
        options: further values of the kind, by name.
        negated: whether the answer must not do it.
        weight: how much it counts among the expectations of its case; above 0.
        must: whether no other expectation counts where this one is not met.
        was: the stored answer of a snapshot; None without one, and for any other kind.
    """

    kind: str
    wanted: Any
    options: Metadata = field(default_factory=dict)
    negated: bool = False
    weight: float = 1.0
    must: bool = False
    # It is long, and whether it is kept says all that a score has to know of it.
    was: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        wanted = "" if self.wanted is True else f" {_shown(self.wanted)}"
        options = "".join(f", {name} {_shown(value)}" for name, value in self.options.items())
        return f"{'not ' * self.negated}{self.kind}{wanted}{options}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"“{value}”"
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ExpectedTool:
    """A call of a tool that an agent should make for a question.

    Attributes:
        name: name of the tool.
        args: arguments that the call should have, plain JSON; None where they do not matter.
    """

    name: str
    args: Metadata | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """The goal, the knowledge and the first message of the simulated user of a conversation that is not recorded.

    Attributes:
        opening: the first thing that the user says, word for word.
        persona: how the user writes; a script does not use it.
        goal: what the user wants to know or get done.
        facts: the facts that the user states where an answer asks for them, each with words that ask for it, or empty.
        asks: further questions, in their order.
        reached: expectations. The goal is reached when some answer of the conversation has met each of them.
        max_turns: the most turns.
        ground_truth: what the user has to know at the end. The user never says it first.
    """

    opening: str
    persona: str = ""
    goal: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    asks: tuple[str, ...] = ()
    reached: tuple[Expectation, ...] = ()
    max_turns: int = 10
    ground_truth: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A query with its gold, which the pipeline does not get.

    ``query_type`` is a label like any other. ``answerable`` says whether the documents answer the query. ``qrels`` maps
    documents to their relevance, a whole number; above 0 is relevant. ``expect`` are the expectations of the answer.
    ``scenario`` is the scenario of a turn that a simulated user asks; such a query has no text before the user asks.
    ``standalone`` is the question of a turn in words that need no earlier turn; empty where the data has none.
    ``tools`` are the tool calls that an agent should make, in their order; empty where it should make none, None where
    the data does not state them. ``left_out`` are documents that no ranking counts: in a public collection the query
    itself.
    """

    query: Query
    query_type: str = "direct"
    ground_truth: str = ""
    qrels: Mapping[str, int] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    answerable: bool = True
    metadata: Metadata = field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()
    scenario: Scenario | None = None
    standalone: str = ""
    tools: tuple[ExpectedTool, ...] | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def has_text(self) -> bool:
        """Whether its question is known before the run: a simulated user says only the first one of its scenario."""
        return self.scenario is None or self.query.text == self.scenario.opening

    @property
    def context_reference(self) -> tuple[str, ...]:
        """The relevant documents."""
        return tuple(doc_id for doc_id, gain in self.qrels.items() if gain > 0)

    @property
    def asked_alone(self) -> str:
        """The question in words that need no earlier turn; empty for a later turn whose data has none."""
        is_later = self.query.place.get("turn", "1") != "1"
        return self.standalone or ("" if is_later else self.query.text)

    @property
    def labels(self) -> dict[str, str]:
        """The labels that the case can be sliced by: values of its metadata, and its query type."""
        return {**slices_of(self.metadata), **self.query.place, "query_type": self.query_type}


def slices_of(metadata: Metadata) -> dict[str, str]:
    """Return the labels that a case can be sliced by: the short plain values of its metadata, as text."""
    return {key: str(value) for key, value in metadata.items() if isinstance(value, (str, bool, int)) and key}


def review_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels ``reviewed`` and ``placeholder`` of a case: ``yes`` or ``no``, also where they are missing."""
    is_read = review_said(labels.get(REVIEWED, "yes")) == "yes"
    return {REVIEWED: "yes" if is_read else "no", PLACEHOLDER: labels.get(PLACEHOLDER, "no")}


def review_said(said: object) -> Literal["yes", "no", "rejected"]:
    """Return what a question's field ``reviewed`` means, in one of three words. ``true`` and a name mean ``yes``."""
    word = str(said).strip().lower()
    return "no" if word in _DRAFTED else "rejected" if word == "rejected" else "yes"


def is_in(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    """Return whether a case with these labels is in a slice. Each case is in ``reviewed=yes`` or in ``reviewed=no``.

    A value of ``where`` that is a limit, ``>=3``, asks for a label that is such a number.
    """
    has_limit = any(value[:1] in ("<", ">") for value in where.values())
    if REVIEWED not in where and PLACEHOLDER not in where and not has_limit:
        return where.items() <= labels.items()
    review = review_of(labels)
    return all(
        value in (labels.get(key), review.get(key)) or _keeps(labels.get(key), value) for key, value in where.items()
    )


def limit_of(value: str) -> tuple[str, float] | None:
    """Return the comparison and the number of a limit, ``>=3``; None for any other value of a slice."""
    found = _LIMIT.fullmatch(value)
    return (found[1], float(found[2])) if found else None


def _keeps(label: str | None, value: str) -> bool:
    limit = limit_of(value)
    if limit is None or label is None or not _PLAIN_NUMBER.fullmatch(label):
        return False
    return bool(_COMPARED[limit[0]](float(label), limit[1]))


@dataclass(frozen=True, slots=True)
class TrialId:
    """One experiment on one query. It is unique in a run; its ``str`` is the id of the test."""

    experiment: str
    query_id: str

    def __str__(self) -> str:
        return f"{self.experiment}-{self.query_id}"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """How documents become an index. Experiments with the same spec and data share chunks, vectors and index.

    ``chunk_size`` and ``overlap`` count tokens of the embedder. ``chunker``, ``embedder`` and ``index`` take the same
    values as the options of these names. ``least`` is the fewest tokens of a chunk, for chunkers that join shorter
    chunks. With ``windows`` a chunk may be longer than the embedder reads. The index then holds windows of each chunk,
    and a chunk ranks by its best window.
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

    ``scores`` has the score of each signal by its name: dense, bm25, rerank, …; the score of ``source`` is among them.
    """

    chunk: Chunk
    score: float
    rank: int
    source: str = "dense"
    scores: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A dict of its own, so that rows may share it.
        own = dict(self.scores) if self.source in self.scores else {self.source: self.score, **self.scores}
        object.__setattr__(self, "scores", own)

    @property
    def rerank_score(self) -> float | None:
        """The reranker's score, or None without a reranker."""
        return self.scores.get("rerank")

    def reranked(self, score: float, rank: int) -> Hit:
        """Return this hit with a rerank score and its new rank. The first score stays."""
        return replace(self, rank=rank, scores={**self.scores, "rerank": score})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asks for. ``arguments`` are JSON as the model wrote it: it may be none."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``.

    ``tool_calls`` are those that an assistant has asked for; ``call_id`` says which one a message of role ``tool``
    answers.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the model's server counted them.

    ``cached_tokens`` are those of the prompt that it had read before, ``reasoning_tokens`` those of the completion that
    it thought. ``usd`` is their cost as the provider states it; None where it does not, or not for each call.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        stated = [each.usd for each in (self, other) if each.calls]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            None if None in stated or not stated else sum(filter(None, stated)),
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a chat model: its text, the tokens, and the times in milliseconds.

    ``recorded_at`` is when a replayed answer was recorded: UTC, ISO 8601, empty where the recording has no date.
    ``finish_reason`` is why the model stopped, in the
    server's word (``stop``, ``length``); empty where the server does not say. ``first_token`` has the natural logarithm
    of the probability of each token that the reply could have begun with, where that was requested and stated.
    ``tool_calls`` are the calls that the model asks for, where tools were offered; its text may then be empty.
    ``reasoning`` is the model's reasoning, where its server returns it. ``asked_without`` are the parameters that the
    request was sent without, because the model does not take them.
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
    finish_reason: str = ""
    first_token: Mapping[str, float] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    asked_without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The parsed answer of a model.

    ``citations`` are the cited source numbers, from 1, that exist in the context; ``invalid_citations`` do not exist.
    ``abstained`` says whether the answer declines; None leaves it to its words. ``reasoning`` is the model's reasoning
    before it. It is stored and shown, and no figure counts it.
    """

    text: str
    reasoning_steps: tuple[str, ...] | None = None
    citations: tuple[int, ...] = ()
    invalid_citations: tuple[int, ...] = ()
    abstained: bool | None = None
    raw: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds of each stage; None where the experiment has no such stage."""

    retrieval_ms: float | None = None
    rerank_ms: float | None = None
    llm_ms: float | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model by a stage. Its milliseconds exclude waiting for the limiter and between retries.

    ``messages`` are the prompt as it was sent. They are stored beside the rows, and the rows refer to them. A call of
    role ``service`` asks a whole pipeline. ``usd`` is the price as a service or a trace states it; None where it is not
    stated. ``version`` is the service's, empty where it has none. ``recorded_at``, ``finish_reason``,
    ``asked_without`` and ``reasoning`` are those of the completion.
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
    version: str = ""
    finish_reason: str = ""
    asked_without: tuple[str, ...] = ()
    reasoning: str = ""


StepKind: TypeAlias = Literal["", "retrieve", "rerank", "generate", "tool", "decide"]
"""What a step does. Empty: something else."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A timed step of a trial (``retrieve``, ``rerank``, ``generate``, …), with its calls and its notes.

    An agent has several of one name: each search is a step, and each call of a tool.

    Attributes:
        name: its name; for a tool the tool's name.
        ms: its time, in milliseconds.
        calls: the calls of models that it made.
        detail: its notes, by name.
        kind: its kind. Without one, its name may be a kind (``retrieve``, ``rerank``, ``generate``).
        input: its input: the query of a search, the arguments of a tool. Plain JSON; None where it is not known.
        output: its output, plain JSON; None where it is not known.
        hits: the hits of a search or a reranker, best first.
    """

    name: str
    ms: float
    calls: tuple[Call, ...] = ()
    detail: Metadata = field(default_factory=dict)
    kind: StepKind = ""
    input: Any = None
    output: Any = None
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a pipeline, with its reason: it compared ``value`` with ``threshold``."""

    name: str
    outcome: str
    value: float | None = None
    threshold: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """The result of a pipeline for a query.

    ``retrieved`` are the hits of the first stage, with rerank scores where there was a reranker. ``context`` are the
    hits in the prompt, in prompt order: ``[Source 1]`` is ``context[0]``. ``confidence`` lies in [0, 1]. Times, tokens
    and model come from ``stages``; without stages they come from ``usage``, ``timings`` and ``model``. ``ranking`` are
    the names that ranking measures look up, where these are not the documents of the chunks. ``total_ms`` is what all
    took, where that is not the sum of the stages: some ran at the same time, or there was work between them.
    ``trace_id`` is the id of its trace, 32 hexadecimal digits; empty where it has none. ``recorded_at`` and
    ``replayed`` are set by a replay: when the oldest recording behind it was made, and whether all of its HTTP calls
    were replayed. ``retrieval_only`` says that no answer was requested; without it, an empty answer is an error.
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
    total_ms: float | None = None
    trace_id: str = ""
    recorded_at: str = ""
    replayed: bool = False
    retrieval_only: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls of models, in order."""
        return tuple(call for stage in self.stages for call in stage.calls)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no answer: the stage that failed, the type of the error, its message."""

    stage: str
    error_type: str
    message: str
    raw_output: str = ""
    critical: bool = False
