"""The report of output folders, written in the requested format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.files import write_atomically
from rag_harness.core.progress import uncollected
from rag_harness.page import Format, usual_name
from rag_harness.page.listed_trials import is_sampled, sample_of
from rag_harness.page.run import Run, intervals_beside, read_run
from rag_harness.page.sections import sections_of
from rag_harness.records.manifest import MANIFEST
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import counted, listed


def write_report(
    outputs: Sequence[Path],
    file: Path,
    wanted: Format,
    is_plain: bool = False,
    tables: Mapping[str, SuiteTable] | None = None,
    link: str = "",
) -> None:
    """Write the report of the runs in ``outputs``: now first, then those before it.

    Args:
        outputs: folders of the runs.
        file: file to write; an older one is replaced when the new one is complete.
        wanted: the format; a table of trials is for one run only.
        is_plain: keep the page's trials as plain JSON.
        tables: tables of a single run, where they are already read.
        link: address of the page, for links of the Markdown to its trials; empty where it is not known.

    Raises:
        DataError: a folder has no run, or a damaged one.
        SettingsError: the file cannot be written, or the format is not for several runs.
    """
    if file.is_dir():
        raise SettingsError(f"{file} is a folder. Name a file in it: {file / usual_name(wanted)}.")
    try:
        if wanted in ("csv", "parquet"):
            _write_table(outputs, file, wanted)
        else:
            # All data is kept until the page is written, and the garbage collector would take a sixth of the time.
            with uncollected():
                alone = _race_alone(outputs, wanted)
                write_atomically(file, _encoded(alone or _text(read_runs(outputs, tables), wanted, is_plain, link)))
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}. Name another file.") from error


def read_runs(outputs: Sequence[Path], tables: Mapping[str, SuiteTable] | None = None) -> list[Run]:
    """Read the runs. Each gets a name that distinguishes it from the others.

    Raises:
        DataError: a folder has no run, or a damaged one, or does not exist.
    """
    for output in outputs:
        if output.is_file():
            raise DataError(f"{output} is a file. Name the output folder of a run: {output.absolute().parent}.")
    names = _names([output.absolute() for output in outputs])
    is_alone = len(outputs) == 1
    return [read_run(output, name, tables, is_alone) for output, name in zip(outputs, names, strict=True)]


def size_said(file: Path) -> str:
    """Return the size of a file as text."""
    size = file.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size // 1000, 1)} kB"


def _write_table(outputs: Sequence[Path], file: Path, wanted: Format) -> None:
    from rag_harness.tables.trials import write_csv, write_parquet

    if len(outputs) > 1:
        raise SettingsError(f"A table of trials is of one run, and {len(outputs)} are named. Name one folder.")
    (write_csv if wanted == "csv" else write_parquet)(outputs[0], file)


def _text(runs: Sequence[Run], wanted: Format, is_plain: bool, link: str) -> str:
    if wanted == "md":
        from rag_harness.page.comment import comment_of

        return comment_of(runs, link)
    if wanted == "badge":
        from rag_harness.page.run import badge_of

        return badge_of(runs[0])
    from rag_harness.page.html import html_of
    from rag_harness.page.payload import Packing, payload_of

    names = dict.fromkeys(name for run in runs for name in run.experiments)
    if not names and runs[0].brief.alone is not None:
        asked = counted(runs[0].brief.alone.asked, "question")
        return html_of(f"RAG evaluation: the retrieval suite, {asked}", sections_of(runs), None)
    title = f"RAG evaluation: {listed(list(names)) or 'no trial'}"
    with Packing(is_plain) as packing:
        if not is_sampled(runs):
            with intervals_beside(runs):
                payload = payload_of(runs, finished=packing.begin)
            return html_of(title, sections_of(runs), payload, packing)
        sections = sections_of(runs)
        return html_of(title, sections, payload_of(runs, sample_of(runs, sections), packing.begin), packing)


def _race_alone(outputs: Sequence[Path], wanted: Format) -> str:
    """Return the report of a folder that a race has written, and no run; empty where there is a run, or no race."""
    from rag_harness.diagnosis.tuning.outcome import read_outcome

    if len(outputs) > 1 or wanted == "badge" or (outputs[0] / MANIFEST).exists():
        return ""
    if (outcome := read_outcome(outputs[0])) is None:
        return ""
    if wanted == "md":
        from rag_harness.page.comment import race_text

        return race_text(outcome)
    from rag_harness.page.html import html_of
    from rag_harness.page.sections.comparison import race_section

    return html_of("The race of configurations", [race_section(outcome)], None)


def _encoded(text: str) -> bytes:
    # A lone surrogate in a user's text cannot be written. U+FFFD takes its place.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each folder, with as many parents as needed to distinguish it."""
    for depth in range(1, max((len(folder.parts) for folder in folders), default=1)):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(folders):
            return names
    raise DataError("The same folder is named twice. Name folders of different runs.")
