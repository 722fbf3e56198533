"""Links from a comment into the report, where its address is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from rag_harness.errors import SettingsError
from rag_harness.page.comment.room import Room
from rag_harness.page.run import Run
from rag_harness.shown.markdown import code
from rag_harness.types import GOLDEN

_SAFE = "/:?[]@!$&'*+,;=%~"
"""Characters of an address that stay as they are. A parenthesis or an angle bracket would end a link of Markdown."""
_ADDRESS = re.compile(r"https?://[^\s/?#][^\s#]*|(?!//)[^\s:?#]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Links:
    """Links to trials.

    Attributes:
        run: the run that they are of.
        report: the address of the page; empty where it is not known, and trials are named only.
    """

    run: Run
    report: str = ""

    def to(self, trial: str, room: Room, in_table: bool = False) -> str:
        """Return the trial's name as code, which can be copied into a command; as a link where that is possible."""
        address = self.run.address(trial)
        name = code(room.cut_name(address))
        # A pipe ends a table's cell even in code, and is shown there without its backslash.
        name = name.replace("|", "\\|") if in_table else name
        # The report lists the trials of experiments only.
        if not self.report or trial.startswith(f"{GOLDEN}-"):
            return name
        return f"[{name}]({quote(self.report, safe=_SAFE)}#trials?open={quote(address, safe='')})"


def check_address(report: str) -> None:
    """Make sure that this is the address of a page.

    Raises:
        SettingsError: it is not.
    """
    if not _ADDRESS.fullmatch(report):
        raise SettingsError(
            f"--link {report}: that is no address of a page. Write https://… or a path such as report.html, without a "
            "space and without #."
        )
