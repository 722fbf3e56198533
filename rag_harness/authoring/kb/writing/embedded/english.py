"""Small helpers for English and Markdown."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import date
from pathlib import PurePosixPath


def joined_with_and(parts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def lowered(text: str) -> str:
    """Return a heading in the form for the middle of a sentence. Abbreviations and names with several capitals stay."""
    return text[:1].lower() + text[1:] if text[1:2].islower() and text == text.capitalize() else text


def capital(text: str) -> str:
    """Return a text in the form for the start of a sentence."""
    return text[:1].upper() + text[1:]


def day(written: str) -> str:
    """Return an ISO date as ``1 March 2026``; any other text as it is."""
    try:
        known = date.fromisoformat(written)
    except ValueError:
        return written
    return f"{known.day} {known:%B} {known.year}"


def link(title: str, filename: str, page: str) -> str:
    """Return a Markdown link from ``page`` to ``filename``; both are paths below one folder."""
    target = posixpath.relpath(filename, PurePosixPath(page).parent.as_posix())
    text = title.replace("[", "\\[").replace("]", "\\]")
    return f"[{text}](<{target}>)" if " " in target or "(" in target else f"[{text}]({target})"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join([_row(columns), "|" + "---|" * len(columns), *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
