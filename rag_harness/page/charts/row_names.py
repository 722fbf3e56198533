"""Names of rows: beside their marks, or above them where a name is long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag_harness.page.charts.texts import LINE, label, text_width

_BESIDE = 0.3
"""Share of a chart's width that names may take beside the marks."""
_GAP = 12.0


@dataclass(frozen=True)
class Rows:
    """The places of rows below ``top``. ``left`` is the left edge of their marks, ``tall`` their height."""

    top: float
    left: float
    tall: float
    is_above: bool

    @property
    def step(self) -> float:
        """The height of a row with its name."""
        return self.tall + (LINE if self.is_above else 0.0)

    def middle(self, place: int) -> float:
        """Return the height of the middle of a row's marks."""
        return self.top + self.step * (place + 1) - self.tall / 2

    def end(self, count: int) -> float:
        """Return the lower end of the last of so many rows."""
        return self.top + self.step * count

    def name(self, text: str, place: int, right: float) -> str:
        """Return the name of a row; above the marks it may reach to ``right``."""
        middle = self.middle(place)
        if self.is_above:
            return label(self.left, middle - self.tall / 2 - 2, text, right - self.left)
        return label(self.left - 8, middle + 4.5, text, self.left - _GAP, anchor="end")


def rows_below(top: float, names: Iterable[str], width: float, tall: float) -> Rows:
    """Return the places of rows with these names, for a chart of this width."""
    widest = max(map(text_width, names), default=0.0)
    is_above = widest > _BESIDE * width
    return Rows(top, 4.0 if is_above else widest + _GAP, tall, is_above)
