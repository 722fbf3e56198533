"""``rag-harness results export``: hands the scores of a run to other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.shown.terminal import say


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``results export``."""
    from rag_harness.exports.targets import TARGETS

    parser.add_argument(
        "output", type=Path, nargs="?", default=Path("output"), help="output folder of a run; default: output"
    )
    parser.add_argument("--to", required=True, type=_target, choices=TARGETS, help="tool that gets the scores")
    where = "folder or file of targets that are files; default: exported"
    parser.add_argument("-o", dest="place", type=Path, default=Path("exported"), metavar="PLACE", help=where)
    parser.add_argument("--url", default="", help="address of the tool's server; default: as its own client finds it")
    project = "name under which the tool keeps them; default: rag-harness"
    parser.add_argument("--project", default="rag-harness", metavar="NAME", help=project)


def _target(name: str) -> str:
    from rag_harness.exports.targets import REMOVED

    if name in REMOVED:
        raise argparse.ArgumentTypeError(REMOVED[name])
    return name


def run_export(chosen: argparse.Namespace) -> int:
    """Export the scores, and say what was written where."""
    from rag_harness.exports.destination import Destination
    from rag_harness.exports.scored_run import read_scored_run
    from rag_harness.exports.targets import TARGETS
    from rag_harness.settings.literal_keys import check_address

    check_address("--url", chosen.url, "Put it into the variables of the tool.")
    run = read_scored_run(chosen.output)
    say(*TARGETS[chosen.to](run, Destination(chosen.output, chosen.place, chosen.url, chosen.project)))
    return 0
