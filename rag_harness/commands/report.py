"""``rag-harness report``: what a run, or several, came to, as a file that can be sent."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.errors import SettingsError

FORMATS = {".html": "html", ".md": "md", ".csv": "csv", ".parquet": "parquet"}


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``report`` takes."""
    outputs = "output folder of a run, and of others to set it against; default: output"
    parser.add_argument("outputs", type=Path, nargs="*", default=[Path("output")], metavar="OUTPUT", help=outputs)
    parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="default: report with the format's suffix")
    wanted = "html: one page that opens offline; md: for a pull request; csv, parquet: a line a trial"
    parser.add_argument("--format", choices=list(FORMATS.values()), help=f"{wanted}; default: as FILE ends, or html")
    plain = "keep the page's trials as plain JSON, for browsers that cannot unpack gzip"
    parser.add_argument("--plain", action="store_true", help=plain)


def run_report(chosen: argparse.Namespace) -> int:
    """Write the report, and say where it is."""
    from rag_harness.page.written import read_runs, write_html

    runs = read_runs(chosen.outputs)
    file = chosen.file or Path("report.html")
    try:
        write_html(runs, file, chosen.plain)
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be written: {error.strerror or error}. Name another file with -o."
        ) from error
    print(f"{file}: {file.stat().st_size / 1e6:.2f} MB")
    return 0
