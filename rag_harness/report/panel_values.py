"""What each judge of a panel has said on a measure, beside the panel's own column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class PanelValues:
    """The values of the judges of a panel.

    Attributes:
        rule: how the panel decides.
        authors: judge, model and revision of each judge, in the order of the panel.
        values: shape (judges, cases); NaN where a judge has no value.
        asked: positions of the cases with something to measure, by which the silence of a judge is counted.
    """

    rule: str
    authors: Sequence[tuple[str, str, str]]
    values: npt.NDArray[np.float64]
    asked: npt.NDArray[np.intp]
