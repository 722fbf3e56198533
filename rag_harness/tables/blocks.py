"""Blocks: rows and judged scores of a result file as arrays, with their totals and the origins of the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf, nan
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rag_harness.core.log import log
from rag_harness.core.text.comparison import without_chance
from rag_harness.evaluation.measures import Measure, RankingMeasure, RowMeasure, Score, scored
from rag_harness.evaluation.measures.ranking_arrays import Looked
from rag_harness.records.cases import StoredCase
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import ScoreLine

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Reason = tuple[str, bool]
"""Why a row has no value, and whether the measure is undefined there (nothing to measure)."""
RANKING_ARRAYS = ("counts", "ranks", "gains", "judged", "judged_gains")
DIGEST_BYTES = 12


class MeasureArrays(NamedTuple):
    """The scores of one measure on some rows.

    Attributes:
        values: shape (rows,); NaN where a row has none.
        absent: shape (rows,); number of the reason for a missing value, 0 where there is a value or it comes later.
        reasons: the reasons by number; reason 0 is empty.
    """

    values: npt.NDArray[np.float64]
    absent: npt.NDArray[np.integer[Any]]
    reasons: Sequence[Reason]

    def of(self, rows: Array) -> MeasureArrays:
        """Return the scores of some rows."""
        return MeasureArrays(self.values[rows], self.absent[rows], self.reasons)


@dataclass(frozen=True)
class Texts:
    """The texts of a block, each stored once.

    Attributes:
        fingerprints: fingerprints by number.
        models: models by number.
        placed: ways in which documents of contexts were found, by number.
        errors: row, trial and reason of each row without an answer.
        reasons: reasons of each measure, by number.
        versions: versions of the answering service, by number; "" is none.
    """

    fingerprints: Sequence[str] = ()
    models: Sequence[str] = ()
    placed: Sequence[str] = ()
    errors: Sequence[tuple[int, str, str]] = ()
    reasons: Mapping[str, Sequence[Reason]] = field(default_factory=dict)
    versions: Sequence[str] = ()


@dataclass(frozen=True)
class RowBlock:
    """Rows of known cases, in the order of their lines.

    Attributes:
        arrays: arrays by name, see ``column_cache``; of shape (rows,), except for rankings, ``placed`` and the digests.
        texts: the texts that the arrays refer to by number.
    """

    arrays: Mapping[str, Array]
    texts: Texts

    @classmethod
    def of(cls, arrays: Mapping[str, Array], texts: Mapping[str, Any]) -> RowBlock:
        """Return the block that was kept as these arrays and texts."""
        reasons = {name: [(why, undefined) for why, undefined in each] for name, each in texts["reasons"].items()}
        errors = [(row, trial, why) for row, trial, why in texts["errors"]]
        named = texts["fingerprints"], texts["models"], texts["placed"]
        return cls(arrays, Texts(*named, errors, reasons, texts["versions"]))

    def __len__(self) -> int:
        return len(self.arrays["position"])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @property
    def found(self) -> Looked:
        """The ranks of the judged documents in each row; none for a row without an answer."""
        return Looked(*(self.arrays[name] for name in RANKING_ARRAYS))

    def scores(self, measure: str) -> MeasureArrays | None:
        """Return the scores of one measure; None for a ranking measure, which is computed from ``found``."""
        if measure not in self.texts.reasons:
            return None
        return MeasureArrays(
            self.arrays[f"value {measure}"], self.arrays[f"absent {measure}"], self.texts.reasons[measure]
        )


_Kept = TypeVar("_Kept")
"""``typing.Self``, which Python 3.10 lacks."""


class KeptBlock(Protocol):
    """A block of any kind of lines, as a cache keeps it. ``texts`` is a dataclass of JSON values."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays, by name."""
        ...

    @property
    def texts(self) -> Any:
        """The texts that the arrays refer to by number."""
        ...

    @classmethod
    def of(cls: type[_Kept], arrays: Mapping[str, Array], texts: Mapping[str, Any]) -> _Kept:
        """Return the block that was kept as these arrays and texts."""
        ...


NO_ANSWER = "no answer"
_OPEN = (nan, 0)


