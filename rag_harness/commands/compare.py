"""``rag-harness compare`` and ``power``: how saved runs differ, and which differences they can show."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.report.compared import compared_lines
from rag_harness.report.left_nothing import check_whole
from rag_harness.report.power import USUAL_MEASURES, power_lines
from rag_harness.report.saved_runs import read_run
from rag_harness.shown.terminal import columns, say


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``compare``."""
    run = "output folder of a run, or a baseline that --rag-save wrote: its file, or its name"
    parser.add_argument("before", metavar="BEFORE", help=f"the earlier run: {run}")
    parser.add_argument("now", metavar="NOW", help="the later run: the same")
    parser.add_argument(
        "--measure", action="append", default=[], metavar="NAME", help="only these measures; may be repeated"
    )
    _baselines_argument(parser)


def run_compare(chosen: argparse.Namespace) -> int:
    """Print what changed from before to now."""
    for named in (chosen.before, chosen.now):
        check_whole(Path(named))
    before, now = (read_run(named, chosen.baselines) for named in (chosen.before, chosen.now))
    say(*compared_lines(before, now, chosen.measure, columns()))
    return 0


def power_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``power``."""
    run = "output folder of a run, or a baseline that --rag-save wrote: its file, or its name"
    parser.add_argument("run_named", metavar="RUN", help=run)
    wished = "difference that you want to see, in the unit of the measure; default: 0.05"
    parser.add_argument("--difference", type=float, default=0.05, metavar="D", help=wished)
    judged = f"measure to look at, may be repeated; default: what was judged, else {', '.join(USUAL_MEASURES)}"
    parser.add_argument("--measure", action="append", default=[], metavar="NAME", help=judged)
    parser.add_argument("--slice", metavar="KEY", default="", help="each value of a slice key by itself: query_type")
    _baselines_argument(parser)


def run_power(chosen: argparse.Namespace) -> int:
    """Print which differences the run can show."""
    run = read_run(chosen.run_named, chosen.baselines)
    say(*power_lines(run, chosen.difference, chosen.measure, chosen.slice))
    return 0


def _baselines_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the folder of saved runs."""
    where = "folder of the baselines that are named; default: baselines"
    parser.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help=where)
