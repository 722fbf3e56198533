"""One thing that was looked for: is it there, and what is to be done where it is not?"""

from __future__ import annotations

from typing import Literal, NamedTuple

PresenceState = Literal["ok", "absent", "broken"]


class Presence(NamedTuple):
    """What came of looking for one thing.

    Attributes:
        state: ``absent`` is no fault by itself; ``broken`` is what the settings ask for and cannot have.
        what: what was looked for.
        said: what was found.
        remedy: what to do; empty where nothing is to be done, or ``said`` says it.
    """

    state: PresenceState
    what: str
    said: str
    remedy: str = ""

    def lines(self) -> list[str]:
        """Return the lines of the report: one for what was found, and the rest below it."""
        first, *others = self.said.split("\n")
        remedy = [f"To do: {self.remedy}"] if self.remedy else []
        return [f"{self.state:<7} {self.what}: {first}", *(f"        {line}" for line in (*others, *remedy))]