class RowScorer:
    """The scores of one measure on rows. Values of judges and rankings stay open: they are filled in later."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._found: list[tuple[float, int]] = []
        self._reasons: dict[Reason, int] = {("", True): 0}
        # Checked once here: isinstance with a protocol is slow, and each row would need it.
        self._by_row = measure if isinstance(measure, RowMeasure) and not isinstance(measure, RankingMeasure) else None

    def add(self, kept: StoredCase, row: ExperimentResult) -> None:
        """Score a row."""
        why = self.measure.applies(kept.case)
        if why:
            self._found.append(self._without(why))
        elif not row.ok:
            worst = self.measure.worst
            self._found.append(self._without(NO_ANSWER) if worst is None else (worst, 0))
        else:
            self._found.append(_OPEN if self._by_row is None else self._said(_scored(self._by_row, kept, row)))

    def scores(self) -> MeasureArrays:
        """Return the scores so far."""
        values, absent = zip(*self._found, strict=True) if self._found else ((), ())
        return MeasureArrays(np.array(values, dtype=np.float64), np.array(absent, dtype=np.uint16), list(self._reasons))

    def _said(self, score: Score) -> tuple[float, int]:
        if score.value is not None:
            return score.value, 0
        return self._without(score.reason or "no value", score.undefined)

    def _without(self, why: str, undefined: bool = True) -> tuple[float, int]:
        return nan, self._reasons.setdefault((why, undefined), len(self._reasons))


def _scored(measure: RowMeasure, kept: StoredCase, row: ExperimentResult) -> Score:
    """Score a row. Where the measure raises, the score has no value and says why."""
    try:
        return scored(measure, kept.case, row)
    except Exception as error:
        log.error("%s of %s failed", measure.name, row.trial_id, exc_info=error)
        return Score(None, f"no value, because the measure raised {type(error).__name__}: {error}")


# A block holds every score of a known case, of any judge and any row. The table decides which of them count.

_WHOLE = ("position", "measure", "version", "author", "repeat", "absent")
_LARGEST = (1 << 31) - 1
_Author = tuple[str, str, str]
_A_VALUE: Reason = ("", True)


@dataclass(frozen=True)
class ScoreTexts:
    """The texts of a block of scores, each stored once.

    Attributes:
        measures: measures by number.
        authors: judge, model and revision, by number.
        reasons: reasons for missing values, as the lines say, by number; 0 marks a value.
    """

    measures: Sequence[str]
    authors: Sequence[_Author]
    reasons: Sequence[Reason]


@dataclass(frozen=True)
class ScoreBlock:
    """Scores in the order of their lines.

    Attributes:
        arrays: ``position`` of the case, ``measure``, ``author`` and ``absent`` (the reason) as numbers, ``version``,
            ``repeat`` and ``value``, shape (lines,); ``digest`` of the judged fields, shape (lines, 12), in bytes.
        texts: the texts that the arrays refer to by number.
    """

    arrays: Mapping[str, Array]
    texts: ScoreTexts

    @classmethod
    def of(cls, arrays: Mapping[str, Array], texts: Mapping[str, Any]) -> ScoreBlock:
        """Return the block that was kept as these arrays and texts."""
        authors = [(judge, model, revision) for judge, model, revision in texts["authors"]]
        reasons = [(why, undefined) for why, undefined in texts["reasons"]]
        return cls(arrays, ScoreTexts(texts["measures"], authors, reasons))

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def by(self, authors: Collection[_Author]) -> Mask:
        """Return which scores are by one of ``authors``."""
        return self._by([author in authors for author in self.texts.authors])

    def by_judge(self, judge: str) -> Mask:
        """Return which scores are by a judge, of any model and revision."""
        return self._by([author[0] == judge for author in self.texts.authors])

    def _by(self, is_one: Sequence[bool]) -> Mask:
        found: Mask = np.array(is_one, np.bool_)[self["author"]]
        return found

    def of_measure(self, name: str, version: int, among: Mask) -> npt.NDArray[np.intp]:
        """Return the numbers of the lines that score a measure, ``among`` some lines."""
        if name not in self.texts.measures:
            return np.zeros(0, np.intp)
        number = self.texts.measures.index(name)
        return np.flatnonzero(among & (self["measure"] == number) & (self["version"] == version))

    def scores(self, lines: npt.NDArray[np.intp], reasons: Sequence[Reason]) -> MeasureArrays:
        """Return the scores of some lines, with ``reasons`` in place of the block's own."""
        return MeasureArrays(self["value"][lines], self["absent"][lines], reasons)


