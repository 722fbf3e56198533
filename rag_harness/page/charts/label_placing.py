"""Places names beside points where they cover each other least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.page.charts.texts import SMALL, text_width

_NEAR = 9.0


@dataclass(frozen=True)
class Area:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def common(self, other: Area) -> float:
        """Return the area that both share, in square units."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


def placed(names: Sequence[str], places: Sequence[tuple[float, float]], within: Area, taken: list[Area]) -> list[Area]:
    """Return an area for each name beside its point. Taken areas and points are avoided where possible."""
    taken = taken + [Area(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    found = []
    for name, (x, y) in zip(names, places, strict=True):
        wide = text_width(name, SMALL)
        choices = [_kept_in(area, within) for area in _around(x, y, wide)]
        best = min(choices, key=lambda area: sum(area.common(other) for other in taken))
        taken.append(best)
        found.append(best)
    return found


def _around(x: float, y: float, wide: float) -> Iterator[Area]:
    tall = SMALL + 2
    # Names stand beside error bars, not on them; farther out only where nearer positions are taken.
    for far in (_NEAR, 2.5 * _NEAR, 4 * _NEAR):
        for up in (y - far - tall + 4, y + far - 4):
            yield Area(x + 6, up, x + 6 + wide, up + tall)
            yield Area(x - 6 - wide, up, x - 6, up + tall)


def _kept_in(area: Area, within: Area) -> Area:
    across = max(0.0, within.left - area.left) - max(0.0, area.right - within.right)
    down = max(0.0, within.top - area.top) - max(0.0, area.bottom - within.bottom)
    return Area(area.left + across, area.top + down, area.right + across, area.bottom + down)
