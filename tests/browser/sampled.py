"""A part of the cases in the quick suite: in a browser each takes a second or more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``: the first of each ``number`` is quick, the others are long."""
    return [
        pytest.param(*_values(case), marks=[pytest.mark.long] * (place % number > 0))
        for place, case in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if type(case) is tuple else (case,)
