"""``-m e9`` selects nothing and would end as "no tests ran"; this says what was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError, unknown

if TYPE_CHECKING:
    import pytest

_NAME = re.compile(r"[A-Za-z_]\w*")
_WORDS = {"and", "or", "not", "True", "False", "None"}


def check_marker_expression(config: pytest.Config) -> None:
    """Make sure that every name in ``-m`` is a registered marker.

    Raises:
        SettingsError: one is not; lists the experiments.
    """
    names = set(_NAME.findall(config.getoption("markexpr", "") or "")) - _WORDS
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for name in sorted(names - known):
        raise SettingsError(f"-m: {unknown('marker', name, known)}")
