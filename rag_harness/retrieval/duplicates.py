"""Near-duplicates: chunks that repeat a chunk of an earlier document, found by shared shingles (runs of words)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from rag_harness.models.recording.store import key_of
from rag_harness.protocols import Stores
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Chunk
from rag_harness.words.minhash import PERMUTATIONS, RUN, Hashing, candidates, resemblance, signature

NEAR_DUPLICATE_SHARE = 0.9
"""Share of common runs from which a report names near-duplicates."""
SHORT_CHUNK = 12
"""Fewest words. Shorter chunks are phrases that documents may share."""
# Tokens that change a statement in otherwise equal words: figures, dates, versions, and "not".
_DECIDES = re.compile(
    r"(?<![^\W\d])\w*\d\w*(?:[.,:/-]\d+)*|\b(?:not|no|never|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def source() -> str:
    """Return the revision of how duplicates are found."""
    return REVISIONS["duplicates"]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A chunk, the similar earlier chunk, and the Jaccard similarity of their runs of three words."""

    chunk: Chunk
    like: Chunk
    share: float


def duplicates(chunks: Sequence[Chunk], least: float, stores: Stores, digest: str = "") -> list[Duplicate]:
    """Return the near-duplicates among ``chunks``, in order. The result is stored under the chunks' ``digest``.

    A chunk is a near-duplicate of an earlier chunk of another document if it shares at least ``least`` of its runs and
    has the same figures and negations. So two versions are no duplicates. The earlier chunk must be no duplicate
    itself.
    """
    store = stores.open("duplicates", "minhash", source())
    key = key_of(f"{least:g}", digest or _digest(chunks))
    kept = store.get([key])[0]
    if kept is None:
        found = list(_pairs(chunks, least))
        kept = np.array([[-1.0, -1.0, 0.0], *found], dtype=np.float64)
        store.put({key: kept})
    return [Duplicate(chunks[int(one)], chunks[int(like)], float(share)) for one, like, share in kept[1:]]


def _digest(chunks: Sequence[Chunk]) -> str:
    state = blake2b(digest_size=16)
    for chunk in chunks:
        state.update(f"{chunk.doc_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def _pairs(chunks: Sequence[Chunk], least: float) -> Iterator[tuple[int, int, float]]:
    hashing = Hashing()
    numbers, sketches = _sketched(chunks, hashing)
    gone: set[int] = set()
    for row, rows in candidates(sketches).items():
        number, others = numbers[row], [numbers[other] for other in rows]
        share, like = _likest(number, [other for other in others if other not in gone], chunks, hashing, least)
        if share:
            gone.add(number)
            yield number, like, share


def _sketched(chunks: Sequence[Chunk], hashing: Hashing) -> tuple[list[int], npt.NDArray[np.uint32]]:
    numbers, sketches = [], []
    for number, chunk in enumerate(chunks):
        runs = hashing.runs(chunk.text)
        if len(runs) + RUN > SHORT_CHUNK:
            numbers.append(number)
            sketches.append(signature(runs))
    return numbers, np.array(sketches, dtype=np.uint32).reshape(-1, PERMUTATIONS)


def _likest(
    number: int, others: Sequence[int], chunks: Sequence[Chunk], hashing: Hashing, least: float
) -> tuple[float, int]:
    chunk, found = chunks[number], [(0.0, -1)]
    runs = hashing.runs(chunk.text)
    for other in others:
        if chunks[other].doc_id != chunk.doc_id and _same(chunk, chunks[other]):
            share = resemblance(runs, hashing.runs(chunks[other].text))
            found += [(share, -other)] if share >= least else []
    share, like = max(found)
    return share, -like


def _same(one: Chunk, other: Chunk) -> bool:
    return Counter(_decisive(one.text)) == Counter(_decisive(other.text))


def _decisive(text: str) -> list[str]:
    return [found.casefold() for found in _DECIDES.findall(text)]
