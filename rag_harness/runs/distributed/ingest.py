"""Ingest of a corpus too large for one process, with Ray Data."""

from __future__ import annotations

import json
import logging
import pickle
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, DataContext, Dataset, SaveMode
from ray.data.expressions import col

from rag_harness.core.errors import CriticalError, DataError, PrerequisiteError, RagHarnessError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Document, Matrix
from rag_harness.data.datasets import keeping_of
from rag_harness.data.documents import Library, SourceFile, read_library, sources_of, with_languages
from rag_harness.data.loaders.reading import parsed_by
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.builder import Retrieval, spec_of
from rag_harness.retrieval.indexes.server_collection import (
    Clock,
    CollectionContent,
    check_server,
    collection_for,
    complete,
    is_complete,
    make_or_check,
    upload,
    without_points,
)
from rag_harness.retrieval.indexes.server_connection import speaking
from rag_harness.retrieval.indexes.shard_files import ContentDigest, digested_bytes
from rag_harness.retrieval.ingest import IngestSummary, about_documents
from rag_harness.runs.distributed.cluster import RayNodes

# Ray moves the data, spreads the work, and repeats what was lost with a node. Ids of points are made of their content,
# so a window that is sent again is there once.

FILES, ROWS = 64, 512
"""Files, or rows of Parquet, that are cut together."""
_TEXTS = ("chunk_id", "doc_id", "text", "repeated_header")
_ROW = pa.schema(
    [(name, pa.string()) for name in (*_TEXTS, "metadata")]
    + [(name, pa.int64()) for name in ("start", "end", "index", "page", "last_page")]
    + [("section", pa.list_(pa.string()))]
)


@dataclass
class Ingested:
    """The result of the ingest of a corpus.

    Attributes:
        about: the summary of its documents; ``parsed`` of them were parsed in this run.
        failed: a line for each file or row that is not a document.
        chunks: number of chunks; ``sent`` of them were missing in the index. On a server, ``embedded`` had no stored
            vector.
        place: the collection or the folder; empty without chunks.
    """

    about: IngestSummary = field(default_factory=IngestSummary)
    parsed: int = 0
    failed: list[str] = field(default_factory=list)
    chunks: int = 0
    sent: int = 0
    embedded: int | None = None
    place: str = ""


@dataclass(frozen=True)
class _Window:
    """Some documents that were cut, as ``Ingested`` counts them, on ``node``. ``made_by`` decides cuts and vectors."""

    chunks: Sequence[Chunk]
    doc_ids: Sequence[str]
    about: IngestSummary
    parsed: int
    failed: Sequence[str]
    made_by: Mapping[str, Any]
    node: str = field(default_factory=socket.gethostname)


@dataclass(frozen=True)
class _Target:
    """Where chunks go: the folder ``to``, or a server's collection with ``content``, of vectors of ``made_by``."""

    settings: Settings
    to: str
    content: CollectionContent
    made_by: Mapping[str, Any]


def ingest(paths: Sequence[str], to: str, settings: Settings) -> Ingested:
    """Ingest files and folders, or Parquet files of documents, on a Ray cluster.

    Args:
        paths: what to read: files and folders, or paths and URLs of Parquet files with columns id and text.
        to: the folder of Parquet files to write; empty: the Qdrant server of the settings gets the points.
        settings: settings with the cluster.

    Raises:
        RagHarnessError: there is nothing to read, no cluster, a node cannot do the work, or the server is unfit.
    """
    settings = replace(settings, rootdir=str(Path(settings.rootdir).absolute()))
    if not to:
        with speaking("cannot be filled", settings.qdrant_url):
            check_server(collection_for(settings, ""))
    nodes = RayNodes(settings)
    try:
        with _causes():
            return _ingested(paths, to, settings, settings.ray_workers or len(nodes.alive()))
    finally:
        nodes.leave()


