"""Phrases that decline, besides those that are known: ``refusals`` of ``[tool.rag_harness]`` in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from rag_harness.errors import SettingsError
from rag_harness.settings.profiles import pyproject_entry

_SHORTEST = 3
"""Fewest characters of a phrase: a shorter one would be found in answers that decline nothing."""


def own_refusals(rootdir: Path) -> tuple[str, ...]:
    """Return the phrases of the suite in ``rootdir``, in their order.

    Raises:
        SettingsError: they are no list of texts, or one of them is too short.
    """
    found = pyproject_entry(rootdir, "refusals", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise SettingsError(f"pyproject.toml: tool.rag_harness.refusals is {found!r}: expected a list of texts.")
    for phrase in found:
        if len(phrase.strip()) < _SHORTEST:
            raise SettingsError(
                f"pyproject.toml: tool.rag_harness.refusals has {phrase!r}: write {_SHORTEST} characters or more."
            )
    return tuple(dict.fromkeys(found))
