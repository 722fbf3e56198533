"""A part of the cases in the quick suite: in a browser each takes a second or more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``: the first of each ``number`` is quick, the others are long."""
    marks = [[] if place == 0 else [pytest.mark.long] for place in range(number)]
    return [pytest.param(*_values(case), marks=marks[place % number]) for place, case in enumerate(cases)]


def _values(case: Any) -> tuple[Any, ...]:
    return case if type(case) is tuple else (case,)
