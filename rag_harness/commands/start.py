"""``rag-harness init``: writes the smallest working suite into the user's repository."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.shown.terminal import say


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``init``."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="your repository; default: this folder")
    named = "your documents, below it; default: docs, or what is there that is called like documents"
    parser.add_argument("--kb", default="", metavar="DIR", help=named)
    parser.add_argument("--example", action="store_true", help="bring a small made-up knowledge base to try")
    run_by = (
        "write what runs the suite on each pull request, too: github, a workflow, or gitlab, a job; default: github"
    )
    parser.add_argument("--ci", choices=("github", "gitlab"), nargs="?", const="github", help=run_by)


def run_init(chosen: argparse.Namespace) -> int:
    """Write the smallest working suite. The status is 1 where it does not run before lines are added by hand."""
    from rag_harness.commands.starter import start, start_example, write_ci

    begin = start_example if chosen.example else start
    done = begin(chosen.folder, chosen.kb)
    if chosen.ci:
        write_ci(chosen.folder, chosen.ci, done)
    say(*done.lines())
    return FOUND if done.is_incomplete else 0
