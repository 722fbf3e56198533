"""The verbs: one Protocol per replaceable part.

A local, CPU-bound verb is sync and is run off the event loop; a network-bound verb is async; none is both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rag_harness.types import (
    Chunk,
    Completion,
    Hit,
    Matrix,
    Message,
    Pieces,
    PipelineOutput,
    Query,
    TokenVectors,
    Vector,
)

if TYPE_CHECKING:
    from rag_harness.settings import Settings


class Store(Protocol):
    """Arrays by content key; see ``recording.store``."""

    def get(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return the array of each key, None where there is none."""
        ...

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Add arrays of shape (rows, d)."""
        ...


class Stores(Protocol):
    """The stores of a run, by kind and model."""

    def open(self, kind: str, model: str, revision: str) -> Store:
        """Return the store of ``kind`` (vectors, tokens, pairs, chunks) for one model and revision."""
        ...

    def flush(self) -> None:
        """Write everything that is waiting."""
        ...


class LexicalScorer(Protocol):
    """Scores every chunk by the words it shares with a query."""

    def scores(self, query: str) -> Mapping[str, float]:
        """Return the score of each chunk by chunk_id."""
        ...


class LexicalIndex(LexicalScorer, Protocol):
    """Finds chunks by words."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best chunks, best first, ranks from 1."""
        ...


class TokenEmbedder(Protocol):
    """Gives token vectors, for late interaction."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def revision(self) -> str:
        """What else decides the vectors."""
        ...

    def token_vectors(self, texts: Sequence[str], role: str) -> list[TokenVectors]:
        """Return each text's token vectors; ``role`` is ``query`` or ``document``."""
        ...


class Parts(Protocol):
    """What the adapter of a model may ask for when it is created; each part is made on first use."""

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        ...

    @property
    def stores(self) -> Stores:
        """Where vectors and scores are kept."""
        ...

    @property
    def cassettes(self) -> Any:
        """The recorded answers of the profile: a ``recording.cassettes.Cassettes``."""
        ...


class ChatParts(Parts, Protocol):
    """What a chat adapter may ask for: it is made for one role with its sampling.

    ``settings`` are those of that role: ``chat_model``, ``chat_base_url``, ``chat_key``, ``temperature`` and
    ``max_output_tokens`` say what this model is, whatever the run's own answer role has.
    """

    @property
    def meter(self) -> Any:
        """The run's budget and its limiter for each base URL: a ``models.meter.Meter``, one for all chat models."""
        ...


class RetrievalParts(Protocol):
    """What the adapter of an index or a reranker may ask for: it is made for one set of documents and one spec."""

    @property
    def settings(self) -> Settings:
        """The effective settings, with the spec's own model, lengths and index."""
        ...

    @property
    def stores(self) -> Stores:
        """Where vectors and scores are kept."""
        ...

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index."""
        ...

    @property
    def token_embedder(self) -> TokenEmbedder:
        """The same embedder, where it gives token vectors."""
        ...

    @property
    def lexical(self) -> LexicalScorer:
        """BM25 over all chunks."""
        ...

    @property
    def content_digest(self) -> str:
        """Digest of chunks and embedding model: names an index that holds the same content."""
        ...


class Tokenizer(Protocol):
    """Counts tokens as the embedding model does."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, special tokens included."""
        ...


class Embedder(Protocol):
    """Turns texts into unit-length vectors."""

    @property
    def model(self) -> str:
        """Name of the model, as its publisher writes it."""
        ...

    @property
    def revision(self) -> str:
        """What else decides the vector: weights' digest, precision, longest input."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens; anything behind it would be cut off."""
        ...

    def tokenizer(self) -> Tokenizer:
        """Return the model's own tokenizer."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return unit-length vectors of shape (n, d), in the order of ``texts``."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Return unit-length vectors of shape (n, d); a query over ``max_tokens`` is an error, never cut."""
        ...


class Index(Protocol):
    """Finds the chunks whose vectors are nearest to a query's.

    One that also has ``search_many(vectors, k)``, a list of vectors -> a list of their hits, is given the queries in
    flight together.
    """

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Store ``chunks`` with their ``vectors``; row i belongs to chunk i."""
        ...

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine, best first, ranks from 1."""
        ...

    def __len__(self) -> int: ...


