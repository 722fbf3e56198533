"""A worker's client of the Qdrant server: it finds the missing points of a window and sends them."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np

from rag_harness.errors import CriticalError, PrerequisiteError
from rag_harness.retrieval.bulk.slots import Slot
from rag_harness.retrieval.indexes.server.connection import check_version, connect, quiet, speaking
from rag_harness.retrieval.indexes.server.points import Points, point_batches
from rag_harness.retrieval.indexes.server.server_options import cluster_options
from rag_harness.retrieval.indexes.server.upload import Upload
from rag_harness.settings import Settings
from rag_harness.types import Chunk, Matrix


class Sender:
    """Sends the points of windows, one window at a time.

    Args:
        settings: settings with the server.
        model: model and revision of the vectors.

    Raises:
        PrerequisiteError: this node cannot reach the server.
    """

    def __init__(self, settings: Settings, model: str) -> None:
        self._url, self._model, self._options = settings.qdrant_url, model, cluster_options(settings)
        self._client = connect(self._url, settings.qdrant_api_key, self._options.timeout)
        try:
            check_version(self._client, self._url)
        except CriticalError as error:
            raise PrerequisiteError(
                f"Node {socket.gethostname()} has to send its points to Qdrant itself. {error} Every node needs a way "
                f"to the server by the same URL."
            ) from error

    def lacking(self, chunks: Sequence[Chunk], slot: Slot) -> list[int]:
        """Return the numbers, from 0, of a window's chunks that are missing or different on the server."""
        if not slot.resumes:
            return list(range(len(chunks)))
        upload, without = self._upload(slot), np.empty((len(chunks), 0), np.float32)
        with self._speaking():
            made = [upload.lacking(each) for each in self._points(chunks, without, slot, range(len(chunks)))]
        return [int(payload["position"]) - slot.first for points in made for payload in points.payloads]

    def send(self, chunks: Sequence[Chunk], vectors: Matrix, slot: Slot, places: Sequence[int]) -> None:
        """Send points. They are written when this returns.

        Args:
            chunks: some chunks of a window.
            vectors: shape (n, d); row i belongs to chunk i.
            slot: the place of the window.
            places: the place of each chunk in the window, from 0.

        Raises:
            CriticalError: the server refuses them.
        """
        with self._speaking(), quiet():
            self._upload(slot).send(self._points(chunks, vectors, slot, places))

    def _points(self, chunks: Sequence[Chunk], vectors: Matrix, slot: Slot, places: Sequence[int]) -> Iterator[Points]:
        return point_batches(
            chunks, vectors, self._model, self._options.batch, [slot.first + place for place in places]
        )

    def _upload(self, slot: Slot) -> Upload:
        return Upload(self._client, slot.collection, self._options)

    def _speaking(self) -> AbstractContextManager[None]:
        return speaking(f"cannot be filled from node {socket.gethostname()}", self._url)
