"""Turns lines of judged scores into a block of arrays.

A block holds every score of a known case, of any judge and any row. The table decides which of them count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.report.blocks.block import DIGEST_BYTES, Array, Mask, MeasureArrays, Reason
from rag_harness.results.score import ScoreLine

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
        reasons: reasons for missing values, as the lines say, by number; 0 stands for a value.
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
