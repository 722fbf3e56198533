"""A block: some rows of a result file as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rag_harness.measures.ranking_arrays import Looked

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
        arrays: arrays by name, see ``making``; of shape (rows,), except for rankings, ``placed`` and the digests.
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
    """A block of any kind of lines, as a shelf keeps it. ``texts`` is a dataclass of JSON values."""

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
