"""The cache of blocks beside a result file: make, store and read them by the lines that they depend on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from rag_harness.core.files import write_atomically
from rag_harness.core.log import log
from rag_harness.core.package import package_digest
from rag_harness.core.registry import may_be_kept, stated_fingerprint
from rag_harness.core.text.refusals import evades
from rag_harness.core.types import SERVICE
from rag_harness.evaluation.measures import Measure, RankingMeasure, RowMeasure
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure, NamedMeasure
from rag_harness.evaluation.measures.metamorphic import MetamorphicMeasure
from rag_harness.evaluation.measures.ranking_arrays import Finder
from rag_harness.records.cases import CaseFile, StoredCase
from rag_harness.records.document_ranking import ranking_of
from rag_harness.records.manifest import seconds_of
from rag_harness.records.row import ExperimentResult, row_or_none
from rag_harness.records.scores import ScoreLine, outcome_digest, parse_score, row_digest
from rag_harness.tables.blocks import (
    DIGEST_BYTES,
    RANKING_ARRAYS,
    STAGES,
    Array,
    KeptBlock,
    RowBlock,
    RowScorer,
    ScoreBlock,
    ScoreMaker,
    Texts,
)

_LONGEST_WHY = 200
_FLOATS: tuple[str, ...] = (*(f"ms {stage}" for stage in STAGES), "cost", "waited", "ended", "recorded")
"""``ended`` and ``recorded`` are seconds since 1970; NaN where a row has none."""
_WHOLE = (
    "position",
    "fingerprint",
    "model",
    "hits",
    "prompt_tokens",
    "completion_tokens",
    "calls",
    "retries",
    "version",
    "outcome",
)
"""``model`` is -1 where the answer of no model is counted. ``outcome`` is equal where no score can differ."""
_FLAGS = (
    "ok", "abstained", "answerable", "relevant", "replayed", "answers", "retrieves", "computed", "evades", "says",
)  # fmt: skip
"""``relevant``: the case has a relevant document. ``evades``: it reads like a refusal, and does not count as one.
``says``: the experiment says whether it retrieves."""

_USUAL = (NamedMeasure.applies, RankingMeasure.applies)


class SuiteCases(Protocol):
    """The cases of a suite, by their position in the file."""

    @property
    def position(self) -> Mapping[str, int]:
        """The position of each id."""
        ...

    def __getitem__(self, position: int, /) -> StoredCase: ...


class _Numbers(dict[str, int]):
    """Numbers texts in the order in which they come."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class Maker:
    """A block of rows as it grows.

    Args:
        measures: measures that rows are scored on.
        gold: the cases; rows of other cases are skipped.
        digests: whether to store the digest of each row's judged fields.
    """

    def __init__(self, measures: Sequence[Measure], gold: SuiteCases, digests: bool = True) -> None:
        self._gold, self._finder = gold, Finder()
        self._scored = [RowScorer(measure) for measure in measures if has_column(measure)]
        self._digests: list[str] | None = [] if digests else None
        self._floats: list[tuple[float | None, ...]] = []
        self._whole: list[tuple[int, ...]] = []
        self._flags: list[tuple[bool, ...]] = []
        self._fingerprints, self._models, self._kinds, self._versions = (_Numbers() for _ in range(4))
        self._placed: list[tuple[int, int, int]] = []
        self._errors: list[tuple[int, str, str]] = []

    def add(self, row: ExperimentResult) -> None:
        """Add a row."""
        position = self._gold.position.get(row.query_id)
        if position is None:
            return
        kept = self._gold[position]
        ranked = ranking_of(row, kept.case)
        self._whole.append((*self._numbers(row, position, len(ranked)), outcome_digest(row, ranked)))
        self._floats.append(_floats(row))
        self._flags.append(_flags(row, kept, bool(ranked)))
        self._outcome(row)
        for column in self._scored:
            column.add(kept, row)
        self._finder.add(ranked if row.ok else (), kept.case.qrels if row.ok else {})
        if self._digests is not None:
            self._digests.append(row_digest(row))

    def block(self) -> RowBlock:
        """Return the block of the rows so far."""
        arrays = {
            **_columns(_FLOATS, self._floats, np.float64),
            **_columns(_WHOLE, self._whole, np.int64),
            **_columns(_FLAGS, self._flags, np.bool_),
            **dict(zip(RANKING_ARRAYS, self._finder.looked(), strict=True)),
            "placed": np.array(self._placed, dtype=np.int64).reshape(-1, 3),
        }
        if self._digests is not None:
            raw = bytes.fromhex("".join(self._digests))
            arrays["digest"] = np.frombuffer(raw, dtype=np.uint8).reshape(-1, DIGEST_BYTES)
        scores = {column.measure.name: column.scores() for column in self._scored}
        arrays |= {f"value {name}": found.values for name, found in scores.items()}
        arrays |= {f"absent {name}": found.absent for name, found in scores.items()}
        reasons = {name: found.reasons for name, found in scores.items()}
        named = list(self._fingerprints), list(self._models), list(self._kinds)
        texts = Texts(*named, self._errors, reasons, list(self._versions))
        return RowBlock(arrays, texts)

    def _numbers(self, row: ExperimentResult, position: int, hits: int) -> tuple[int, ...]:
        # An answer that declined without a model does not count as the answer of an unnamed model.
        counts = row.ok and (row.model or not row.abstained)
        model = self._models[row.model] if counts else -1
        usage = row.usage
        spent = (usage.prompt_tokens, usage.completion_tokens, usage.calls, row.retries)
        return position, self._fingerprints[row.fingerprint], model, hits, *spent, self._versions[row.version]

    def _outcome(self, row: ExperimentResult) -> None:
        number = len(self._whole) - 1
        if not row.ok:
            self._errors.append((number, row.trial_id, row.error_text[:_LONGEST_WHY]))
            return
        for stage in row.stages:
            if any(call.role == SERVICE for call in stage.calls):
                placed = stage.detail.get("placed", {})
                self._placed += [(number, self._kinds[kind], count) for kind, count in placed.items()]


