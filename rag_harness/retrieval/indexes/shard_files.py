"""Files of stored indexes: folders, points by chunk, and the digest of an index's content."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.files import regular_bytes, write_atomically
from rag_harness.core.types import Chunk

# Folders of stored indexes. They are made atomically, and checked before they are opened.

MARKER = "complete.json"
"""File that is written last: the shard's content, the size in bytes of each file, and a digest of its numbers."""

_NUMBERS = ("segments/*/*id_tracker*", "points.npy")
"""Files of a shard with the places of points. If these are damaged, the engine requests too much memory."""

_ZEROS = bytes(1 << 20)


@dataclass(frozen=True)
class ShardFolder:
    """The folder of a shard with some content.

    Attributes:
        path: its folder. Beside it are the lock of the building process and, meanwhile, the unfinished shard.
        digest: digest of chunks and embedding model.
        embedder: digest of the embedding model; empty: the shard is never changed into another.
    """

    path: Path
    digest: str
    embedder: str = ""

    @classmethod
    def kept(cls, path: Path) -> ShardFolder | None:
        """Return the complete shard in a folder; None where its marker cannot be read."""
        try:
            marker = json.loads(regular_bytes(path / MARKER))
            return cls(path, str(marker["digest"]), str(marker.get("embedder", "")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def said(self, name: str) -> int:
        """Return a number of the marker: ``count`` of points, or ``graph``: points with lower numbers are in the graph.

        Raises:
            OSError: the marker is missing.
            ValueError: the marker lacks the number.
        """
        found = json.loads(regular_bytes(self.path / MARKER))
        if not isinstance(found, dict) or not isinstance(found.get(name, 0), int):
            raise ValueError(f"{MARKER} has no {name}")
        return int(found.get(name, 0))

    def fault(self, count: int) -> str:
        """Return why this is not a shard of ``count`` points; empty where it may be opened."""
        try:
            marker = json.loads(regular_bytes(self.path / MARKER))
            if (marker["digest"], marker["count"]) != (self.digest, count):
                return f"it holds {marker['count']} points of {marker['digest']}, not {count} of {self.digest}"
            if damage := next(iter(_damages(self.path, marker["files"])), ""):
                return damage
            return "" if _numbers(self.path) == marker["numbers"] else "the numbers of its points are damaged"
        except FileNotFoundError:
            return f"{MARKER} is missing"
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            return f"{MARKER} cannot be read: {type(error).__name__}: {error}"

    def built_by(self, run: str) -> bool:
        """Return whether ``run`` wrote the existing shard."""
        try:
            return bool(json.loads(regular_bytes(self.path / MARKER))["run"] == run)
        except (OSError, ValueError, LookupError, TypeError):
            return False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock for building this shard. Remains of a killed process are removed.

        Raises:
            OSError: the folder cannot be written.
        """
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock"):
            for left in self.path.parent.glob(f".{self.path.name}.*"):
                shutil.rmtree(left, ignore_errors=True)
            yield

    @contextmanager
    def building(self, count: int, run: str, in_graph: int = 0) -> Iterator[Path]:
        """Yield a folder to build in. It becomes the shard if the block succeeds. Call it only inside ``alone``.

        Args:
            count: points of the shard.
            run: the run that builds it.
            in_graph: points whose numbers are below this one are in its graph.
        """
        made = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=f".{self.path.name}."))
        try:
            yield made
            marker = {"digest": self.digest, "count": count, "run": run, "files": _sizes(made)}
            marker |= {"embedder": self.embedder, "graph": in_graph}
            marker["numbers"] = _numbers(made)
            (made / MARKER).write_text(json.dumps(marker), encoding="utf-8")
            made.chmod(0o755)  # mkdtemp makes 0700, which other users cannot read
            self._replace_by(made)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _replace_by(self, made: Path) -> None:
        if self.path.exists():
            # The old folder is moved away first. A rename cannot replace a folder, and a process may have it open.
            old = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=f".{self.path.name}."))
            self.path.rename(old / "old")
            made.rename(self.path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            made.rename(self.path)


def temporary_folder(owner: Any) -> Path:
    """Make a folder that is removed together with ``owner``, at the latest at the end of the process."""
    folder = Path(tempfile.mkdtemp(prefix="rag_harness_index_"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


def copy_shard(source: Path, target: Path) -> None:
    """Copy a shard into an empty folder. Holes stay holes, because the engine makes files of 32 MB for few vectors."""
    shutil.copytree(source, target, dirs_exist_ok=True, copy_function=_copy_with_holes)


def _copy_with_holes(source: str, target: str) -> None:
    with Path(source).open("rb") as read, Path(target).open("wb") as write:
        while block := read.read(len(_ZEROS)):
            if block == _ZEROS[: len(block)]:
                write.seek(len(block), 1)
            else:
                write.write(block)
        write.truncate(write.tell())


def _sizes(folder: Path) -> dict[str, int]:
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def _numbers(folder: Path) -> str:
    digest = blake2b(digest_size=16)
    for file in sorted(file for pattern in _NUMBERS for file in folder.glob(pattern)):
        digest.update(regular_bytes(file))
    return digest.hexdigest()


def _damages(folder: Path, files: dict[str, int]) -> Iterator[str]:
    for name, size in files.items():
        file = folder / name
        if not file.is_file():
            yield f"{name} is missing"
        elif (found := file.stat().st_size) != size:
            yield f"{name} has {found} bytes, not {size}"


# A point is a vector, and a vector belongs to a text. So where some documents have changed, the points of all other
# texts stay, whatever their places are now: a shard has a point's number for each place of a chunk, and its text's
# digest.

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


def change_points(before: ShardPoints, after: ShardPoints, in_graph: int) -> Change:
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


# The digest of an index's content: its chunks in order, and the model. No process needs all chunks at once.


class ContentDigest:
    """The digest, to which chunks are added step by step.

    Args:
        model: the name of the embedding model.
        revision: everything besides the name that decides its vectors.
    """

    def __init__(self, model: str, revision: str) -> None:
        self._state = blake2b(f"{model}\0{revision}".encode(), digest_size=16)

    def add(self, said: bytes) -> None:
        """Add ``digested_bytes`` of the next chunks."""
        self._state.update(said)

    def hexdigest(self) -> str:
        """Return the digest of all chunks so far."""
        return self._state.hexdigest()


def digested_bytes(chunks: Iterable[Chunk]) -> bytes:
    """Return the bytes for the digest: ids and texts. The bytes of two lists, joined, are those of the joined list."""
    return b"".join(f"{chunk.chunk_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass") for chunk in chunks)
