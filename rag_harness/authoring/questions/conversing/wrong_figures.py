"""Changes a figure, for a user who has it wrong."""

from __future__ import annotations

import re

_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_WHOLE = re.compile(r"(?<![\d.,–-])\d{1,3}(?:,\d{3})*(?![\d–-])")
_MANY = 60
"""Up to this number a wrong one is twice as much; above, half of it."""


def wrong_figure(value: str) -> str:
    """Return a value with another figure in its place; empty if it has none, or several."""
    clock = _CLOCK.findall(value)
    if clock:
        return _CLOCK.sub(lambda each: f"{(int(each[1]) + 2) % 24:02}:{each[2]}", value) if len(clock) == 1 else ""
    found = _WHOLE.findall(value)
    if len(found) != 1 or len(re.findall(r"\d+(?:[.,]\d+)*", value)) != 1:
        return ""
    number = int(found[0].replace(",", ""))
    if number < 2:  # "1 day" would become "2 day"
        return ""
    wrong = 2 * number if number <= _MANY else number // 2
    return _WHOLE.sub(f"{wrong:,}" if "," in found[0] or wrong >= 10_000 else str(wrong), value)
