"""Where the answers of a suite come from: asked by this run, resumed from an earlier one, replayed from recordings."""

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
    """Some answers, and when they were given: seconds since 1970, UTC; those of ``undated`` nobody knows."""

    n: int = 0
    undated: int = 0
    earliest: float = inf
    latest: float = -inf

    def add(self, times: _Floats) -> None:
        """Count answers that were given at ``times``, NaN where nobody knows when."""
        known = times[~np.isnan(times)]
        self.n += len(times)
        self.undated += len(times) - len(known)
        self.earliest = min(self.earliest, float(known.min(initial=inf)))
        self.latest = max(self.latest, float(known.max(initial=-inf)))


@dataclass
class Origins:
    """The answers of a suite by where they come from.

    Attributes:
        asked: by this run.
        replayed: from recordings, by this run; dated by the recordings.
        partly: those of the asked that were made of recordings too, dated by these: of a rewritten question, say.
        resumed: rows that an earlier run has left; dated by that run.
        replayed_then: those of the resumed that the earlier run had from recordings, dated by these.
        computed: those of the asked for which no model was asked: a question that was declined by what was found, say.
        failed: trials of this run that ended without an answer.
        outdated: were recorded by another version of the model than there was when their row was made.
        versions: of a service, how many answers each gave.
    """

    asked: Origin = field(default_factory=Origin)
    replayed: Origin = field(default_factory=Origin)
    partly: Origin = field(default_factory=Origin)
    resumed: Origin = field(default_factory=Origin)
    replayed_then: Origin = field(default_factory=Origin)
    computed: int = 0
    failed: int = 0
    outdated: int = 0
    versions: Counter[str] = field(default_factory=Counter)

    def take(
        self,
        ended: _Floats,
        recorded: _Floats,
        is_ok: npt.NDArray[np.bool_],
        is_replayed: npt.NDArray[np.bool_],
        is_resumed: npt.NDArray[np.bool_],
    ) -> None:
        """Count rows: when each was made, when its answer was recorded, and what it is; all of shape (rows,)."""
        self.failed += int((~is_ok & ~is_replayed & ~is_resumed).sum())
        self.asked.add(ended[is_ok & ~is_replayed & ~is_resumed])
        has_recorded = is_replayed | ~np.isnan(recorded)
        self.partly.add(recorded[is_ok & has_recorded & ~is_replayed & ~is_resumed])
        self.replayed.add(recorded[is_replayed & ~is_resumed])
        self.resumed.add(ended[is_resumed])
        self.replayed_then.add(recorded[has_recorded & is_resumed])

    @property
    def has_recorded(self) -> bool:
        """Whether any answer, or a part of one, is a recorded one."""
        return bool(self.replayed.n or self.partly.n or self.replayed_then.n)

    @property
    def oldest(self) -> tuple[float, int]:
        """When the oldest answer was given that this run did not ask for, ``inf`` where there is none; and how many of
        those have no date.
        """
        asked_then = self.resumed.n - self.replayed_then.n
        earlier = [self.replayed, self.partly, self.replayed_then, *([self.resumed] if asked_then else [])]
        return min(each.earliest for each in earlier), self.replayed.undated + self.replayed_then.undated
