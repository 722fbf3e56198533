"""What a gate can slice by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def slices_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the short plain values of a case's metadata, as text."""
    return {key: str(value) for key, value in metadata.items() if isinstance(value, (str, bool, int)) and key}