def has_column(measure: Measure) -> bool:
    """Whether a block has a column of a measure. Measures that are not row measures need their own ``applies``."""
    is_by_row = isinstance(measure, RowMeasure) and not isinstance(measure, RankingMeasure)
    return is_by_row or getattr(type(measure), "applies", None) not in _USUAL


def needs_digests(measures: Iterable[Measure]) -> bool:
    """Whether a table of these measures must know which row a score belongs to."""
    return any(isinstance(each, (JudgedMeasure, CompositeMeasure, MetamorphicMeasure)) for each in measures)


def _floats(row: ExperimentResult) -> tuple[float | None, ...]:
    times = (row.total_time_ms, row.retrieval_time_ms, row.rerank_time_ms, row.llm_time_ms, row.ttft_ms)
    return *times, row.cost_usd, row.waited_ms, seconds_of(row.finished_at), seconds_of(row.recorded_at)


def _flags(row: ExperimentResult, kept: StoredCase, has_hits: bool) -> tuple[bool, ...]:
    # A service whose contexts are read, and which sends none, has looked for some and found nothing.
    looks = row.retrieval_time_ms is not None or any("placed" in stage.detail for stage in row.stages)
    case, retrieves = kept.case, has_hits or (looks if row.retrieves is None else row.retrieves)
    answers = row.ok and bool(row.llm_answer.strip())
    relevant = any(gain > 0 for gain in case.qrels.values())
    is_evasive = answers and not row.abstained and evades(row.llm_answer)
    return (
        row.ok,
        row.abstained,
        case.answerable,
        relevant,
        row.timings_recorded,
        answers,
        retrieves,
        row.is_computed,
        is_evasive,
        row.retrieves is not None,
    )


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]], kind: npt.DTypeLike) -> dict[str, Array]:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    # NumPy turns None into NaN.
    return {name: np.array(column, dtype=kind) for name, column in zip(names, columns, strict=True)}


