"""``rag-harness init``: the smallest working suite in somebody's repository."""

from __future__ import annotations

import argparse
from pathlib import Path


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``init`` takes."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="your repository; default: this folder")
    named = "your documents, below it; default: docs, or what is there that is called like documents"
    parser.add_argument("--kb", default="", metavar="DIR", help=named)
    parser.add_argument("--example", action="store_true", help="bring a small made-up knowledge base to try")


def run_init(chosen: argparse.Namespace) -> int:
    """Write the smallest working suite."""
    from rag_harness.starter import start, start_example

    begin = start_example if chosen.example else start
    print("\n".join(begin(chosen.folder, chosen.kb).lines()))
    return 0
