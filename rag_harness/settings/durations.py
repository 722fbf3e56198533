"""Parser for durations: ``7d``, ``12h``, ``30m``."""

from __future__ import annotations

import re

from rag_harness.errors import SettingsError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def seconds_in(text: str, name: str) -> float:
    """Return the seconds of a duration.

    Args:
        text: a number and s, m, h, d or w.
        name: the option, for the message.

        Raises:
            SettingsError: the text is no duration, or is zero.
    """
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds:
        raise SettingsError(
            f"{name} is {text!r}: expected a duration, a number with s, m, h, d or w behind it. Example: 7d."
        )
    return seconds
