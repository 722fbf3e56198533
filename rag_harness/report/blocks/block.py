"""Some rows of a result file as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

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
    absent: npt.NDArray[np.integer[Any]]
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
        versions: of the service that answered, by number; "" is none.
    """

    fingerprints: Sequence[str] = ()
    models: Sequence[str] = ()
    placed: Sequence[str] = ()
    errors: Sequence[tuple[int, str, str]] = ()
    reasons: Mapping[str, Sequence[Reason]] = field(default_factory=dict)
    versions: Sequence[str] = ()


@dataclass(frozen=True)
class Block:
    """Rows of cases that are known, in the order of their lines.

    Attributes:
        arrays: by name, see ``making``; shape (rows,) but for what is found, placed and the digests.
        texts: what arrays number.
    """

    arrays: Mapping[str, Array]
    texts: Texts

    @classmethod
    def of(cls, arrays: Mapping[str, Array], texts: Mapping[str, Any]) -> Block:
        """Return the block that was kept with these texts."""
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
        """Where the judged documents are, of each row; of one without an answer there are none."""
        return Looked(*(self.arrays[name] for name in FOUND))

    def scores(self, measure: str) -> Scores | None:
        """Return one measure of the rows; None of a ranking measure, which ``found`` has all of."""
        if measure not in self.texts.reasons:
            return None
        return Scores(self.arrays[f"value {measure}"], self.arrays[f"absent {measure}"], self.texts.reasons[measure])


class Kept(Protocol):
    """A block of whatever lines, as a shelf keeps it: ``texts`` are a dataclass of what JSON can say."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays, by name."""
        ...

    @property
    def texts(self) -> Any:
        """What arrays number."""
        ...

    @classmethod
    def of(cls, arrays: Mapping[str, Array], texts: Mapping[str, Any]) -> Self:
        """Return the block that was kept with these texts."""
        ...
