"""What is shared of a run: one HTML file that opens offline, Markdown for a pull request, and exports.

A section is a function of the runs; ``html`` shows its content, ``payload`` packs every trial for the page's script,
``comment`` is a run in brief. Plugin and commands call it. It reads tables, and shows no figure that the terminal
does not have. Begin reading with ``report.py`` and ``content.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from rag_harness.core.errors import SettingsError

Format = Literal["html", "md", "csv", "parquet", "badge"]
FORMATS: tuple[Format, ...] = get_args(Format)
BADGE = "badge.json"
"""How the name of a badge's file ends: another JSON file is not meant to be one."""


def format_of(file: Path) -> Format:
    """Return the format of a file by its ending.

    Raises:
        SettingsError: the ending belongs to no format.
    """
    for known in FORMATS:
        if file.name.lower().endswith(ending(known)):
            return known
    raise SettingsError(f"{file}: no format ends like that. Use one of {', '.join(map(ending, FORMATS))}.")


def ending(wanted: Format) -> str:
    """Return how the name of a file of this format ends."""
    return BADGE if wanted == "badge" else f".{wanted}"


def usual_name(wanted: Format) -> str:
    """Return the name of a report of this format, where none was given."""
    return BADGE if wanted == "badge" else f"report.{wanted}"


def check_place(file: Path) -> None:
    """Make sure that a report can be written to ``file``, before a run that costs money.

    Raises:
        SettingsError: the ending belongs to no format, or the file is a folder.
    """
    if file.is_dir():
        raise SettingsError(f"{file} is a folder. Name a file in it: {file / 'report.html'}.")
    format_of(file)
