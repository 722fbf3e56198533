"""Output folders -> the report, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.page.run import Run, read_run
from rag_harness.page.sections import sections_of
from rag_harness.report.suite_table import SuiteTable

Format = Literal["html", "md"]


def read_runs(outputs: Sequence[Path], tables: Mapping[str, SuiteTable] | None = None) -> list[Run]:
    """Read the runs; ``tables`` are those of a single one, where they are read already.

    Raises:
        DataError: a folder has no run, or a damaged one.
    """
    names = _names([output.absolute() for output in outputs])
    is_alone = len(outputs) == 1
    return [read_run(output, name, tables, is_alone) for output, name in zip(outputs, names, strict=True)]


def _names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each folder, with as many of its parents as tell it from the others."""
    for depth in range(1, max((len(folder.parts) for folder in folders), default=1)):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(folders):
            return names
    raise DataError("The same folder is named twice. Name folders of different runs.")


def write_html(runs: Sequence[Run], file: Path, is_plain: bool = False) -> None:
    """Write the page.

    Raises:
        OSError: the file cannot be written.
    """
    from rag_harness.page.html import html_of
    from rag_harness.page.payload.index import payload_of

    title = (
        f"RAG evaluation: {', '.join(dict.fromkeys(name for run in runs for name in run.experiments)) or 'no trial'}"
    )
    page = html_of(title, sections_of(runs), payload_of(runs), is_plain)
    # A lone surrogate of somebody's text cannot be written; U+FFFD says that something was there.
    write_atomically(file, page.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())