# What a block depends on beside its lines. A kept block is valid as long as none of that changes.

_PROCESS = uuid4().hex
"""Means the code of a user's own measure. It is not known, so no other process has values of it."""


@dataclass(frozen=True)
class BlockInputs:
    """What the values of a block depend on.

    Attributes:
        cases: digest of the file of the cases.
        code: digest of this package.
        measures: version of each measure that has a column, by its name.
    """

    cases: str
    code: str
    measures: Mapping[str, str]

    def serves(self, wanted: BlockInputs) -> bool:
        """Whether a block made of this has everything that ``wanted`` names, in the same version."""
        same = (self.cases, self.code) == (wanted.cases, wanted.code)
        return same and wanted.measures.items() <= self.measures.items()


def cache_key(cases: str, measures: Iterable[Measure]) -> BlockInputs:
    """Return what a block made now depends on; ``measures`` are those with a column in it."""
    return BlockInputs(cases, package_digest(), {measure.name: _identity(measure) for measure in measures})


def _identity(measure: Measure) -> str:
    kind = type(measure)
    stated = stated_fingerprint(measure) if may_be_kept(measure) else _PROCESS
    return f"{kind.__module__}.{kind.__qualname__} {measure.version} {stated}"


# Blocks kept beside a file of rows or scores: ``columns/<experiment>/<digest of the lines>.safetensors``.
#
# They are made from the file's lines and can be deleted at any time. A block is made again where it cannot be read, or
# was made for other cases, measures or code.

COLUMNS_FOLDER = "columns"
"""Folder beside the files."""
_Block = TypeVar("_Block", bound=KeptBlock)
_SMALL = np.iinfo(np.int32)


class ColumnCache(Generic[_Block]):
    """The kept blocks of one file.

    Args:
        lines: the file.
        wanted: what its blocks must be made of.
        kind: class of its blocks.
    """

    def __init__(self, lines: Path, wanted: BlockInputs, kind: type[_Block]) -> None:
        self._folder, self._wanted, self._kind = lines.parent / COLUMNS_FOLDER / lines.stem, wanted, kind

    def get(self, digest: str) -> _Block | None:
        """Return the block of the lines with this digest; None where no usable one is kept."""
        from safetensors import SafetensorError, safe_open

        file = self._file(digest)
        if not file.is_file():
            return None
        try:
            with safe_open(str(file), framework="numpy") as opened:
                said = opened.metadata() or {}
                if not BlockInputs(**json.loads(said["made"])).serves(self._wanted):
                    return None
                arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is not a dict
                return self._kind.of(arrays, json.loads(said["texts"]))
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read and is made again: %s", file, error)
            return None

    def put(self, digest: str, block: _Block) -> None:
        """Keep a block. Where that fails, e.g. in a read-only folder, the next reader makes it again."""
        from safetensors.numpy import save

        said = {"made": json.dumps(asdict(self._wanted)), "texts": json.dumps(asdict(block.texts))}
        arrays = {name: _narrow(array) for name, array in block.arrays.items()}
        try:
            write_atomically(self._file(digest), save(arrays, said))
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file(digest), error)

    def keep_only(self, digests: Collection[str]) -> None:
        """Delete the blocks of lines that are no longer in the file."""
        for file in self._folder.glob("*.safetensors"):
            if file.stem not in digests:
                try:
                    file.unlink(missing_ok=True)
                except OSError as error:
                    log.warning("%s cannot be deleted: %s", file, error)

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.safetensors"


def _narrow(array: Array) -> Array:
    """Store integers in 32 bits where they fit."""
    fits = array.dtype == np.int64 and _SMALL.min <= array.min(initial=0) and array.max(initial=0) <= _SMALL.max
    return np.ascontiguousarray(array.astype(np.int32) if fits else array)


