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
    """

    attempts: int = 0
    failures: int = 0
    lost: int = 0
    twice: int = 0
    again: int = 0
    unkept: int = 0

    def note(self, lost: int = 0, twice: int = 0, again: int = 0, failed: bool = False, unkept: int = 0) -> None:
        """Add one attempt."""
        self.attempts += 1
        self.unkept += unkept
        self.failures += bool(failed or lost or twice)
        self.lost, self.twice, self.again = self.lost + lost, self.twice + twice, self.again + again


ACCOUNTS: dict[str, Account] = {}


def account(what: str) -> Account:
    """Return the account of a kind of trouble."""
    return ACCOUNTS.setdefault(what, Account())


def table() -> list[str]:
    """Return the lines of the table; Markdown, for docs/results/faults.md."""
    lines = [
        "| trouble | attempts | failures | lost | paid twice | asked again, in flight | of these answered |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for what, of in sorted(ACCOUNTS.items()):
        lines.append(f"| {what} | {of.attempts} | {of.failures} | {of.lost} | {of.twice} | {of.again} | {of.unkept} |")
    names = ("attempts", "failures", "lost", "twice", "again", "unkept")
    sums = [sum(getattr(of, name) for of in ACCOUNTS.values()) for name in names]
    return [*lines, "| all | " + " | ".join(map(str, sums)) + " |"]