@runtime_checkable
class PersistentIndex(Index, Protocol):
    """An index that may be there from an earlier run; one of a user's own need not have this."""

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Return True where the content of these very chunks is there already: nothing is left to ``upsert``."""
        ...


class Reranker(Protocol):
    """Puts candidates into a better order."""

    @property
    def model(self) -> str:
        """Name of the model or method."""
        ...

    @property
    def revision(self) -> str:
        """What else decides the order; part of the fingerprint."""
        ...

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return all ``hits`` with rerank scores and new ranks, best first; the caller cuts the list.

        A reranker that also has ``rerank_many(requests)``, a list of (query, hits) -> a list of rankings, is given the
        queries in flight together. One whose scores compare between queries has ``absolute(query, hits)``, which
        returns such a score of each hit, in its order: r1 asks it whether the best hit is any good. A cross-encoder's
        is the logit, without a sigmoid.
        """
        ...


class Retriever(Protocol):
    """The retrieve step of a pipeline, on its own."""

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best hits for ``query``, best first, ranks from 1."""
        ...


class ChatModel(Protocol):
    """Answers a conversation, over the network or in process. One with ``async aclose()`` is closed at the end."""

    @property
    def model(self) -> str:
        """Name of the model, as its server knows it."""
        ...

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer; ``response_format`` is a JSON schema that the text should follow.

        One that has a seed adds ``rag_harness.models.anew.seed_shift`` to it: repeats are to differ.
        """
        ...


@runtime_checkable
class Pipeline(Protocol):
    """One RAG pipeline. It sees the query and nothing of the gold."""

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer ``query``. Errors may be raised: the harness turns them into a row."""
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A pipeline with what it is made of. What is not declared here is not asked for.

    Attributes:
        id: its name, e.g. ``e3``: of its marker, its rows and its gates.
        pipeline: answers queries; any object with a method ``answer``.
        data: the named data that it is asked about; empty is the run's own knowledge base and queries.
        ingredients: what decides its answers, by name, as plain JSON: the fingerprint is made from it. Parts that it is
            built of note theirs themselves; what it sets in their place stands here.
        code: the modules that its parts run, by part; noted in the same way. What they import is found.
        retriever: the retrieve step on its own, for the golden suite; None where it retrieves nothing.
        prepare: makes ready, once and for all workers, what queries need before the first trial: index, vectors.
        answer_from: answers a query from given hits, otherwise as the pipeline does; lets --rag-attribute change one
            thing and run a failed trial again. None where it cannot.
        chunks: returns all that its index holds; None where it has none, or does not say.
        has_version: whether its answers can be told from those of another version of what answers: where they cannot, a
            run that asks takes over what an unfinished run has left, and nothing of one that has ended.
    """

    id: str
    pipeline: Any
    data: str = ""
    ingredients: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Collection[str]] = field(default_factory=dict)
    retriever: Retriever | None = None
    prepare: Callable[[Sequence[Query]], None] | None = None
    answer_from: Callable[[Query, Sequence[Hit]], Awaitable[PipelineOutput]] | None = None
    chunks: Callable[[], Sequence[Chunk]] | None = None
    has_version: bool = True


class JudgeParts(Parts, Protocol):
    """What a judge may ask for when it is created."""

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        """Return the chat model of a role; that of a judge is ``judge``."""
        ...

    def embedder(self, model: str = "") -> TextEmbedder:
        """Return the embedder of ``model``, the run's own where none is named, behind its stores."""
        ...


class TextEmbedder(Embedder, TokenEmbedder, Protocol):
    """An embedder that gives token vectors too, and the word pieces of a text with where they stand."""

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        """Return the word pieces of ``text`` of any length, each with its last hidden state.

        The model reads windows that end at ``borders`` where it can. Same text and borders: same digits.

        Raises:
            PrerequisiteError: the embedder has no word pieces.
            RecordingMissError: the model may not be asked in this mode.
        """
        ...
