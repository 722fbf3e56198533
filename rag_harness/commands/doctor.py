"""``rag-harness doctor``: what is installed, what is set, what is there; text for an issue report."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.shown.terminal import say


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="folder of the suite; default: this one")
    parser.add_argument("--network", action="store_true", help="ask the chat endpoint, too, whether it is there")


def run_doctor(chosen: argparse.Namespace) -> int:
    """Print the report. The exit status is 1 if something is broken that the settings ask for."""
    from rag_harness.commands.checkup import look_over

    report = look_over(chosen.folder, chosen.network)
    say(*report.lines)
    return FOUND if report.broken else 0