class ScoreMaker:
    """A block of scores as it grows.

    Args:
        position: position of each case, by its id; scores of other cases are skipped.
    """

    def __init__(self, position: Mapping[str, int]) -> None:
        self._position = position
        self._measures: dict[str, int] = {}
        self._authors: dict[_Author, int] = {}
        self._reasons: dict[Reason, int] = {}
        self._whole: list[tuple[int, ...]] = []
        self._values: list[float] = []
        self._digests: list[bytes] = []

    def add(self, score: ScoreLine) -> None:
        """Add a score. A score that no row or no measure can have is skipped."""
        try:
            numbers, digest = self._numbers(score), bytes.fromhex(score.row)
        except (TypeError, ValueError):  # the line may be of another program
            return
        if numbers is None or len(digest) != DIGEST_BYTES or digest.hex() != score.row:
            return
        self._whole.append(numbers)
        self._values.append(nan if score.value is None else score.value)
        self._digests.append(digest)

    def _numbers(self, score: ScoreLine) -> tuple[int, ...] | None:
        position = self._position.get(score.query_id)
        if position is None or max(abs(score.version), abs(score.repeat)) > _LARGEST:
            return None
        who = (score.author.judge, score.author.model, score.author.revision)
        measure = self._measures.setdefault(score.measure, len(self._measures))
        author = self._authors.setdefault(who, len(self._authors))
        return position, measure, score.version, author, score.repeat, self._absent(score)

    def _absent(self, score: ScoreLine) -> int:
        if score.value is not None:
            return 0
        return self._reasons.setdefault((score.reason, score.undefined), len(self._reasons) + 1)

    def block(self) -> ScoreBlock:
        """Return the block of the scores so far."""
        whole = np.array(self._whole, np.int64).reshape(-1, len(_WHOLE))
        arrays: dict[str, Array] = {name: np.ascontiguousarray(whole[:, n]) for n, name in enumerate(_WHOLE)}
        arrays["value"] = np.array(self._values, np.float64)
        arrays["digest"] = np.frombuffer(b"".join(self._digests), np.uint8).reshape(-1, DIGEST_BYTES)
        return ScoreBlock(arrays, ScoreTexts(list(self._measures), list(self._authors), [_A_VALUE, *self._reasons]))


Kind = Literal["asked", "replayed", "resumed"]
_Floats = npt.NDArray[np.float64]


@dataclass
class Origin:
    """A number of answers, and their times: seconds since 1970, UTC. ``undated`` counts those without a time."""

    n: int = 0
    undated: int = 0
    earliest: float = inf
    latest: float = -inf

    def add(self, times: _Floats) -> None:
        """Count answers that were given at ``times``; NaN where the time is not known."""
        known = times[~np.isnan(times)]
        self.n += len(times)
        self.undated += len(times) - len(known)
        self.earliest = min(self.earliest, float(known.min(initial=inf)))
        self.latest = max(self.latest, float(known.max(initial=-inf)))


