"""Which point of a shard is which chunk, and which points of an older shard serve other chunks.

A point is a vector, and a vector is that of a text. So where some documents have changed, the points of all other texts
stay, whatever their places are now: a shard has a point's number for each place of a chunk, and its text's digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.files.atomic import write_atomically

POINTS = "points.npy"
"""File of a shard with the number and the digest of each point. A shard without it has point i for chunk i."""
_BYTES = 16
_ROW = np.dtype([("number", "<i8"), ("text", f"V{_BYTES}")])
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ShardPoints:
    """The points of a shard, in the order of the chunks.

    Attributes:
        numbers: number of the point of each chunk, shape (n,).
        texts: digest of the text of each.
    """

    numbers: Numbers
    texts: tuple[bytes, ...] = ()

    @classmethod
    def fresh(cls, texts: Iterable[str]) -> ShardPoints:
        """Return the points of a shard that is built of these texts."""
        digests = tuple(blake2b(each.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for each in texts)
        return cls(np.arange(len(digests)), digests)

    @classmethod
    def of(cls, folder: Path, count: int) -> ShardPoints:
        """Return the points of the shard in a folder, which has ``count``.

        Raises:
            ValueError: its file is none of such points.
        """
        file = folder / POINTS
        if not file.is_file():
            return cls(np.arange(count))
        rows = np.load(file, allow_pickle=False)
        if rows.dtype != _ROW or rows.shape != (count,):
            raise ValueError(f"{POINTS} is not of {count} points")
        return cls(rows["number"].astype(np.int64), tuple(map(bytes, rows["text"].tolist())))

    def write(self, folder: Path) -> None:
        """Write them into the folder of the shard."""
        from io import BytesIO

        rows, made = np.empty(len(self.texts), _ROW), BytesIO()
        rows["number"] = self.numbers
        rows["text"] = np.frombuffer(b"".join(self.texts), f"V{_BYTES}")
        np.save(made, rows, allow_pickle=False)
        write_atomically(folder / POINTS, made.getvalue())

    def places(self) -> dict[int, int]:
        """Return the place of the chunk of each point."""
        return {number: place for place, number in enumerate(self.numbers.tolist())}


@dataclass(frozen=True)
class Change:
    """What makes the points of one shard those of another.

    Attributes:
        removed: numbers of the points that go.
        added: places of the chunks whose points come.
        points: the points then. New ones have numbers that no point had.
        beside: points that the graph then does not have, and those that it has in vain.
    """

    removed: list[int]
    added: list[int]
    points: ShardPoints
    beside: int


def change(before: ShardPoints, after: ShardPoints, in_graph: int) -> Change:
    """Return how the points of ``before`` become those of the texts of ``after``.

    Args:
        before: points of the older shard; those with numbers below ``in_graph`` are in its graph.
        after: the texts that are wanted, in order.
    """
    free: dict[bytes, list[int]] = {}
    for number, text in zip(before.numbers.tolist(), before.texts, strict=True):
        free.setdefault(text, []).append(number)
    numbers, added = list[int](), list[int]()
    next_number = max(in_graph, int(before.numbers.max(initial=-1)) + 1)
    for place, text in enumerate(after.texts):
        if same := free.get(text):
            numbers.append(same.pop(0))
        else:
            numbers.append(next_number + len(added))
            added.append(place)
    removed = [number for left in free.values() for number in left]
    kept = sum(number < in_graph for number in numbers)
    beside = in_graph - kept + len(numbers) - kept
    return Change(removed, added, ShardPoints(np.array(numbers, np.int64), after.texts), beside)