def _ingested(paths: Sequence[str], to: str, settings: Settings, workers: int) -> Ingested:
    context = DataContext.get_current()
    # The digest of all chunks in order is the name of their collection.
    context.execution_options.preserve_order = True
    context.raise_original_map_exception = True
    for handler in logging.getLogger("ray.data").handlers:
        handler.setLevel(max(handler.level, logging.WARNING))
    windows, unread = _cut(paths, settings)
    found, target = _surveyed(windows, to, settings)
    found.failed[:0] = unread
    if target is not None:
        windows = windows.filter(expr=col("chunks") > 0)
        pool = ActorPoolStrategy(min_size=1, max_size=workers)
        where = {"compute": pool, "num_cpus": 1, "num_gpus": settings.ray_gpus}
        given = {"fn_constructor_args": (target,), "batch_size": 1, "batch_format": "pyarrow"}
        (_to_parquet if to else _to_server)(windows, target, found, where | given)
    return found


def _cut(paths: Sequence[str], settings: Settings) -> tuple[Dataset, list[str]]:
    """Return the windows, which Ray cuts again where a node is lost, and a line for each file that is not opened."""
    tables = [path for path in paths if "://" in path or path.rstrip("/").lower().endswith(".parquet")]
    if tables and len(tables) < len(paths):
        raise SettingsError(f"{tables[0]} is Parquet, and other paths are not: ingest them one after the other.")
    documents, unread = (_rows(tables), []) if tables else _files(paths)
    cut, size = (_cut_rows, ROWS) if tables else (_cut_files, FILES)
    windows = documents.map_batches(cut, fn_args=(pickle.dumps(settings),), batch_size=size, batch_format="pyarrow")
    return windows.materialize(), unread


