"""Removes keys from what is logged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_harness.settings.literal_keys import KEY

NOT_LOGGED = "[not logged]"
_NAMES = {"authorization", "proxy_authorization", "x_api_key", "api_key", "cookie", "set_cookie", "password", "secret"}
_KEYS = re.compile(
    KEY.pattern + r"|(?i:\b(?:rh_|sk-)[\w-]{16,}"  # a log hides more than a setting refuses: also what has no digit
    r"|\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_DEEPEST = 4


def without_secrets(value: Any, depth: int = 0) -> Any:
    """Return ``value`` without texts that look like keys, and without values under names of keys."""
    if isinstance(value, str):
        return _KEYS.sub(NOT_LOGGED, value)
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {name: _under(name, inner, depth) for name, inner in value.items()}
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [without_secrets(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float)) else _KEYS.sub(NOT_LOGGED, str(value))


def _under(name: Any, inner: Any, depth: int) -> Any:
    is_secret = str(name).lower().replace("-", "_") in _NAMES
    return NOT_LOGGED if is_secret else without_secrets(inner, depth + 1)