_Line = TypeVar("_Line")
_Said_contra = TypeVar("_Said_contra", contravariant=True)
_Made_co = TypeVar("_Made_co", bound=KeptBlock, covariant=True)


class Making(Protocol[_Said_contra, _Made_co]):
    """A block as it grows."""

    def add(self, line: _Said_contra, /) -> None:
        """Add a parsed line."""
        ...

    def block(self) -> _Made_co:
        """Return the block of the lines so far."""
        ...


@dataclass(frozen=True)
class Kind(Generic[_Line, _Block]):
    """How the blocks of one file are made.

    Attributes:
        read: parses a line; None where it is not of this kind.
        begin: makes an empty block that grows.
        made: returns what a block depends on beside its lines; called only where blocks are kept.
        block: class of the blocks.
    """

    read: Callable[[bytes], _Line | None]
    begin: Callable[[], Making[_Line, _Block]]
    made: Callable[[], BlockInputs]
    block: type[_Block]

    def cache(self, file: Path) -> ColumnCache[_Block]:
        """Return the cache of the blocks of ``file``."""
        return ColumnCache(file, self.made(), self.block)

    def fill(self, maker: Making[_Line, _Block], content: bytes) -> None:
        """Add lines to ``maker``. Lines of no such kind, as a kill leaves them, are skipped."""
        for text in content.split(b"\n"):
            line = self.read(text) if text and not text.isspace() else None
            if line is not None:
                maker.add(line)


def row_kind(
    measures: Sequence[Measure], gold: SuiteCases, cases: Callable[[], str], digests: bool = True
) -> Kind[ExperimentResult, RowBlock]:
    """Return how blocks of rows are made.

    Args:
        measures: measures that rows are scored on.
        gold: the cases.
        cases: returns the digest of their file.
        digests: whether to store the digest of each row's judged fields.
    """
    return Kind(
        row_or_none,
        lambda: Maker(measures, gold, digests),
        lambda: cache_key(cases(), filter(has_column, measures)),
        RowBlock,
    )


def score_kind(position: Mapping[str, int], cases: Callable[[], str]) -> Kind[ScoreLine, ScoreBlock]:
    """Return how blocks of scores are made. ``position`` is by case; ``cases`` returns the digest of their file."""
    return Kind(parse_score, lambda: ScoreMaker(position), lambda: cache_key(cases(), ()), ScoreBlock)


# Divides a result file into pieces. A whole piece does not change when the file grows.

SEGMENT = 32 << 20
"""Bytes after which a piece ends, at the end of a line."""
_READ_AT_ONCE = 1 << 20


class Segment(NamedTuple):
    """A piece of a file: bytes ``start`` to ``end``."""

    start: int
    end: int

    def is_whole(self, size: int) -> bool:
        """Whether the piece will not change when the file grows."""
        return self.end - self.start >= size


def segments(file: Path, size: int) -> list[Segment]:
    """Return the pieces of ``file``. Each ends with the line that fills ``size``; the last ends with the file."""
    if not file.is_file():
        return []
    found: list[Segment] = []
    with file.open("rb") as stream:
        length = os.fstat(stream.fileno()).st_size
        start = 0
        while start < length:
            found.append(Segment(start, _end(stream, start + size, length)))
            start = found[-1].end
    return found


def content(file: Path, segment: Segment) -> bytes:
    """Return the bytes of a piece."""
    with file.open("rb") as stream:
        stream.seek(segment.start)
        return stream.read(segment.end - segment.start)


def digests(file: Path, pieces: Sequence[Segment]) -> Iterator[str]:
    """Yield the digest of each piece, in their order. Each core has one reading thread, which reads in small steps."""
    with ThreadPoolExecutor(os.cpu_count() or 1, "rag-digests") as threads:
        waiting = [threads.submit(_digest, file, piece) for piece in pieces]
        try:
            yield from (each.result() for each in waiting)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _digest(file: Path, segment: Segment) -> str:
    state, left = sha256(), segment.end - segment.start
    with file.open("rb", buffering=0) as stream:
        stream.seek(segment.start)
        while left and (read := stream.read(min(left, _READ_AT_ONCE))):
            state.update(read)
            left -= len(read)
    return state.hexdigest()


