"""What a plan should have: how many pages about what, how many version pairs, and which kinds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag_harness.authoring.kb.plan import PAGE_KINDS
from rag_harness.errors import DataError

MOST_PAGES = 10_000
USUAL_KIND_SHARES = {"tabular": 0.3, "logical": 0.4, "mixed": 0.3}
_SLACK = 0.005
"""Shares of thirds are written as 0.33 and still count as a sum of 1."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The wish for a plan.

    Attributes:
        domain: what the pages are about, in words.
        pages: how many pages, outdated ones included.
        rot: share of the pages that are in version pairs, 0 to 1.
        shares: share of the pages of each kind; they sum to 1.
        seed: another one draws other pages.
        least: fewest pages of a plan; it depends on who writes it.
    """

    domain: str
    pages: int
    rot: float = 0.1
    shares: Mapping[str, float] = field(default_factory=lambda: USUAL_KIND_SHARES)
    seed: int = 0
    least: int = 1

    @property
    def pairs(self) -> int:
        """The number of version pairs closest to the share; at least one if ``rot`` is above 0."""
        return min(self.pages // 2, max(1, round(self.rot * self.pages / 2))) if self.rot else 0

    def check(self) -> None:
        """Raise an error if the wish cannot be planned.

        Raises:
            DataError: the message lists all faults, each with what to do.
        """
        if problems := list(self._problems()):
            raise DataError("\n".join(problems))

    def _problems(self) -> Iterator[str]:
        if not self.domain.strip():
            yield "the domain is empty. Say what the pages are about: --domain 'retail support'"
        if not self.least <= self.pages <= MOST_PAGES:
            yield f"{self.pages} pages are asked for; a plan has {self.least} to {MOST_PAGES:,}. Set --pages."
        if not 0 <= self.rot <= 1:
            yield f"rot is {self.rot:g}; it is the share of pages in version pairs, 0 to 1. Set --rot."
        elif self.rot and self.pages == 1:
            yield "1 page bears no version pair, which has 2. Set --rot 0, or ask for more pages."
        yield from self._wrong_shares()

    def _wrong_shares(self) -> Iterator[str]:
        known = ", ".join(PAGE_KINDS)
        for kind in sorted(self.shares.keys() - set(PAGE_KINDS)):
            yield f"kind {kind!r} is unknown; known are {known}. Use one of them in --kinds."
        told = ", ".join(f"{kind}={share:g}" for kind, share in self.shares.items())
        if any(not 0 <= share <= 1 for share in self.shares.values()):
            yield f"shares of kinds are 0 to 1 each; found {told}. Mend --kinds."
        elif not math.isclose(total := sum(self.shares.values()), 1, abs_tol=_SLACK + 1e-9):
            yield f"the shares of kinds sum to {total:g}, not to 1: {told}. Mend --kinds."
