"""Protocols, one for each part that can be replaced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rag_harness.core.types import (
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
    from rag_harness.core.settings import Settings


# A method that computes in this process is sync and runs off the event loop. A method that uses the network is async.


class Store(Protocol):
    """Keeps arrays, each under the digest of its content; see ``recording.store``."""

    def get(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return the array of each key, or None where there is none."""
        ...

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Add arrays of shape (rows, d)."""
        ...


class Stores(Protocol):
    """The stores of a run, by kind and model."""

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> Store:
        """Return the store of ``kind`` (vectors, tokens, pairs, chunks) for one model and revision.

        Without ``may_keep`` only mode record keeps results, for replay: they are of a part of a user's own.
        """
        ...

    def flush(self) -> None:
        """Write all arrays that are still in memory."""
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
        """Everything besides the model's name that changes the vectors."""
        ...

    def token_vectors(self, texts: Sequence[str], role: str) -> list[TokenVectors]:
        """Return each text's token vectors; ``role`` is ``query`` or ``document``."""
        ...


class Parts(Protocol):
    """The parts that the adapter of a model may use when it is created. Each part is made on first use."""

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        ...

    @property
    def stores(self) -> Stores:
        """The stores of vectors and scores."""
        ...

    @property
    def cassettes(self) -> Any:
        """The recorded answers of the profile: a ``recording.cassettes.Cassettes``."""
        ...


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The key of a role, for messages: the role, the variable that holds its key, and whether this is set."""

    role: str = "answer"
    variable: str = "RAG_CHAT_API_KEY"
    is_set: bool = False


class ChatParts(Parts, Protocol):
    """The parts that a chat adapter may use. An adapter is made for one role.

    ``settings`` are the settings of that role: its ``chat_model``, ``chat_base_url``, ``chat_key``, ``temperature`` and
    ``max_output_tokens``. They may differ from those of the role that answers.
    """

    @property
    def meter(self) -> Any:
        """A ``models.meter.Meter``: the run's budget, and a limiter for each base URL. All chat models share it."""
        ...

    @property
    def key_owner(self) -> KeyOwner:
        """The role, and the variable that holds its key."""
        ...


class RetrievalParts(Protocol):
    """The parts that the adapter of an index or a reranker may use, made for one set of documents and one spec."""

    @property
    def settings(self) -> Settings:
        """The effective settings, with the spec's own model, lengths and index."""
        ...

    @property
    def stores(self) -> Stores:
        """The stores of vectors and scores."""
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
        """Digest of the chunks and the embedding model. Indexes with the same digest hold the same content."""
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
        """Everything besides the name that changes the vectors: digest of the weights, precision, longest input."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens. The model would cut off the rest."""
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

    An index may also have ``search_many(vectors, k)``: a list of vectors -> a list of their hits. The harness then
    passes all queries in flight in one call.
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
    """An index that can be reused by a later run. A user's own index may leave this out."""

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the index already holds exactly these chunks. Then nothing is left to ``upsert``."""
        ...


class Reranker(Protocol):
    """Puts candidates into a better order."""

    @property
    def model(self) -> str:
        """Name of the model or method."""
        ...

    @property
    def revision(self) -> str:
        """Everything besides the name that changes the order. It is part of the fingerprint."""
        ...

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return all ``hits`` with rerank scores and new ranks, best first; the caller cuts the list.

        A reranker may also have ``rerank_many(requests)``: a list of (query, hits) -> a list of rankings. The harness
        then passes all queries in flight in one call. A reranker whose scores can be compared between queries has
        ``absolute(query, hits)``. It returns such a score for each hit, in the order of ``hits``; r1 decides by it
        whether the best hit is good enough. A cross-encoder returns the logit, without a sigmoid.
        """
        ...


