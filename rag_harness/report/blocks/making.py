"""Makes blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rag_harness.measures import Measure, RankingMeasure, RowMeasure
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.hits import ranking_of
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.measures.measure import NamedMeasure
from rag_harness.measures.metamorphic import MetamorphicMeasure
from rag_harness.measures.ranking_arrays import Finder
from rag_harness.report.blocks.block import DIGEST_BYTES, RANKING_ARRAYS, Array, RowBlock, Texts
from rag_harness.report.blocks.row_scores import RowScorer
from rag_harness.report.totals import STAGES
from rag_harness.results.cases import KeptCase
from rag_harness.results.dates import seconds_of
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score import outcome_digest, row_digest
from rag_harness.types import SERVICE
from rag_harness.words.abstention import evades

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

    def __getitem__(self, position: int, /) -> KeptCase: ...


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


def _flags(row: ExperimentResult, kept: KeptCase, has_hits: bool) -> tuple[bool, ...]:
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