def _files(paths: Sequence[str]) -> tuple[Dataset, list[str]]:
    sources, refused = sources_of([Path(path) for path in paths])
    rows = [{"source": pickle.dumps(replace(each, file=each.file.absolute()))} for each in sources]
    files = ray.data.from_items(rows, override_num_blocks=len(rows) // FILES + 1)
    return files, [each.line for each in refused]


def _rows(paths: Sequence[str]) -> Dataset:
    if lost := [path for path in paths if "://" not in path and not Path(path).exists()]:
        raise DataError(f"No Parquet file or folder {', '.join(lost)}.")
    table = ray.data.read_parquet([_absolute(path) for path in paths])
    fields = table.schema().names
    lacking = [name for name in ("id", "text") if name not in fields]
    if lacking:
        raise DataError(
            f"{', '.join(paths)} has no column {' and no column '.join(lacking)}; it has {', '.join(fields)}. "
            f"Documents are rows with id and text, and title and metadata where there are some: rename them."
        )
    return table.select_columns([name for name in ("id", "text", "title", "metadata") if name in fields])


def _absolute(place: str) -> str:
    """Return a path that means the same on every node; a URL does already."""
    return place if "://" in place else str(Path(place).absolute())


def _cut_files(table: pa.Table, settings: bytes) -> pa.Table:
    sources: list[SourceFile] = [pickle.loads(each) for each in table.column("source").to_pylist()]
    if unseen := [str(each.file) for each in sources if not each.file.is_file()]:
        raise PrerequisiteError(
            f"Node {socket.gethostname()} has no {unseen[0]}. Give every node the folder at the same path, or hand in "
            f"Parquet files."
        )
    return _packed(_worker(settings).cut_files(sources))


def _cut_rows(table: pa.Table, settings: bytes) -> pa.Table:
    return _packed(_worker(settings).cut_rows(table.to_pylist(maps_as_pydicts="lossy")))


def document_of_row(row: Mapping[str, Any]) -> Document | str:
    """Return the document of a row, or why the row is none."""
    doc_id, text = row["id"], row["text"]
    if doc_id is None or not isinstance(text, str):
        return f"row with id {doc_id!r}: {'id is null' if doc_id is None else 'text is not text'}."
    try:
        metadata = _metadata(row.get("metadata"))
    except ValueError as error:
        return f"row with id {doc_id!r}: metadata is not a JSON object ({error})."
    return Document(str(doc_id), text, row.get("title") or str(metadata.get("title") or doc_id), metadata)


def _metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of a document as plain JSON. Dates and similar values become text; nulls are left out."""
    if isinstance(value, str):
        value = json.loads(value) if value.strip() else {}
        if not isinstance(value, Mapping):
            raise ValueError(f"it is a {type(value).__name__}")
    plain = json.loads(json.dumps(value or {}, default=str))
    return {name: each for name, each in plain.items() if each is not None}


@lru_cache(maxsize=1)
def _worker(settings: bytes) -> _Worker:
    """Return the worker of this process, which cuts one window after the other."""
    return _Worker(pickle.loads(settings))


class _Worker:
    """Cuts and embeds for the settings of a run. Cuts and vectors are kept as a run keeps them."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._spec, self._parts = settings, spec_of(settings), RunParts(settings)
        self._embedder = self._parts.embedder(self._spec.embedder)
        cut = {name: value for name, value in asdict(self._spec).items() if name != "index"}
        self.made_by = {**self._retrieval([]).identity(), **cut, "parsed_by": parsed_by()}

    def cut_files(self, sources: Sequence[SourceFile]) -> _Window:
        """Read and cut files. No two workers read the same file, so none waits for another."""
        return self._cut(read_library(sources, (), replace(keeping_of(self._settings), apart=True)))

    def cut_rows(self, rows: Sequence[Mapping[str, Any]]) -> _Window:
        """Cut documents that are rows with id and text, and title and metadata where there are some."""
        read = [document_of_row(row) for row in rows]
        documents = [each for each in read if isinstance(each, Document)]
        told = with_languages(documents, keeping_of(self._settings).language)
        return self._cut(Library(tuple(told), ()), [each for each in read if isinstance(each, str)])

    def embed(self, chunks: Sequence[Chunk]) -> tuple[Matrix, int]:
        """Return the vectors of chunks, shape (n, d), and how many of them were not stored."""
        before = self._embedder.computed
        vectors = self._embedder.embed_documents([chunk.text for chunk in chunks])
        self._parts.stores.flush()
        return vectors, self._embedder.computed - before

    def _retrieval(self, documents: Sequence[Document]) -> Retrieval:
        return Retrieval(self._spec, lambda: documents, self._settings, self._parts.stores, self._embedder)

    def _cut(self, library: Library, failed: Sequence[str] = ()) -> _Window:
        retrieval = self._retrieval(library.documents)
        chunks = retrieval.cut
        self._parts.stores.flush()
        cut = [document for document in library.documents if document.doc_id not in retrieval.refused]
        lines = [*failed, *(each.line for each in library.unread), *retrieval.refused_lines]
        doc_ids = [document.doc_id for document in library.documents]
        return _Window(chunks, doc_ids, about_documents(cut, chunks), library.parsed, lines, self.made_by)


def _packed(window: _Window) -> pa.Table:
    return pa.table({"window": pa.array([pickle.dumps(window)], pa.large_binary()), "chunks": [len(window.chunks)]})


def _unpacked(table: pa.Table) -> _Window:
    window: _Window = pickle.loads(table.column("window")[0].as_py())
    return window


def _surveyed(windows: Dataset, to: str, settings: Settings) -> tuple[Ingested, _Target | None]:
    """Return the summary of all windows, and where their chunks go; None without chunks."""
    found, points, digest = Ingested(), 0, ContentDigest("", "")
    made_by: Mapping[str, Any] = {}
    doc_ids: Counter[str] = Counter()
    for table in windows.iter_batches(batch_size=1, batch_format="pyarrow"):
        window = _unpacked(table)
        if not made_by:
            made_by, digest = window.made_by, ContentDigest(*window.made_by["embedded_by"])
        _check_same(made_by, window.made_by, window.node)
        doc_ids.update(window.doc_ids)
        digest.add(digested_bytes(window.chunks))
        points += len({chunk.chunk_id for chunk in window.chunks})
        found.about += window.about
        found.parsed += window.parsed
        found.failed += window.failed
        found.chunks += len(window.chunks)
    if twice := [doc_id for doc_id, count in doc_ids.items() if count > 1]:
        raise DataError(f"{len(twice)} ids are in several rows, e.g. {twice[0]!r}. Give each row its own.")
    if not doc_ids and not found.failed:
        raise DataError("There is no document: Parquet files of documents have rows with id and text.")
    if not found.chunks:
        return found, None
    content = CollectionContent(digest.hexdigest(), "@".join(made_by["embedded_by"]), points)
    return found, _Target(settings, to, content, made_by)


def _check_same(wanted: Mapping[str, Any], made_by: Mapping[str, Any], node: str) -> None:
    """Refuse a node that would make other results."""
    differing = sorted(name for name in wanted.keys() | made_by.keys() if wanted.get(name) != made_by.get(name))
    if differing:
        raise PrerequisiteError(
            f"Vectors of node {node} would be others than those of the first one: {', '.join(differing)} differ. Give "
            f"every node the same packages and models."
        )


def _to_server(windows: Dataset, target: _Target, found: Ingested, where: Mapping[str, Any]) -> None:
    collection = collection_for(target.settings, target.content.digest)
    found.place, found.embedded = collection.name, 0
    with speaking("cannot be filled", collection.url):
        if is_complete(collection, target.content):
            return
    for row in windows.map_batches(_Sender, **where).iter_rows():
        found.sent += row["sent"]
        found.embedded += row["embedded"]
    with speaking("cannot be filled", collection.url):
        complete(collection, target.content.chunks, Clock())


def _to_parquet(windows: Dataset, target: _Target, found: Ingested, where: Mapping[str, Any]) -> None:
    found.place, found.sent = target.to, found.chunks
    windows.map_batches(_Embedder, **where).write_parquet(_absolute(target.to), mode=SaveMode.ERROR)


class _Embedder:
    """Makes rows of Parquet of windows."""

    def __init__(self, target: _Target) -> None:
        self._target, self._worker = target, _Worker(target.settings)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a row for each chunk, with its vector."""
        chunks = _unpacked(table).chunks
        return _rows_of(chunks, self._embed(chunks)[0])

    def _embed(self, chunks: Sequence[Chunk]) -> tuple[Matrix, int]:
        _check_same(self._target.made_by, self._worker.made_by, socket.gethostname())
        return self._worker.embed(chunks)


class _Sender(_Embedder):
    """Sends the points of windows to the Qdrant server."""

    def __init__(self, target: _Target) -> None:
        super().__init__(target)
        self._collection = collection_for(target.settings, target.content.digest)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return how many points were not there, and how many of them were embedded now."""
        with speaking(f"cannot be filled from node {socket.gethostname()}", self._collection.url):
            sent, embedded = self._sent(_unpacked(table).chunks)
        return pa.table({"sent": [sent], "embedded": [embedded]})

    def _sent(self, chunks: Sequence[Chunk]) -> tuple[int, int]:
        content = self._target.content
        is_there = self._collection.info() is not None
        new = without_points(self._collection, chunks, content.model) if is_there else chunks
        if not new:
            return 0, 0
        vectors, embedded = self._embed(new)
        make_or_check(self._collection, replace(content, dimension=int(vectors.shape[1])))
        upload(self._collection, new, vectors, content.model)
        return len(new), embedded


def _rows_of(chunks: Sequence[Chunk], vectors: Matrix) -> pa.Table:
    """Return a row for each chunk. ``vectors`` has shape (n, d), of unit length."""
    rows = [
        {
            **{name: _utf8(getattr(chunk, name)) for name in _TEXTS},
            **{name: getattr(chunk, name) for name in ("start", "end", "index")},
            "section": [_utf8(each) for each in chunk.section],
            "metadata": json.dumps(dict(chunk.metadata), sort_keys=True, default=str),
            **dict(zip(("page", "last_page"), chunk.pages or (None, None), strict=True)),
        }
        for chunk in chunks
    ]
    flat = pa.array(vectors.astype("float32").reshape(-1))
    vector = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.Table.from_pylist(rows, _ROW).append_column("vector", vector)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate becomes a question mark


@contextmanager
def _causes() -> Iterator[None]:
    """Raise an error of ours, which Ray has wrapped, as it was; and Ray's own with what to do."""
    try:
        yield
    except RagHarnessError:
        raise
    except Exception as error:
        cause: BaseException = error
        while not isinstance(cause, RagHarnessError) and (below := getattr(cause, "cause", None) or cause.__cause__):
            cause = below
        if isinstance(cause, RagHarnessError):
            raise cause from error
        said = f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
        raise CriticalError(f"Ray Data gave up: {said}. Run it again: points that were sent stay.") from error
