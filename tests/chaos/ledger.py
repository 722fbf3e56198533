"""What was tried, and what was lost or paid for twice: a line a kind of trouble, printed when the tests have ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Account:
    """Of one kind of trouble.

    Attributes:
        attempts: how often it was made.
        failures: attempts after which something was not as promised.
        lost: rows, documents or answers that had been acknowledged, or lay whole on the disk, and were gone.
        twice: calls of a model for what lay on the disk already.
        again: calls for what was in flight when it happened: nobody can know whether they were answered.
        unkept: answers that had left the server whole, and were on no disk yet; they are part of ``again``.
        late: those of them that had left it more than 5 ms before.
        read: those of these that the process had read. The machine had not let it read the others.
    """

    attempts: int = 0
    failures: int = 0
    lost: int = 0
    twice: int = 0
    again: int = 0
    unkept: int = 0
    late: int = 0
    read: int = 0

    def note(
        self,
        lost: int = 0,
        twice: int = 0,
        again: int = 0,
        failed: bool = False,
        unkept: int = 0,
        late: int = 0,
        read: int = 0,
    ) -> None:
        """Add one attempt."""
        self.attempts += 1
        self.unkept, self.late, self.read = self.unkept + unkept, self.late + late, self.read + read
        self.failures += bool(failed or lost or twice)
        self.lost, self.twice, self.again = self.lost + lost, self.twice + twice, self.again + again


ACCOUNTS: dict[str, Account] = {}
LINES: list[str] = []
"""What else was measured."""


def account(what: str) -> Account:
    """Return the account of a kind of trouble."""
    return ACCOUNTS.setdefault(what, Account())


_COLUMNS = {
    "attempts": "attempts",
    "failures": "failures",
    "lost": "lost",
    "paid twice": "twice",
    "asked again": "again",
    "of these answered": "unkept",
    "over 5 ms before": "late",
    "and read": "read",
}


def table() -> list[str]:
    """Return the lines of the table; Markdown, for docs/dev/results/faults.md."""
    rows = {what: [getattr(of, name) for name in _COLUMNS.values()] for what, of in sorted(ACCOUNTS.items())}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    head = [f"| trouble | {' | '.join(_COLUMNS)} |", f"|---|{'--:|' * len(_COLUMNS)}"]
    return [*head, *(f"| {what} | {' | '.join(map(str, row))} |" for what, row in rows.items())]
