"""What is said where somebody names a folder that holds no run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from rag_harness.errors import meant
from rag_harness.files.near_names import meant_beside

_MOST = 2_000
"""How many folders are looked at."""
_SAID = 5


def no_run(output: Path, manifest: str) -> str:
    """Return the message that ``output`` holds no run, with the folders beside it or in it that hold one.

    Args:
        output: the folder that was named.
        manifest: the file that tells of a run.
    """
    is_there = output.is_dir()
    what = f"{output / manifest} does not describe a run: there is no such file" if is_there else f"No folder {output}"
    return f"{what}.{runs_near(output, manifest) or _begin(output, is_there)}"


def runs_near(output: Path, manifest: str) -> str:
    """Return which folders hold a run, and which was probably meant: those in ``output`` if it is there, else those
    beside it. Empty without any."""
    place = output if output.is_dir() else output.parent
    try:
        found = [each for each in islice(place.iterdir(), _MOST) if (each / manifest).is_file()]
    except OSError:
        return ""
    newest = sorted(found, key=lambda each: -(each / manifest).stat().st_mtime)
    names = [str(place / each.name) for each in newest]
    more = f", and {len(names) - _SAID} more" if len(names) > _SAID else ""
    said = f" Folders here that hold a run: {', '.join(names[:_SAID])}{more}." if names else ""
    near = "" if place == output else meant(output.name, [each.name for each in newest])
    return f"{near}{said}"


def _begin(output: Path, is_there: bool) -> str:
    if is_there:
        return f" Run pytest with --rag-output={output} first."
    near = meant_beside(output, Path.is_dir)
    return f"{near} No folder here holds a run: pytest writes one into output, or where --rag-output says."
