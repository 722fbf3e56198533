"""``rag-harness report``: writes the results of one run or several into a file that can be sent."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.shown.terminal import say
from rag_harness.work.garbage import uncollected


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``report``."""
    from rag_harness.page.formats import FORMATS

    outputs = "output folder of a run; of several the last is now, and those named first are before; default: output"
    parser.add_argument("outputs", type=Path, nargs="*", default=[Path("output")], metavar="OUTPUT", help=outputs)
    parser.add_argument(
        "-o", dest="file", type=Path, metavar="FILE", help="file to write; default: report with the format's ending"
    )
    wanted = (
        "html: one page that opens offline; md: for a pull request; csv, parquet: a line a trial; badge: for shields.io"
    )
    parser.add_argument("--format", choices=FORMATS, help=f"{wanted}; default: as FILE ends, or html")
    link = "address at which the page will be, e.g. https://…/report.html: the Markdown then links trials to it"
    parser.add_argument("--link", default="", metavar="URL", help=link)
    plain = "keep the page's trials as plain JSON, for browsers that cannot unpack gzip: some three times the size"
    parser.add_argument("--plain", action="store_true", help=plain)


def run_report(chosen: argparse.Namespace) -> int:
    """Write the report, and print its place."""
    from rag_harness.page.formats import check_place, format_of, usual_name

    if chosen.file and not chosen.format:
        check_place(chosen.file)
    wanted = chosen.format or (format_of(chosen.file) if chosen.file else "html")
    if chosen.link:
        from rag_harness.page.comment.links import check_address

        check_address(chosen.link)
    file = chosen.file or Path(usual_name(wanted))
    with uncollected():  # imports also make objects that stay
        from rag_harness.page.report_files import size_said, write_report
        from rag_harness.report.left_nothing import said_of_last_run

        now, *before = reversed(chosen.outputs)
        write_report([now, *before], file, wanted, chosen.plain, link=chosen.link)
    say(*(said for output in chosen.outputs for said in said_of_last_run(output)))
    say(f"{file}: {size_said(file)}", *([f"before: {', '.join(map(str, before))}; now: {now}"] if before else []))
    return 0
