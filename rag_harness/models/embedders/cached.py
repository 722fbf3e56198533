"""An embedder with a cache: the model computes only vectors that no earlier run has stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Any, TypeAlias

import numpy as np

from rag_harness.errors import ChunkTooLongError, PrerequisiteError, QueryTooLongError, RecordingMissError
from rag_harness.models.model_names import no_token_vectors
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import Embedder, Store, Tokenizer
from rag_harness.registry.own_parts import stated_fingerprint
from rag_harness.types import Matrix, Pieces, TokenVectors
from rag_harness.work.reporting import report

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
        inner: computes what the store lacks.
        vectors: the store of vectors, for one model and revision.
        tokens: the store of token vectors, for late interaction. They come from the same forward pass as the vector.
        may_cut: texts longer than the model reads are cut and counted, instead of refused. A public collection's
            published figures are of cut texts.
        refuse: the reason why the model may not be called in this mode, or empty.
        may_keep: whether vectors are kept for later runs: not those of a user's own embedder without a fingerprint.

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
        """Whether its vectors are kept for later runs."""
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
        """Refuse or count texts over the limit. Their ends are in no vector, so nobody can find them."""
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
