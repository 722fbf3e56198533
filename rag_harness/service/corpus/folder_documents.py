"""The folder of the default collection: taken in at the first start; later starts take in what has changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rag_harness.dataset.data import Data, DataSets
from rag_harness.dataset.knowledge_base import pages_digest
from rag_harness.files.log import log
from rag_harness.pipelines import data_of
from rag_harness.service.corpus import document_rows
from rag_harness.service.corpus.loading import Part
from rag_harness.service.corpus.tenant_collection import Arrival, TenantCollection
from rag_harness.service.corpus.uploads import dropped_of, without_half_characters
from rag_harness.service.state.database import Database
from rag_harness.settings import Settings
from rag_harness.types import Document

_BATCH = 256
"""How many documents are made ready at once. A start that is killed has to embed at most these again."""


class FolderDocuments:
    """Compares a folder with what was taken from it.

    A document that was deleted or replaced over HTTP stays so until its file changes.

    Args:
        settings: of the harness.
        folder: the folder of documents; None is the experiment's own data, which may have no folder.
        experiment: the experiment that is served.
    """

    def __init__(self, settings: Settings, folder: Path | None, experiment: str) -> None:
        self._settings, self._folder, self._experiment = settings, folder, experiment

    def bring(self, collection: TenantCollection, database: Database, part: Part) -> None:
        """Take in new and changed files, and remove documents whose files are gone. Uploads stay.

        Each batch is loaded in a block of ``part``.

        Raises:
            DataError: the folder is missing, or a file in it cannot be read.
            RecordingMissError, ModelCallError: a document cannot be embedded.
        """
        data = self._data()
        if self._folder is None and data.collection is None and not self._settings.path(data.folder).is_dir():
            log.info("There is no folder %s: the default collection is as it was", data.folder)
            return
        found = {document.doc_id: document for document in map(_whole, data.documents)}
        digests = {name: pages_digest([document]) for name, document in found.items()}
        number = collection.number
        taken, uploaded = database.read(lambda c: (document_rows.files(c, number), document_rows.uploads(c, number)))
        self._remove(collection, database, sorted(taken.keys() - found.keys()), uploaded)
        new = [name for name in found if taken.get(name) != digests[name] and name not in uploaded]
        for start in range(0, len(new), _BATCH):
            some = new[start : start + _BATCH]
            with part(start, len(some), len(new)):
                begun = database.write_now(_beginning(number, [found[name] for name in some]))
                collection.take_in(
                    [
                        Arrival(row, found[name], dropped_of(found[name]), digests[name])
                        for row, name in zip(begun, some, strict=True)
                    ]
                )
        log.info("%d documents of the folder, %d taken in", len(found), len(new))

    def _remove(
        self, collection: TenantCollection, database: Database, gone: Sequence[str], uploaded: set[str]
    ) -> None:
        collection.leave([name for name in gone if name not in uploaded])
        database.write_now(lambda c: document_rows.forget_files(c, collection.number, gone))

    def _data(self) -> Data:
        if self._folder is None:
            return DataSets(self._settings).get(data_of(self._experiment, self._settings))
        return Data(replace(self._settings, kb_dir=str(self._folder.absolute()), dataset=""))


def _beginning(number: int, documents: Sequence[Document]) -> Callable[[sqlite3.Connection], list[int]]:
    return lambda c: [document_rows.begin(c, number, each.doc_id, _size(each), "folder")[0] for each in documents]


def _whole(document: Document) -> Document:
    return replace(document, text=without_half_characters(document.text), title=without_half_characters(document.title))


def _size(document: Document) -> int:
    return len(document.text.encode("utf-8", "surrogatepass"))
