"""What a family of models is asked, and what it says: plain values, and the protocol of a family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

DECIMALS = 4
"""Decimals of a kept probability. Further ones depend on the batch that an input was in."""
SUPPORTED_ABOVE = 0.5
"""A claim is called supported above this probability, as the authors of the models have it."""

Readings = npt.NDArray[np.float64]
TextKey = tuple[str, ...]
"""The texts that one reading is made of. Equal texts are read once."""


class AskedSupport(NamedTuple):
    """Claims of one text, and the passages that may support them.

    Attributes:
        question: the question that the text answers.
        text: the text.
        spans: start and end of each claim in it.
        passages: the passages; none is empty.
    """

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    passages: tuple[str, ...]


class UnsupportedWords(NamedTuple):
    """Words of a claim that no passage supports: their place in the claim, and the probability of that."""

    start: int
    end: int
    probability: float


class ClaimSupport(NamedTuple):
    """The support of one claim: a probability, the passage that supports it, and words that nothing supports."""

    value: float | None
    passage: int | None = None
    reason: str = ""
    unsupported: tuple[UnsupportedWords, ...] = ()


class EncoderFamily(Protocol):
    """A family of models. ``texts`` and ``supports`` need no model; ``read`` loads it."""

    def texts(self, asked: AskedSupport) -> list[TextKey]:
        """Return the texts of each reading that ``asked`` needs."""
        ...

    def read(self, texts: Sequence[TextKey]) -> list[Readings]:
        """Return the reading of each of ``texts``, by the model."""
        ...

    def supports(self, asked: AskedSupport, readings: Sequence[Any]) -> list[ClaimSupport]:
        """Return the support of each claim, from the readings of ``texts(asked)``."""
        ...
