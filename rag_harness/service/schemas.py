"""The bodies of requests and answers, from which the OpenAPI page is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, field_validator, model_validator

from rag_harness.service.app_state import MOST_TURNS_KEPT
from rag_harness.service.keys import COLLECTION

Outcome = Literal["pass", "warn", "abstain", "unchecked"]
"""``unchecked``: the experiment answers and does not say how sure it is."""
Mode = Literal["normal", "strict"]
CollectionName = Annotated[str, StringConstraints(pattern=f"^{COLLECTION}$")]

_ANSWER: dict[str, JsonValue] = {
    "answer": "You can return lamps within 45 days [Source 1].",
    "citations": [
        {
            "answer_start": 0,
            "answer_end": 46,
            "source": 1,
            "document": "lamps.md",
            "section": "Returns",
            "page": None,
            "url": None,
            "quote": "Lamps can be returned within 45 days.",
            "start": 118,
            "end": 155,
        }
    ],
    "confidence": 0.83,
    "decision": "pass",
    "reasons": [],
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "experiment": "r1",
}

_HEALTH: dict[str, JsonValue] = {
    **{"status": "ok", "version": "0.1.0", "model": "embedded/extractive"},
    **{"docs": 100, "chunks": 583, "index_size": 583},
}


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)


class Said(_Strict):
    """What somebody said before the question."""

    role: Literal["user", "assistant"]
    content: str


class Asked(_Strict):
    """A question."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"examples": [{"query": "How long can I return a lamp?", "mode": "normal"}]}
    )

    query: str = Field(min_length=1, description="the question, in plain words")
    inputs: dict[str, Any] = Field(default_factory=dict, max_length=32, description="what else the user sent")
    mode: Mode = Field(
        default="normal",
        description="strict: only answers with no warning except a weak search; none is streamed before",
    )
    debug: bool = Field(default=False, description="say which steps were taken, and what was found")
    collection: CollectionName | None = Field(default=None, description="of a key that is bound to none: which one")
    conversation: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{32}$",
        description="of POST /conversations, where the server keeps what is said",
    )
    history: list[Said] = Field(
        default_factory=list,
        max_length=2 * MOST_TURNS_KEPT,
        description="what was said before, the oldest first, where the client keeps the conversation",
    )

    @model_validator(mode="after")
    def _has_one_history(self) -> Asked:
        if self.history and (self.conversation is not None or "history" in self.inputs):
            other = "conversation" if self.conversation is not None else "inputs.history"
            raise ValueError(f"history and {other} both say what was said before; send one of them")
        return self

    @field_validator("query")
    @classmethod
    def _has_words(cls, query: str) -> str:
        if not query.strip():
            raise ValueError("there is no question in it")
        return query


class Cited(BaseModel):
    """What a part of an answer rests on: ``quote`` is the document's text from ``start`` to ``end``, exactly."""

    answer_start: int = Field(ge=0)
    answer_end: int = Field(ge=0)
    source: int = Field(ge=1, description="the number in the answer's [Source n]")
    document: str
    section: str
    page: int | None
    url: str | None
    quote: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Found(BaseModel):
    """A passage that was found."""

    id: str
    document: str
    section: str
    score: float
    text: str


class Step(BaseModel):
    """A stage of the answer, in milliseconds."""

    name: str
    ms: float
    calls: int


class Debug(BaseModel):
    """How an answer came about."""

    stages: list[Step]
    retrieved: list[Found] = Field(description="what the search found, best first")
    context: list[Found] = Field(description="what the answer was made from; empty where none was tried")
    decisions: list[dict[str, Any]]


class Answered(BaseModel):
    """An answer, or that there is none, and why."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"examples": [_ANSWER]})

    answer: str
    citations: list[Cited]
    confidence: float | None = Field(
        ge=0, le=1, description="chance that the answer is right, or that the documents have none; null: nobody says"
    )
    decision: Outcome
    reasons: list[str] = Field(description="codes, each with what a person wants to know behind a colon")
    trace_id: str
    experiment: str
    conversation: str | None = Field(None, description="in which it was asked, where the server keeps one")
    turn: int | None = Field(None, ge=1, description="its number in the conversation")
    history_read: bool | None = Field(
        None, description="whether the experiment looked at what was said before; null: nothing was"
    )
    debug: Debug | None = None


class Source(BaseModel):
    """A passage from which an answer was made."""

    source: int = Field(ge=1, description="the number in the answer's [Source n]")
    document: str
    section: str
    page: int | None
    score: float
    text: str


class AnswerAgain(Answered):
    """An answer that was given, with its question and its sources."""

    question: str
    mode: Mode
    sources: list[Source]


class Conversation(BaseModel):
    """A conversation that the server keeps in memory, until a day after its last turn."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"examples": [{"conversation": "9f2c4e0a7b1d4c5e8a6f3b2d1c0e9f8a"}]}
    )

    conversation: str


class Doc(BaseModel):
    """A document of a collection."""

    doc_id: str
    name: str
    status: Literal["pending", "ready", "failed", "deleting"]
    why: str = Field("", description="why it failed; of one that is ready, which charset was guessed")
    chunks_created: int
    dropped: dict[str, int]
    coverage: float | None = Field(description="share of the text, blanks aside, that can be found")
    bytes: int
    created: str


class Docs(BaseModel):
    """All documents of a collection."""

    collection: str
    documents: list[Doc]


class Health(BaseModel):
    """That the process lives, and what it has. Where it has keys, only who sends one is told more than ``status``."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"examples": [_HEALTH]})

    status: Literal["ok"] = "ok"
    version: str | None = Field(None, description="of this server")
    model: str | None = Field(None, description="that answers; an experiment may ask none")
    docs: int | None = Field(None, ge=0, description="documents that questions find, of all collections of the key")
    chunks: int | None = Field(None, ge=0, description="of these documents")
    index_size: int | None = Field(None, ge=0, description="vectors in the index, of these documents")


class Ready(BaseModel):
    """Whether questions can be answered."""

    status: Literal["ready", "starting"]
    experiment: str
    progress: str = Field("", description="of a start, how far it is: loading 48/100 documents, 1.5/s, 0:40 left")


class Rating(_Strict):
    """What somebody thought of an answer."""

    thumb: Literal[-1, 1]
    comment: str = Field(default="", max_length=2_000)


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class _Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Failure(BaseModel):
    """OpenAI's shape of a problem."""

    error: _Error
