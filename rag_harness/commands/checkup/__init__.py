"""``rag-harness doctor``: looks at the installation and at the suite of a folder, and changes nothing.

look_over(folder, network) -> Checkup    the lines of the report, and how much is broken

``installation`` knows packages and extras, ``suite_settings`` shows settings without keys, ``reach`` looks for what a
run would read, write or load, ``chat_server`` asks the chat endpoint. ``presence`` is one thing that was looked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rag_harness.commands.checkup.installation import extra_lines, package_lines
from rag_harness.commands.checkup.presence import Presence
from rag_harness.commands.checkup.suite_settings import setting_lines, suite_settings, without_secrets
from rag_harness.errors import DataError, PrerequisiteError

__all__ = ["Checkup", "look_over"]


class Checkup(NamedTuple):
    """The report of ``doctor``: its lines, and the number of things that are broken."""

    lines: list[str]
    broken: int


def look_over(folder: Path, network: bool = False) -> Checkup:
    """Look at the installation and at the suite in ``folder``; with ``network`` the chat endpoint is asked, too.

    Raises:
        DataError: there is no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"No folder {folder}: name the one that your suite is in, or none for this one.")
    set_here, found = _of_suite(folder, network)
    broken = sum(each.state == "broken" for each in found)
    sections = {
        "versions": package_lines(),
        "extras": extra_lines(),
        "settings that are not the default": set_here,
        "what is there": [line for each in found for line in each.lines()],
    }
    lines = [each for title, those in sections.items() for each in (title, *(f"  {line}" for line in those), "")]
    verdict = f"broken: {broken}. What to do stands below each." if broken else "nothing is broken"
    return Checkup([without_secrets(line) for line in (*lines, verdict)], broken)


def _of_suite(folder: Path, network: bool) -> tuple[list[str], list[Presence]]:
    from rag_harness.commands.checkup.reach import presences

    try:
        settings = suite_settings(folder)
    except PrerequisiteError as error:
        return ["they cannot be used, see below"], [Presence("broken", "settings", str(error))]
    found = [*presences(settings), *_schemas(folder)]
    if network:
        from rag_harness.commands.checkup.chat_server import chat_server

        found.append(chat_server(settings))
    return setting_lines(settings), found


def _schemas(folder: Path) -> list[Presence]:
    """Return which schemas for editors are of another version; nothing where none is there."""
    from rag_harness.commands.starter.editor_schemas import outdated

    return [
        Presence("absent", file.name, "that of this version", f"rag-harness schema {kind} -o {file}")
        for kind, file in outdated(folder).items()
    ]
