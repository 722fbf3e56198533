"""Lines of ``.gitignore`` for what a run writes and nobody commits: results, cache, log."""

from __future__ import annotations

from pathlib import Path

from rag_harness.commands.starter.started import Started
from rag_harness.settings import Settings

_UNSET = Settings()
IGNORED = tuple(f"{folder}/" for folder in (_UNSET.output, _UNSET.cache_dir, _UNSET.logs))
"""Recordings, in ``cassettes/``, and baselines are committed."""
_WHY = "# What a run of rag-harness writes"


def ignore_results(folder: Path, done: Started) -> None:
    """Add the lines that ``.gitignore`` lacks. Lines that are there stay, also one that takes such a folder in again.

    Raises:
        DataError: the file cannot be written.
    """
    file = folder / ".gitignore"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    # `/output`, `output/`, `!output`: the user has decided about this folder.
    decided = {line.strip().lstrip("!").strip("/") for line in text.splitlines()}
    missing = [line for line in IGNORED if line.rstrip("/") not in decided]
    if missing:
        done.append(file, "\n".join([_WHY, *missing, ""]), ", ".join(missing))
    else:
        done.kept.append(file)
