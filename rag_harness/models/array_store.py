"""Recorded and cached vectors and scores by content key, and the embedder that computes only new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from pickle import PicklingError
from threading import RLock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.core.cache import note_use
from rag_harness.core.errors import (
    ChunkTooLongError,
    DataError,
    PrerequisiteError,
    QueryTooLongError,
    RecordingMissError,
    RecordingWriteError,
)
from rag_harness.core.files import write_atomically
from rag_harness.core.progress import report
from rag_harness.core.protocols import Embedder, Store, Tokenizer
from rag_harness.core.registry import is_own, stated_fingerprint
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.types import Matrix, Pieces, TokenVectors
from rag_harness.models.endpoints import no_token_vectors

# A store of arrays by content key: vectors, token vectors and pair scores.
#
# It is a folder of immutable segments, each a safetensors file: ``keys`` (n, 16), ``offsets`` (n + 1), ``data`` (rows,
# d). Entry i is ``data[offsets[i]:offsets[i + 1]]``. A writer only adds segments, each with a name made from its keys,
# by an atomic rename. So several writers lose nothing, and folders are merged by copying. Entries are never rewritten,
# because a vector computed again in another batch differs in its last bits.

KEY_BYTES = 16
Array = npt.NDArray[Any]

_FLUSH_AT = 256
"""Entries in memory before they are written. A killed run loses at most so many."""


def key_of(*parts: str) -> bytes:
    """Return the key of a text, or of several texts (a query and a chunk)."""
    state = blake2b(digest_size=KEY_BYTES)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.digest()


class ArrayStore:
    """Arrays by key, read from several folders and written to at most one.

    Args:
        folders: the folders to read; the first match counts.
        write_to: the folder for new segments; None makes the store read-only.
    """

    def __init__(self, folders: Sequence[Path], write_to: Path | None = None) -> None:
        self._folders = list(dict.fromkeys([*folders, *([write_to] if write_to else [])]))
        self._write_to = write_to
        self._segments: dict[Path, _Segment] = {}
        self._where: dict[bytes, tuple[_Segment, int]] = {}
        self._pending: dict[bytes, Array] = {}
        # The thread that closes a run may flush while the thread that ranks still adds entries.
        self._lock = RLock()

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        """Return the array of each key, or None where there is none. Shapes are (rows, d)."""
        with self._lock:
            if any(key not in self._where and key not in self._pending for key in keys):
                self._look_for_new_segments()
            return [self._read(key) for key in keys]

    def put(self, items: Mapping[bytes, Array]) -> None:
        """Add arrays of shape (rows, d). Existing keys stay unchanged.

        New arrays are found at once. They are on disk after ``flush``, which also runs when enough are in memory.
        """
        with self._lock:
            new = {key: np.atleast_2d(array) for key, array in items.items() if key not in self._where}
            self._pending = new | self._pending
            if len(self._pending) >= _FLUSH_AT:
                self.flush()

    def flush(self) -> None:
        """Write the entries in memory as one segment, except those that another process has written meanwhile."""
        with self._lock:
            if self._write_to is None or not self._pending:
                return
            self._look_for_new_segments()
            new = {key: array for key, array in self._pending.items() if key not in self._where}
            if new:
                file = _free(self._write_to, blake2b(b"".join(sorted(new)), digest_size=8).hexdigest())
                try:
                    _write_segment(file, new)
                except OSError as error:
                    raise RecordingWriteError(
                        f"{len(new)} vectors or scores cannot be kept in {file.parent}: {error.strerror or error}. "
                        f"What was there is whole. Make room, or name other folders: --rag-project, --rag-cache-dir."
                    ) from error
                self._look_for_new_segments()
            self._pending = {}

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> set[bytes]:
        """Return the keys of all entries."""
        with self._lock:
            self._look_for_new_segments()
            return {*self._where, *self._pending}

    def _look_for_new_segments(self) -> None:
        for folder in self._folders:
            for file in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
                # A folder, a pipe or a device has the name alone.
                if file not in self._segments and file.is_file():
                    self._add(file)

    def _add(self, file: Path) -> None:
        segment = self._segments[file] = _Segment(file)
        for position, key in enumerate(segment.keys):
            self._where.setdefault(key, (segment, position))

    def _read(self, key: bytes) -> Array | None:
        found = self._where.get(key)
        return found[0].entry(found[1]) if found else self._pending.get(key)


class _Segment:
    def __init__(self, file: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            # Memory-mapped: only requested entries are read.
            self._open: Any = safe_open(str(file), framework="numpy")
            packed = self._open.get_tensor("keys")
            self._offsets: list[int] = self._open.get_tensor("offsets").tolist()
        except (SafetensorError, OSError) as error:
            raise DataError(
                f"{file} cannot be read ({error}): it was cut short or damaged. Delete it; its entries are computed "
                f"again in mode auto, or come back with git checkout if it is a committed recording."
            ) from error
        self.keys = [bytes(row) for row in packed]
        self._data = self._open.get_slice("data")

    def entry(self, position: int) -> Array:
        array: Array = self._data[self._offsets[position] : self._offsets[position + 1]]
        return array


def _free(folder: Path, name: str) -> Path:
    """Return the file for a new segment. Only a folder can have its name and stay: anything else is replaced."""
    while (folder / f"{name}.safetensors").is_dir():
        name += "-"
    return folder / f"{name}.safetensors"


def _write_segment(file: Path, items: Mapping[bytes, Array]) -> None:
    from safetensors.numpy import save

    keys = sorted(items)
    arrays = [items[key] for key in keys]
    content = save(
        {
            "keys": np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY_BYTES),
            "offsets": np.cumsum([0, *(len(array) for array in arrays)], dtype=np.int64),
            "data": np.ascontiguousarray(np.concatenate(arrays)),
        }
    )
    write_atomically(file, content)


NEVER_RECORDED = frozenset({"tokens"})
"""Kinds that are never recorded. Token vectors take 100 times a vector; recordings keep their pair scores instead."""


class RecordingStore(ArrayStore):
    """A store of recordings. It copies entries from the cache, so that the recordings are complete without it."""

    def __init__(self, folders: Sequence[Path], write_to: Path, cache: ArrayStore) -> None:
        super().__init__(folders, write_to)
        self._cache = cache

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        found = super().get(keys)
        missing = [key for key, each in zip(keys, found, strict=True) if each is None]
        if not missing:
            return found
        self.put({key: each for key, each in zip(missing, self._cache.get(missing), strict=True) if each is not None})
        return super().get(keys)


class StoreRoom:
    """Opens one store for each kind, model and revision.

    The mode decides where new results are stored: in the recordings, which are committed; in the cache, which is not;
    or nowhere. The cache is always read. Recordings are read if the mode reads them.
    """

    def __init__(self, settings: Settings) -> None:
        self._recordings = settings.folder("cassettes") / (settings.stores_of or settings.profile)
        self._cache = settings.path(settings.cache_dir)
        self._access = access_of(settings)
        self._opened: dict[Path, ArrayStore] = {}
        self._own_dates: list[float] = []

    @property
    def own_recorded_at(self) -> str:
        """When the oldest recording was made that parts of a user's own are replayed from; empty without any."""
        oldest = min(self._own_dates, default=None)
        return "" if oldest is None else datetime.fromtimestamp(oldest, timezone.utc).isoformat(timespec="milliseconds")

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> ArrayStore:
        """Return the store of ``kind`` (vectors, tokens, pairs) for one model and revision.

        Without ``may_keep`` it is of a part of a user's own, which is asked in each run: mode record keeps what is
        missing, replay reads that, and nothing goes into the cache.
        """
        folder = Path(kind) / re.sub(r"[^\w.@-]+", "--", f"{model}@{revision}")
        if folder not in self._opened:
            self._opened[folder] = self._store(kind, folder) if may_keep else self._store_of_own(folder)
        return self._opened[folder]

    def _store_of_own(self, folder: Path) -> ArrayStore:
        recorded, records = self._recordings / folder, self._access.records
        is_read = records or self._access.calls_nobody
        # Before this run adds to it: what it adds is asked now.
        self._own_dates += [file.stat().st_mtime for file in recorded.glob("*.safetensors") if is_read]
        return ArrayStore([recorded] if is_read else [], recorded if records else None)

    def _store(self, kind: str, folder: Path) -> ArrayStore:
        recorded, cached = self._recordings / folder, self._cache / folder
        if self._access.keeps != "nothing":
            note_use(cached)
        if self._access.keeps == "recordings" and kind not in NEVER_RECORDED:
            return RecordingStore([recorded], recorded, ArrayStore([cached]))
        folders = [recorded, cached] if self._access.reads_recordings else [cached]
        return ArrayStore(folders, None if self._access.keeps == "nothing" else cached)

    def flush(self) -> None:
        """Write all entries that are still in memory."""
        for store in list(self._opened.values()):  # another thread may open one meanwhile
            store.flush()