@dataclass
class Origins:
    """The answers of a suite, by origin.

    Attributes:
        asked: asked by this run.
        replayed: replayed by this run from recordings, and dated by them.
        partly: asked answers that also used recordings, e.g. of a rewritten question; dated by the recordings.
        resumed: rows of an earlier run, dated by that run.
        replayed_then: resumed answers that the earlier run had replayed, dated by the recordings.
        computed: answers without a call of a model, and in a replay those of the baseline reader; they are not among
            the asked.
        declined: those of them that were given without the reader and decline, e.g. because too little was found.
        failed: trials of this run that ended without an answer.
        versions: number of answers of each version of a service.
    """

    asked: Origin = field(default_factory=Origin)
    replayed: Origin = field(default_factory=Origin)
    partly: Origin = field(default_factory=Origin)
    resumed: Origin = field(default_factory=Origin)
    replayed_then: Origin = field(default_factory=Origin)
    computed: int = 0
    declined: int = 0
    failed: int = 0
    versions: Counter[str] = field(default_factory=Counter)

    def take(
        self,
        ended: _Floats,
        recorded: _Floats,
        is_ok: npt.NDArray[np.bool_],
        is_replayed: npt.NDArray[np.bool_],
        is_resumed: npt.NDArray[np.bool_],
        is_computed: npt.NDArray[np.bool_],
        is_declined: npt.NDArray[np.bool_],
    ) -> None:
        """Count rows by the times of the row and of its recording, and by flags; all of shape (rows,)."""
        self.failed += int((~is_ok & ~is_replayed & ~is_resumed).sum())
        own = is_ok & ~is_replayed & ~is_resumed
        self.asked.add(ended[own & ~is_computed])
        self.computed += int((own & is_computed).sum())
        self.declined += int((own & is_declined).sum())
        has_recorded = is_replayed | ~np.isnan(recorded)
        self.partly.add(recorded[is_ok & has_recorded & ~is_replayed & ~is_resumed])
        self.replayed.add(recorded[is_replayed & ~is_resumed])
        self.resumed.add(ended[is_resumed])
        self.replayed_then.add(recorded[has_recorded & is_resumed])

    @property
    def has_recorded(self) -> bool:
        """Whether any answer comes from a recording, or partly."""
        return bool(self.replayed.n or self.partly.n or self.replayed_then.n)

    @property
    def oldest(self) -> tuple[float, int]:
        """Time of the oldest answer that this run did not ask for, else ``inf``; and how many have no date."""
        asked_then = self.resumed.n - self.replayed_then.n
        earlier = [self.replayed, self.partly, self.replayed_then, *([self.resumed] if asked_then else [])]
        return min(each.earliest for each in earlier), self.replayed.undated + self.replayed_then.undated


STAGES = {
    "total": "total_time_ms",
    "retrieve": "retrieval_time_ms",
    "rerank": "rerank_time_ms",
    "model call": "llm_time_ms",
    "first token": "ttft_ms",
}
MOST_ERRORS = 5
Rows = npt.NDArray[np.intp]
"""Positions in a block, in its order."""