class ChunkWriter(Protocol):
    """Makes other texts by which chunks are found, summaries say: ``parts.rewritten(retrieval, writer)``."""

    @property
    def identity(self) -> Any:
        """Everything that decides the texts, as plain JSON. A service keeps texts as long as it stays the same."""
        ...

    def rewritten(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return these chunks, in their order, with other texts; metadata may be added, and all else stays.

        A service asks for some chunks at a time, so the text of a chunk depends on nothing but this chunk.

        Raises:
            RagHarnessError: they cannot be made.
        """
        ...


class Retriever(Protocol):
    """The retrieve step of a pipeline, on its own."""

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best hits for ``query``, best first, ranks from 1."""
        ...


class ChatModel(Protocol):
    """Answers a conversation, over the network or in process. A model with ``async aclose()`` is closed at the end."""

    @property
    def model(self) -> str:
        """Name of the model, as its server knows it."""
        ...

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer; ``response_format`` is a JSON schema that the text should follow.

        A model with a seed adds ``rag_harness.seed_shift.get()`` to it, so that repeats differ.
        """
        ...


@runtime_checkable
class Pipeline(Protocol):
    """One RAG pipeline. It sees the query and never the gold."""

    def answer(self, query: Query, /) -> Any:
        """Answer ``query``: with a ``PipelineOutput``, or with the text alone. It may be ``async def`` or ``def``.

        It may raise any error; the harness writes the error into the row.
        """
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A pipeline, its name, and its ingredients. The harness uses nothing else of it.

    Attributes:
        id: its name, e.g. ``e3``. Its marker, rows and gates have the same name.
        pipeline: answers queries; any object with a method ``answer``.
        data: the name of the data that it is asked about. Empty: the run's own knowledge base and queries.
        ingredients: what decides its answers, by name, as plain JSON. The fingerprint is made from it. Each part notes
            its own ingredients; list here only what the experiment sets itself.
        code: the modules that its parts run, by part. Each part notes its own.
        retriever: the retrieve step alone, used by the golden suite. None where the pipeline retrieves nothing.
        prepare: builds the index and the vectors before the first trial. It runs once for all workers.
        answer_from: answers a query from given hits, otherwise as the pipeline does. --rag-attribute uses it to change
            one thing and run a failed trial again. None where the pipeline cannot do that.
        chunks: returns all chunks of its index. None where it has no index, or does not show its chunks.
        retrieves: whether it looks for documents. By default this package's own do where they have a retriever, and a
            pipeline of yours may say it by an attribute ``retrieves``. Of one that does, an answer without a context
            counts: its faithfulness and context recall are 0. Of one that does not, they are undefined. None: it does
            where any answer comes with a context.
        find_page: finds the page of a context: by the name that your pipeline gives it, a path or a URL, else by the
            words of the context. The harness sets it.
        expect: expectations of each of its answers, JSON objects as in the line of a question. They are gold. So they
            are not part of the fingerprint, even where they are written between the brackets of ``Experiment(…)``.
        is_reusable: whether rows of an earlier run are reused unasked. They are where everything that answers is code
            of this package, or where the pipeline states a ``fingerprint``; see ``core.registry``.
    """

    id: str
    pipeline: Pipeline
    data: str = ""
    ingredients: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Collection[str]] = field(default_factory=dict)
    retriever: Retriever | None = None
    prepare: Callable[[Sequence[Query]], None] | None = None
    answer_from: Callable[[Query, Sequence[Hit]], Awaitable[PipelineOutput]] | None = None
    chunks: Callable[[], Sequence[Chunk]] | None = None
    is_reusable: bool = True
    expect: Sequence[Mapping[str, Any]] = ()
    retrieves: bool | None = None
    find_page: Callable[[str, str], str] | None = None


class JudgeParts(Parts, Protocol):
    """The parts that a judge may use when it is created."""

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        """Return the chat model of a role. A judge has the role ``judge``."""
        ...

    def embedder(self, model: str = "") -> TextEmbedder:
        """Return the embedder of ``model``, by default the run's own. It reads and fills the stores."""
        ...


class TextEmbedder(Embedder, TokenEmbedder, Protocol):
    """An embedder that also gives token vectors, and the word pieces of a text with their places."""

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        """Return the word pieces of ``text``, which may have any length, each with its last hidden state.

        The model reads windows, which end at ``borders`` where possible. Same text and borders give the same digits.

        Raises:
            PrerequisiteError: the embedder has no word pieces.
            RecordingMissError: the model may not be asked in this mode.
        """
        ...