Computed: TypeAlias = tuple[Matrix, "list[TokenVectors] | None"]
"""Vectors of some texts, shape (n, d), and the token vectors of each if requested."""
EmbedElsewhere = Callable[[Sequence[Sequence[str]], str, bool], Iterator[Computed]]
"""(parts, each with some texts; role; whether token vectors are wanted) -> the model's result of each part."""

_UNITS = {"document": "chunks", "query": "queries"}
_CHECKPOINT = 256
"""Texts between two writes. A killed run has to compute at most so many again."""


class CachedEmbedder:
    """Wraps an embedder with stores keyed by model, revision and text.

    Args:
        inner: computes the vectors that the store lacks.
        vectors: the store of vectors of one model and revision.
        tokens: the store of token vectors, used by late interaction. They come from the same forward pass as the
            vector.
        may_cut: texts longer than the model reads are cut and counted, instead of refused. A public collection's
            published figures are of cut texts.
        refuse: the reason why the model may not be called in this mode, or empty.
        may_keep: whether vectors are stored for later runs. Vectors of a user's own embedder without a fingerprint are
            not.

        With ``elsewhere`` set, other workers compute in place of the model, and they call ``kept`` of this embedder.
        Other methods hold a lock while they compute. ``kept`` takes no lock, so two workers can ask each other.
    """

    def __init__(
        self,
        inner: Any,
        vectors: Store,
        tokens: Store | None = None,
        refuse: str = "",
        may_cut: bool = False,
        may_keep: bool = True,
    ) -> None:
        self._may_keep = may_keep
        self._inner: Embedder = inner
        self._vectors, self._tokens, self._refuse = vectors, tokens, refuse
        self._lock, self._one_at_a_time = RLock(), RLock()
        # Stored texts are part of this list, too. All workers then make the same parts of the same texts, and ask the
        # same workers for them.
        self._for_others: set[bytes] = set()
        self._may_cut = may_cut
        self.elsewhere: EmbedElsewhere | None = None
        self.computed: int = 0
        self.cut: dict[str, int] = {"document": 0, "query": 0}

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process without stores.

        Raises:
            PicklingError: the embedder is a user's own, which may need this process, or others compute for it.
        """
        if self.elsewhere is not None or is_own(type(self._inner).__module__):
            raise PicklingError(f"{self.model} stays in its process")
        return _without_stores, (self._inner, self._refuse, self._may_cut)

    @property
    def refuses(self) -> bool:
        """Whether the model may not be called in this mode. Then only stored vectors are available."""
        return bool(self._refuse)

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def revision(self) -> str:
        return self._inner.revision + stated_fingerprint(self._inner)

    @property
    def may_keep(self) -> bool:
        """Whether its vectors are stored for later runs."""
        return self._may_keep

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def max_tokens(self) -> int:
        return self._inner.max_tokens

    def tokenizer(self) -> Tokenizer:
        return self._inner.tokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._matrix(self._fetch(self._vectors, texts, "document"))

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._matrix(self._fetch(self._vectors, texts, "query"))

    def check_query(self, text: str) -> None:
        """Check that a question fits into the model's input, unless it may be cut.

        A model that may not be called is not checked.

        Raises:
            QueryTooLongError: the question has too many tokens.
        """
        # A token has at least one byte, and two special tokens frame a text.
        if self._refuse or self._may_cut or len(text.encode(errors="replace")) + 2 <= self.max_tokens:
            return
        try:
            (tokens,) = self.tokenizer().count([text])
        except PrerequisiteError:
            return  # no tokenizer here: embedding the question will raise the error
        if tokens > self.max_tokens:
            raise QueryTooLongError(
                f"The query {text[:60]!r}… has {tokens} tokens and {self.model} reads {self.max_tokens}: the rest "
                f"would be ignored. Shorten the query.",
                tokens,
                self.max_tokens,
            )

    def token_vectors(self, texts: Sequence[str], role: str) -> list[TokenVectors]:
        """Return each text's token vectors, from the store or computed; ``role`` is ``query`` or ``document``."""
        if self._tokens is None:
            raise PrerequisiteError(no_token_vectors(self.model))
        return self._fetch(self._tokens, texts, role)

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        """Return the word pieces of ``text`` with their vectors. They are never stored: they take 100 times a vector.

        Raises:
            PrerequisiteError: the embedder has no word pieces.
            RecordingMissError: the model may not be called in this mode.
        """
        if self._refuse:
            raise RecordingMissError(f"No word pieces of {self.model} for {text[:80]!r}. {self._refuse}", [text])
        if not hasattr(self._inner, "pieces"):
            raise PrerequisiteError(f"{self.model!r} gives no word pieces: name a local model.")
        with self._lock, self._one_at_a_time:
            found: Pieces = self._inner.pieces(text, borders)
            return found

    def missing(self, texts: Sequence[str], role: str) -> list[str]:
        """Return the ``texts`` that are not stored; ``role`` is ``query`` or ``document``."""
        found = self._vectors.get([key_of(role, text) for text in texts])
        return [text for text, each in zip(texts, found, strict=True) if each is None]

    def _matrix(self, rows: list[Any]) -> Matrix:
        return np.concatenate(rows) if rows else np.empty((0, self.dimension), np.float32)

    def _fetch(self, store: Store, texts: Sequence[str], role: str) -> list[Any]:
        keys = [key_of(role, text) for text in texts]
        with self._lock:
            found = store.get(keys)
            triples = zip(keys, texts, found, strict=True)
            missing = {key: text for key, text, each in triples if each is None or key in self._for_others}
            if not missing:
                return list(found)
            self._compute(missing, role)
            self._for_others.difference_update(missing)
            return list(store.get(keys))

    def _compute(self, missing: dict[bytes, str], role: str) -> None:
        if self._refuse:
            first = next(iter(missing.values()))
            raise RecordingMissError(
                f"No vector of {self.model} for {len(missing)} texts, e.g. {first[:80]!r}. {self._refuse}",
                missing.values(),
            )
        if role == "document" or self._may_cut:
            self._check_lengths(list(missing.values()), role)
        # Longest first: a part then has texts of similar length, and its batches little padding.
        items = sorted(missing.items(), key=lambda item: -len(item[1]))
        parts = [dict(items[start : start + _CHECKPOINT]) for start in range(0, len(items), _CHECKPOINT)]
        work, done = self.elsewhere or self._here, 0
        report("embedding", done, len(items), _UNITS[role])
        computed = work([list(part.values()) for part in parts], role, self._tokens is not None)
        for part, made in zip(parts, computed, strict=True):
            self._put(list(part), made)
            done += len(part)
            self.computed += len(part)
            report("embedding", done, len(items), _UNITS[role])

    def compute(self, texts: Sequence[str], role: str, with_tokens: bool) -> Computed:
        """Compute with the model, without reading or writing the stores. Vectors of shape (n, d).

        Raises:
            QueryTooLongError: a question has too many tokens.
        """
        for text in texts if role == "query" else ():
            self.check_query(text)
        with self._one_at_a_time:
            if with_tokens:
                made: Computed = self._inner.embed_with_tokens(texts, role)  # type: ignore[attr-defined]
                return made
            embed = self._inner.embed_queries if role == "query" else self._inner.embed_documents
            return embed(texts), None

    def _here(self, parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
        return (self.compute(part, role, with_tokens) for part in parts)

    def kept(self, texts: Sequence[str], role: str, with_tokens: bool) -> Computed:
        """Return the vectors of each text, shape (n, d). Missing ones are computed and stored."""
        stores = [self._vectors, *([self._tokens] if with_tokens and self._tokens is not None else [])]
        keys = [key_of(role, text) for text in texts]
        known = zip(*(store.get(keys) for store in stores), strict=True)
        lacking = [any(array is None for array in each) for each in known]
        missing = {key: text for key, text, lacks in zip(keys, texts, lacking, strict=True) if lacks}
        if missing:
            made = self.compute(list(missing.values()), role, with_tokens)
            self._for_others.update(missing)
            self._put(list(missing), made)
        vectors, *tokens = (list(store.get(keys)) for store in stores)
        return self._matrix(vectors), (tokens[0] if tokens else None)

    def _check_lengths(self, texts: list[str], role: str) -> None:
        """Refuse or count texts over the limit. Their ends are in no vector, so no search finds them."""
        counts = self._inner.tokenizer().count(texts)
        long = [(count, text) for count, text in zip(counts, texts, strict=True) if count > self.max_tokens]
        if long and not self._may_cut:
            count, text = max(long)
            raise ChunkTooLongError(
                f"{len(long)} chunks are longer than the {self.max_tokens} tokens that {self.model} reads, e.g. one of "
                f"{count}: {text[:60]!r}. Choose a smaller --rag-chunk-size."
            )
        self.cut[role] += len(long)

    def _put(self, keys: list[bytes], made: Computed) -> None:
        vectors, tokens = made
        self._vectors.put(dict(zip(keys, vectors, strict=True)))
        if self._tokens is not None and tokens is not None:
            self._tokens.put(dict(zip(keys, tokens, strict=True)))


def _without_stores(inner: Any, refuse: str, may_cut: bool) -> CachedEmbedder:
    return CachedEmbedder(inner, ArrayStore([]), refuse=refuse, may_cut=may_cut)
