"""What could not be taken over from a file: each reason once, with its count and its first place."""

from __future__ import annotations

from collections.abc import Iterator


class Notes:
    """Counts reasons.

    Attributes:
        is_short: whether something is missing that the source has: a record, a demand, evidence.
        leaves_out: whether fields are left out on purpose.
    """

    def __init__(self) -> None:
        self._lost: dict[str, tuple[int, str]] = {}
        self._left: dict[str, tuple[int, str]] = {}
        self._told: dict[str, tuple[int, str]] = {}

    def lose(self, what: str, where: str) -> None:
        """Note something that the file asks for and that is not in our lines."""
        self._count(self._lost, what, where)

    def leave(self, what: str, where: str) -> None:
        """Note a field that is left out on purpose."""
        self._count(self._left, what, where)

    def tell(self, what: str, where: str) -> None:
        """Note something that is taken over otherwise than it stood there."""
        self._count(self._told, what, where)

    @property
    def is_short(self) -> bool:
        """Whether something is missing that the source has."""
        return bool(self._lost)

    @property
    def leaves_out(self) -> bool:
        """Whether fields are left out on purpose."""
        return bool(self._left)

    def lines(self) -> Iterator[str]:
        """Yield a line a reason."""
        for heading, found in (
            ("not imported:", self._lost),
            ("left out:", self._left),
            ("to know:", self._told),
        ):
            if found:
                yield heading
            for what, (count, first) in found.items():
                yield f"  {count:5,} × {what} ({'first ' * (count > 1)}{first})"

    @staticmethod
    def _count(found: dict[str, tuple[int, str]], what: str, where: str) -> None:
        count, first = found.get(what, (0, where))
        found[what] = count + 1, first
