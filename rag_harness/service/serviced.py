"""What the routes of one server share, and what they ask of its rooms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag_harness.service.access.principal import Principal
from rag_harness.service.corpus.serving import DEFAULT, DocumentInfo, Serving
from rag_harness.service.options import Options
from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from rag_harness.service.observing.metrics import Metrics
    from rag_harness.service.observing.traces import Traces
    from rag_harness.service.state.database import Database
    from rag_harness.service.state.folder import StateFolder


class Collection(Protocol):
    """The documents of a tenant, and what answers from them."""

    @property
    def name(self) -> str:
        """As keys name it."""
        ...

    @property
    def serving(self) -> Serving:
        """The newest state; a question keeps the one that it began with."""
        ...

    def documents(self) -> list[DocumentInfo]:
        """Return all documents, by name."""
        ...

    def document(self, doc_id: str) -> DocumentInfo:
        """Return one; KeyError where there is none."""
        ...

    async def ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> DocumentInfo:
        """Add a document, in place of one of the same name, and return what came of it."""
        ...

    async def start_ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> str:
        """Begin to, and return the id under which ``document`` says what came of it."""
        ...

    async def delete(self, doc_id: str) -> None:
        """Remove a document; KeyError where there is none."""
        ...


class Collections(Protocol):
    """All tenants' documents."""

    def get(self, name: str) -> Collection:
        """Return a collection; KeyError where there is none."""
        ...

    async def create(self, name: str) -> Collection:
        """Return a collection, made where there is none."""
        ...


@dataclass(frozen=True)
class Service:
    """One server: how it serves, what answers, and where its state is."""

    options: Options
    collections: Collections
    state: StateFolder
    traces: Traces
    metrics: Metrics

    @property
    def database(self) -> Database:
        """Where everything stands but vectors' shards."""
        return self.state.database

    @property
    def incoming(self) -> Path:
        """Where uploads lie while they are read."""
        return self.state.incoming

    def name_for(self, principal: Principal, asked: str | None) -> str:
        """Return the collection that a request is about.

        Raises:
            ProblemError: the key is bound to another. It exists as little as one that was never made.
        """
        if principal.collection is None:
            return asked or DEFAULT
        if asked not in (None, principal.collection):
            raise no_such_collection()
        return principal.collection

    def collection(self, principal: Principal, asked: str | None) -> Collection:
        """Return the collection that a request is about.

        Raises:
            ProblemError: there is none, as far as this key can know.
        """
        try:
            return self.collections.get(self.name_for(principal, asked))
        except KeyError:
            raise no_such_collection() from None


def no_such_collection() -> ProblemError:
    """Return what every request is told whose collection is not there for it."""
    return ProblemError(404, "no_such_collection", "There is no such collection, or this key is bound to another.")


def no_such_document() -> ProblemError:
    """Return what every request is told whose document is not there for it."""
    return ProblemError(404, "no_such_document", "There is no such document in this collection.")
