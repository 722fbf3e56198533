"""Names in options that may hold several: ``e2,e3``, ``faithfulness hri``."""

from __future__ import annotations

from collections.abc import Iterable


def names_in(values: Iterable[str]) -> list[str]:
    """Return the names in the values of an option. Each value may hold several: ``e2,e3``, ``faithfulness hri``."""
    return [name for value in values for name in value.replace(",", " ").split()]