def _end(stream: BinaryIO, least: int, length: int) -> int:
    if least >= length:
        return length
    stream.seek(least - 1)
    stream.readline()
    return stream.tell()


def read_blocks(rows: Path, measures: Sequence[Measure], cases: CaseFile, size: int) -> Iterator[RowBlock]:
    """Yield the blocks of a result file, one at a time; nothing without a file.

    The blocks of a file with several pieces are cached beside it. A cached block is used where its lines, the cases,
    the measures and the code are unchanged.

    Args:
        rows: the file.
        measures: measures that rows are scored on.
        cases: cases of the suite.
        size: size of a piece, in bytes.
    """
    pieces = segments(rows, size)
    asked = len(pieces) > 1 or needs_digests(measures)
    return _read(rows, pieces, row_kind(measures, cases, lambda: cases.digest, asked))


def read_score_blocks(scores: Path, cases: CaseFile, size: int) -> Iterator[ScoreBlock]:
    """Yield the blocks of a file of scores in the same way."""
    return _read(scores, segments(scores, size), score_kind(cases.position, lambda: cases.digest))


def _read(file: Path, pieces: Sequence[Segment], kind: Kind[Any, _Block]) -> Iterator[_Block]:
    if len(pieces) > 1:
        yield from _kept(file, pieces, kind)
        return
    for piece in pieces:
        yield block_of(content(file, piece), kind)


def _kept(file: Path, pieces: Sequence[Segment], kind: Kind[Any, _Block]) -> Iterator[_Block]:
    cache, known = kind.cache(file), list[str]()
    for piece, digest in zip(pieces, digests(file, pieces), strict=True):
        known.append(digest)
        block = cache.get(digest)
        if block is None:
            block = block_of(content(file, piece), kind)
            cache.put(digest, block)
        yield block
    cache.keep_only(known)


def block_of(lines: bytes, kind: Kind[Any, _Block]) -> _Block:
    """Return the block of some lines."""
    maker = kind.begin()
    kind.fill(maker, lines)
    return maker.block()


# Makes blocks while lines are written, so that a large file need not be read again at the end of a run.


class CacheWriter(Generic[_Line]):
    """Keeps the blocks of one file while another object appends to it.

    Args:
        file: file of rows or scores, with its present lines.
        kind: how its blocks are made.
        size: size of a piece, in bytes.
    """

    def __init__(self, file: Path, kind: Kind[_Line, Any], size: int) -> None:
        self._file, self._kind, self._size = file, kind, size
        self._cache = kind.cache(file)
        self._begin()

    def add(self, said: _Line, line: bytes) -> None:
        """Add ``line``, which was just appended, and its parsed form ``said``."""
        self._maker.add(said)
        self._state.update(line)
        self._end += len(line)
        self._turn_over()

    def seal(self) -> None:
        """Keep the block of the last piece. Where another process wrote to the file too, it is never used.

        A file of one piece is read in a second, and has no blocks.
        """
        if self._end > self._start > 0:
            self._put()

    def _put(self) -> None:
        self._cache.put(self._state.hexdigest(), self._maker.block())

    def _begin(self) -> None:
        """Begin with the lines of the last piece. The line that caused this keeper to be made is among them."""
        pieces = segments(self._file, self._size)
        self._begin_at(pieces[-1].start if pieces else 0)
        there = content(self._file, pieces[-1]) if pieces else b""
        self._state.update(there)
        self._end += len(there)
        self._kind.fill(self._maker, there)
        self._turn_over()

    def _turn_over(self) -> None:
        if self._end - self._start >= self._size:
            self._put()
            self._begin_at(self._end)

    def _begin_at(self, start: int) -> None:
        self._start = self._end = start
        self._maker, self._state = self._kind.begin(), sha256()
