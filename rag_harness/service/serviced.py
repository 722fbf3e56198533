"""What the routes of one server share: its service and the collections that they call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag_harness.service.access.principal import Principal
from rag_harness.service.answer_loop import AnswerLoop
from rag_harness.service.conversations import Conversations
from rag_harness.service.corpus.serving import DEFAULT, DocumentInfo, Serving
from rag_harness.service.options import Options
from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from rag_harness.service.observing.metrics import Metrics
    from rag_harness.service.observing.traces import Traces
    from rag_harness.service.state.database import Database
    from rag_harness.service.state.folder import StateFolder


class ServedCollection(Protocol):
    """The documents of a tenant, and the answers about them."""

    @property
    def name(self) -> str:
        """The collection's name, as keys have it."""
        ...

    @property
    def serving(self) -> Serving:
        """The newest state. A question keeps the state with which it began."""
        ...

    def documents(self) -> list[DocumentInfo]:
        """Return all documents, by name."""
        ...

    def document(self, doc_id: str) -> DocumentInfo:
        """Return one document; KeyError if it does not exist."""
        ...

    async def ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> DocumentInfo:
        """Add a document, and return its details. It replaces a document of the same name."""
        ...

    async def start_ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> str:
        """Begin to add a document, and return the id under which ``document`` gives its details."""
        ...

    async def delete(self, doc_id: str) -> None:
        """Remove a document; KeyError if it does not exist."""
        ...


class Collections(Protocol):
    """The collections of all tenants."""

    @property
    def progress(self) -> str:
        """How far their loading is; empty where that is not known, or all are loaded."""
        ...

    def get(self, name: str) -> ServedCollection:
        """Return a collection; KeyError if it does not exist."""
        ...

    async def create(self, name: str) -> ServedCollection:
        """Return a collection; it is made if it does not exist."""
        ...


@dataclass(frozen=True)
class Service:
    """One server: its options, its collections, its state and the conversations that it keeps.

    ``model`` is the name of the model that answers, ``answers`` the loop on which experiments do so.
    """

    options: Options
    collections: Collections
    state: StateFolder
    traces: Traces
    metrics: Metrics
    model: str = ""
    conversations: Conversations = field(default_factory=Conversations)
    answers: AnswerLoop = field(default_factory=AnswerLoop)

    @property
    def database(self) -> Database:
        """The database, which has everything except the vectors' shards."""
        return self.state.database

    @property
    def incoming(self) -> Path:
        """The folder of uploads that are being read."""
        return self.state.incoming

    def name_for(self, principal: Principal, asked: str | None) -> str:
        """Return the name of the collection that a request is about.

        Raises:
            ProblemError: the key is bound to another collection. The answer is the same as for a collection that does
                not exist.
        """
        if principal.collection is None:
            return asked or DEFAULT
        if asked not in (None, principal.collection):
            raise no_such_collection()
        return principal.collection

    def collection(self, principal: Principal, asked: str | None) -> ServedCollection:
        """Return the collection that a request is about.

        Raises:
            ProblemError: the collection does not exist, as far as this key may know.
        """
        try:
            return self.collections.get(self.name_for(principal, asked))
        except KeyError:
            raise no_such_collection() from None


def no_such_collection() -> ProblemError:
    """Return the problem of a request whose collection does not exist for it."""
    return ProblemError(404, "no_such_collection", "There is no such collection, or this key is bound to another.")


def no_such_document() -> ProblemError:
    """Return the problem of a request whose document does not exist for it."""
    return ProblemError(404, "no_such_document", "There is no such document in this collection.")
