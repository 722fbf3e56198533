"""The origins of a suite's answers: asked by this run, resumed from an earlier one, or replayed from recordings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import numpy as np
import numpy.typing as npt

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
