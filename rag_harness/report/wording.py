"""Small pieces of sentences: a number with its noun, names in a row, a long name cut."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED, _LONGEST = 3, 40


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def joined_names(names: Sequence[str]) -> str:
    """Return names joined as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Return names as text; of many the first."""
    names = [short(name) for name in names]
    return joined_names([*names[:most], f"{len(names) - most} more"] if len(names) > most + 1 else names)


def short(name: str, room: int = _LONGEST) -> str:
    """Return a name in at most so many characters, cut in its middle: variants differ at the end."""
    return name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"