class Totals:
    """Counts, sums and times of the rows of a suite.

    Attributes:
        times: milliseconds of each stage by case, shape (cases,); NaN without a time.
        recorded: whether the times of a case's answer are those of a recorded call, shape (cases,).
        new: whether this run made the answer of a case itself, shape (cases,): it is neither resumed nor replayed, nor
            declined without a model.
        outcomes: digest of what scores are made of, by case, shape (cases,); 0 without a row.
        evasive: number of answers that read like refusals and are not counted as ones.
        depth: highest number of hits of a row.
        models: number of answers of each model; "" is a pipeline that names none.
        origins: where the answers come from.
        first_errors: id and error of the first trials without an answer.
        alike_errors: number of trials of each error, of the first few errors that differ by more than chance.
        retrieves: whether it says that it retrieves, or an answer came with a context.
        says_retrieval: whether it says that it retrieves; None where it does not say.
        placed: for a service, the number of context documents that were found by id, by text, or not at all.
    """

    def __init__(self, cases: int) -> None:
        self.times: dict[str, npt.NDArray[np.float64]] = {stage: np.full(cases, np.nan) for stage in STAGES}
        self.recorded: npt.NDArray[np.bool_] = np.zeros(cases, dtype=np.bool_)
        self.new: npt.NDArray[np.bool_] = np.zeros(cases, dtype=np.bool_)
        self.outcomes: npt.NDArray[np.int64] = np.zeros(cases, dtype=np.int64)
        self.rows: int = 0
        self.errors: int = 0
        self.resumed: int = 0
        self.replayed: int = 0
        self.abstained: int = 0
        self.evasive: int = 0
        self.depth: int = 0
        self.prompt_tokens: int = 0
        self.completion_tokens: int = 0
        self.calls: int = 0
        self.cost_usd: float | None = None
        self.paid_usd: float = 0.0
        self.waited_ms: float = 0.0
        self.longest_wait_ms: float = 0.0
        self.retries: int = 0
        self.began: float = inf
        self.ended: float = -inf
        self.models: Counter[str] = Counter()
        self.placed: Counter[str] = Counter()
        self.first_errors: list[tuple[str, str]] = []
        self.alike_errors: dict[str, int] = {}
        self._first_alike: dict[str, str] = {}
        self.origins: Origins = Origins()
        self.retrieves: bool = False
        self.says_retrieval: bool | None = None
        self.answers: bool = False

    @property
    def answered(self) -> int:
        """Number of rows with an answer and no error."""
        return self.rows - self.errors

    def take(self, block: RowBlock, rows: Rows, resumed: Mask) -> None:
        """Count some rows of a block. ``resumed``, of shape (cases,), marks those of an earlier run."""
        positions, of_old = block["position"][rows], resumed[block["position"][rows]]
        self.outcomes[positions] = block["outcome"][rows]
        self.rows += len(rows)
        self.resumed += int(of_old.sum())
        self.recorded[positions] = block["replayed"][rows]
        self.replayed += int(block["replayed"][rows].sum())
        is_ok, is_replayed = block["ok"][rows], block["replayed"][rows]
        is_computed = block["computed"][rows]
        is_declined = is_ok & is_computed & block["abstained"][rows] & (block["calls"][rows] == 0)
        when = block["ended"][rows], block["recorded"][rows]
        self.origins.take(*when, is_ok, is_replayed, of_old, is_computed, is_declined)
        self.abstained += int(block["abstained"][rows].sum())
        self.evasive += int(block["evades"][rows].sum())
        self._spend(block, rows)
        self._outcome(block, rows)
        self.depth = max(self.depth, int(block["hits"][rows].max(initial=0)))
        self.retrieves |= bool(block["retrieves"][rows].any())
        if self.says_retrieval is None and block["says"][rows].any():
            self.says_retrieval = self.retrieves
        for stage, times in self.times.items():
            times[positions] = block[f"ms {stage}"][rows]
        self._pace(block, rows[~of_old & ~is_replayed & ~is_declined & ~np.isnan(block["ended"][rows])])

    def _spend(self, block: RowBlock, rows: Rows) -> None:
        self.prompt_tokens += int(block["prompt_tokens"][rows].sum())
        self.completion_tokens += int(block["completion_tokens"][rows].sum())
        self.calls += int(block["calls"][rows].sum())
        costs = block["cost"][rows]
        if not np.isnan(costs).all():
            self.cost_usd = _added(self.cost_usd or 0.0, costs)

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    def _outcome(self, block: RowBlock, rows: Rows) -> None:
        ok = block["ok"][rows]
        self.errors += int(len(rows) - ok.sum())
        self.answers |= bool(block["answers"][rows].any())
        models, texts = block["model"][rows], block.texts
        numbered, times = np.unique(block["version"][rows], return_counts=True)
        self.origins.versions += Counter(
            {texts.versions[n]: int(count) for n, count in zip(numbered, times, strict=True) if texts.versions[n]}
        )
        numbers, first, counts = np.unique(models[models >= 0], return_index=True, return_counts=True)
        for place in np.argsort(first):
            self.models[texts.models[numbers[place]]] += int(counts[place])
        taken = np.zeros(len(block), np.bool_)
        taken[rows] = True
        for row, kind, count in block["placed"].tolist():
            if taken[row]:
                self.placed[texts.placed[kind]] += count
        errors = [(trial, why) for row, trial, why in texts.errors if taken[row]]
        self.first_errors += islice(errors, MOST_ERRORS - len(self.first_errors))
        for _, why in errors:
            shown = self._first_alike.setdefault(without_chance(why), why)
            if shown in self.alike_errors or len(self.alike_errors) < MOST_ERRORS:
                self.alike_errors[shown] = self.alike_errors.get(shown, 0) + 1

    def _pace(self, block: RowBlock, rows: Rows) -> None:
        if not len(rows):
            return
        self.new[block["position"][rows]] = True
        waited, ended = block["waited"][rows], block["ended"][rows]
        self.retries += int(block["retries"][rows].sum())
        self.waited_ms = _added(self.waited_ms, waited)
        self.longest_wait_ms = max(self.longest_wait_ms, float(np.nan_to_num(waited).max()))
        self.paid_usd = _added(self.paid_usd, block["cost"][rows])
        self.ended = max(self.ended, float(ended.max()))
        self.began = min(self.began, float((ended - (block["ms total"][rows] + waited) / 1000).min()))


def _added(start: float, values: npt.NDArray[np.float64]) -> float:
    """Add the values one by one, so that the sum does not depend on where blocks end."""
    return float(np.add.accumulate(np.concatenate([[start], values[~np.isnan(values)]]))[-1])
