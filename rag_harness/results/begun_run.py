"""``begun.json``: the mark of a run that has begun and has left no results. What lies beside it is of a run before it,
and of this one as far as it came.

It is written before anything is asked, and the run's ``run.json`` takes it away. So it stays after whatever ends a run
without results: a service that is down, a setting that cannot be used, a key press, a killed process.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.files.atomic import write_atomically

BEGUN = "begun.json"


class BegunRun(BaseModel):
    """A run that has begun.

    Attributes:
        date: when it began: ISO 8601, UTC; empty where the file is damaged.
        command: the command that began it, without keys.
        why: why it ended without results; empty where nothing could be written any more, or while it is under way.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    date: str = ""
    command: str = ""
    why: str = ""


def write_begun(output: Path, run: BegunRun) -> None:
    """Write the mark.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(output / BEGUN, (run.model_dump_json(indent=1) + "\n").encode())


def read_begun(output: Path) -> BegunRun | None:
    """Return the run that has begun and has left no results; None where the last one left its results."""
    try:
        return BegunRun.model_validate_json((output / BEGUN).read_bytes())
    except OSError:
        return None
    except ValidationError:
        return BegunRun()


def forget_begun(output: Path) -> None:
    """Take the mark away."""
    (output / BEGUN).unlink(missing_ok=True)
