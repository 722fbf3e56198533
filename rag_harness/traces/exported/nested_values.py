"""Nested attributes as flat ones, times in text as nanoseconds: what exports write otherwise than OpenTelemetry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

_DEEPEST = 12
_FRACTION = re.compile(r"\.([0-9]{1,12})")


def flat_attributes(said: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield nested attributes under names with dots; items of a list of objects have their number in the name.

    ``{"a": {"b": 1}, "c": [{"d": 2}]}`` is ``a.b = 1`` and ``c.0.d = 2``. Null is no value.
    """
    for name, value in said.items():
        whole = f"{prefix}{name}"
        if value is None:
            continue
        if isinstance(value, Mapping) and depth < _DEEPEST and not _is_metadata(whole):
            yield from flat_attributes(value, f"{whole}.", depth + 1)
        elif (
            isinstance(value, list) and depth < _DEEPEST and value and all(isinstance(each, Mapping) for each in value)
        ):
            for number, each in enumerate(value):
                yield from flat_attributes(each, f"{whole}.{number}.", depth + 1)
        else:
            yield whole, value


def _is_metadata(name: str) -> bool:
    # OpenInference has metadata as a JSON text, and its own keys may have dots.
    return name == "metadata" or name.endswith(".metadata")


def nanoseconds(value: Any) -> int:
    """Return a time as nanoseconds since 1970: of ISO 8601, in UTC where it has no zone, or a number; 0 for no time.

    Numbers are seconds, milliseconds, microseconds or nanoseconds, by their size.
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e20:
        return 0
    # A second of 2001 to 2286 has ten digits.
    factor = next((factor for limit, factor in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if value < limit), 1)
    return int(value * factor)


def _six_digits(found: re.Match[str]) -> str:
    # Python 3.10 reads three digits or six.
    return f".{found[1][:6]:0<6}"


def _of_text(value: str) -> int:
    try:
        at = datetime.fromisoformat(_FRACTION.sub(_six_digits, value.strip().replace("Z", "+00:00"), count=1))
        at = at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
        since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        return 0
    # Of whole microseconds, for a float has too few digits for nanoseconds.
    return max((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000, 0)
