"""``rag-harness cache``: what the cache holds, and removing what was not used for long."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_harness.errors import SettingsError
from rag_harness.shown.terminal import say

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([kmgt]b)\s*", re.IGNORECASE)
_LONG = "30d"


def cache_status_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``cache status``."""
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of the cache; default: as the suite in this folder has it"
    )


def run_cache_status(chosen: argparse.Namespace) -> int:
    """Print a line an entry, the least used first."""
    from datetime import datetime

    from rag_harness.files.cache_folder import KINDS, entries_of

    folder = _folder(chosen)
    entries = entries_of(folder)
    for entry in entries:
        used = datetime.fromtimestamp(entry.used).strftime("%d %b %Y %H:%M")
        say(f"{entry.kind:<11}{_shown(entry.bytes):>9}  used {used}  {entry.path.name}")
    for kind in dict.fromkeys(entry.kind for entry in entries):
        say(f"{kind}: {KINDS[kind]}, {_shown(sum(each.bytes for each in entries if each.kind == kind))}")
    say(f"{folder}: {_shown(sum(entry.bytes for entry in entries))}; rag-harness cache prune removes what is not used")
    return 0


def prune_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``cache prune``."""
    cache_status_arguments(parser)
    parser.add_argument(
        "--older",
        default=_LONG,
        metavar="TIME",
        help=f"remove what was not used for so long, in days or hours; default: {_LONG}",
    )
    parser.add_argument("--most", default="", metavar="SIZE", help="also the least used, until so much is left: 2GB")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")


def run_prune(chosen: argparse.Namespace) -> int:
    """Remove what was not used for long. What a run may be using stays, and so do recordings."""
    from time import time

    from rag_harness.files.cache_folder import entries_of, remove_entry, stale
    from rag_harness.settings.durations import seconds_in

    folder, older, most = _folder(chosen), seconds_in(chosen.older, "--older"), _bytes(chosen.most)
    entries_of(folder)
    with _alone(folder):
        entries = entries_of(folder)
        gone = stale(entries, time(), older, most)
        for entry in gone:
            if not chosen.dry_run:
                remove_entry(entry)
            say(f"{'would go' if chosen.dry_run else 'gone'}: {entry.kind} {_shown(entry.bytes)} {entry.path.name}")
    left = sum(entry.bytes for entry in entries) - sum(entry.bytes for entry in gone)
    would = "would be" if chosen.dry_run else "are"
    say(f"{folder}: {len(gone)} of {len(entries)} entries {would} removed, {_shown(left)} left")
    return 0


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / "building.lock", timeout=0):
            yield
    except Timeout:
        raise SettingsError(f"A run is building in {folder}: prune it when that has ended.") from None


def _folder(chosen: argparse.Namespace) -> Path:
    if chosen.folder is not None:
        return Path(chosen.folder)
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

    settings = load_settings({}, ini_values(Path.cwd()))
    return settings.path(settings.cache_dir)


def _bytes(text: str) -> float:
    if not text:
        return math.inf
    found = _SIZE.fullmatch(text)
    if not found:
        raise SettingsError(f"--most is {text!r}: expected a size, a number with kB, MB, GB or TB behind it: 2GB.")
    return float(found[1]) * _UNITS[found[2].lower()]


def _shown(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
