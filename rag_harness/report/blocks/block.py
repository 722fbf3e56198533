"""Some rows of a result file as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.measures.ranking_arrays import Looked

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Reason = tuple[str, bool]
"""Why a row has no value, and whether there was nothing to measure."""
FOUND = ("counts", "ranks", "gains", "judged", "judged_gains")
DIGEST_BYTES = 12


class Scores(NamedTuple):
    """One measure of some rows.

    Attributes:
        values: shape (rows,); NaN where a row has none.
        absent: shape (rows,); number of the reason why it has none, 0 where it has a value or waits for one.
        reasons: by number; that of 0 is empty.
    """

    values: npt.NDArray[np.float64]
    absent: npt.NDArray[np.uint16]
    reasons: Sequence[Reason]

    def of(self, rows: Array) -> Scores:
        """Return those of some rows."""
        return Scores(self.values[rows], self.absent[rows], self.reasons)


@dataclass(frozen=True)
class Texts:
    """The texts of a block, each once.

    Attributes:
        fingerprints: by number.
        models: by number.
        placed: by what documents of contexts were found, by number.
        errors: row, trial and why, of rows without an answer.
        reasons: of each measure, by number.
    """

    fingerprints: Sequence[str] = ()
    models: Sequence[str] = ()
    placed: Sequence[str] = ()
    errors: Sequence[tuple[int, str, str]] = ()
    reasons: Mapping[str, Sequence[Reason]] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """Rows of cases that are known, in the order of their lines.

    Attributes:
        arrays: by name, see ``making``; shape (rows,) but for what is found, placed and the digests.
        texts: what arrays number.
    """

    arrays: Mapping[str, Array]
    texts: Texts

    def __len__(self) -> int:
        return len(self.arrays["position"])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @property
    def found(self) -> Looked:
        """Where the judged documents are, of each row; of one without an answer there are none."""
        return Looked(*(self.arrays[name] for name in FOUND))

    def scores(self, measure: str) -> Scores | None:
        """Return one measure of the rows; None of a ranking measure, which ``found`` has all of."""
        if measure not in self.texts.reasons:
            return None
        return Scores(self.arrays[f"value {measure}"], self.arrays[f"absent {measure}"], self.texts.reasons[measure])

    def digests(self, rows: Array) -> list[str]:
        """Return the digests of what is judged of some rows; empty where nothing of this suite is judged."""
        return [each.tobytes().hex() for each in self.arrays["digest"][rows]] if "digest" in self.arrays else []
